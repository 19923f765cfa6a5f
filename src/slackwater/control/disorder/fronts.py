"""How far each source has come, when it was last heard, and which of them must not be overtaken."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from slackwater.control.disorder.protocol import Floats, Ints

HEARD_WITHIN = 0.6
"""A source is delivering if it was heard within so many waits."""
BUSY = 0.3
"""A source matters if what it delivers in one wait would cost this share of the budget."""
BEHIND = 2.0
"""A source that fell silent while it was so many times further behind than usual has stalled; else it is idle."""


class SourceFronts:
    """The highest value of each source, and the lowest one that the heartbeat must not pass.

    A source keeps its own order far better than the sources keep theirs, so what it will deliver next is most
    likely above its front. That binds the heartbeat while the source is delivering and could cost more than the
    budget allows, and while it is stalled: fell silent when it was behind. A source that fell silent when it was
    up to date is idle and binds nothing. Costs a few array passes a batch; a source is five numbers.
    """

    def __init__(self) -> None:
        self._known: Ints = np.zeros(0, dtype=np.int64)
        self._fronts: Floats = np.zeros(0)
        self._heard: Floats = np.zeros(0)
        self._behind: Floats = np.zeros(0)
        self._load: Floats = np.zeros(0)

    def observe(self, values: Floats, weights: Ints | None, sources: Ints, now: float, wait: float) -> None:
        """Let rows in that came until ``now``."""
        slots = self._slots(sources)
        np.maximum.at(self._fronts, slots, values)
        counts = np.bincount(slots, weights, minlength=len(self._known))
        touched = np.flatnonzero(counts)
        faded = np.exp(-(now - self._heard[touched]) / wait) if wait > 0 else 0.0
        self._load[touched] = self._load[touched] * faded + counts[touched]
        self._heard[touched] = now
        self._behind[touched] = now - self._fronts[touched]

    def _slots(self, sources: Ints) -> Ints:
        slots = np.searchsorted(self._known, sources)
        known = np.take(self._known, slots, mode="clip") == sources if len(self._known) else np.zeros(len(slots), bool)
        if not known.all():
            added = np.setdiff1d(sources, self._known)
            at = np.searchsorted(self._known, added)
            self._known = np.insert(self._known, at, added)
            self._fronts = np.insert(self._fronts, at, -math.inf)
            self._heard = np.insert(self._heard, at, -math.inf)
            self._behind = np.insert(self._behind, at, 0.0)
            self._load = np.insert(self._load, at, 0.0)
            slots = np.searchsorted(self._known, sources)
        return slots

    def lowest_binding(
        self, now: float, wait: float, balance: float, usual: float, idle_after: float
    ) -> tuple[float, int]:
        """The lowest front that binds the heartbeat, and whose it is; infinite if none does."""
        silent = now - self._heard
        load = self._load * np.exp(-silent / wait) if wait > 0 else self._load
        delivering = (silent <= HEARD_WITHIN * wait) & (load >= BUSY * balance)
        stalled = (self._behind > BEHIND * usual) & (silent <= idle_after)
        binding = np.where(delivering | stalled, self._fronts, math.inf)
        slot = int(np.argmin(binding))
        return float(binding[slot]), int(self._known[slot])

    def snapshot(self) -> dict[str, Any]:
        """Five parallel lists."""
        return {
            "known": self._known.tolist(),
            "fronts": self._fronts.tolist(),
            "heard": self._heard.tolist(),
            "behind": self._behind.tolist(),
            "load": self._load.tolist(),
        }

    def resume(self, snapshot: dict[str, Any]) -> None:
        """Go on from a snapshot."""
        self._known = np.asarray(snapshot["known"], dtype=np.int64)
        self._fronts = np.asarray(snapshot["fronts"], dtype=np.float64)
        self._heard = np.asarray(snapshot["heard"], dtype=np.float64)
        self._behind = np.asarray(snapshot["behind"], dtype=np.float64)
        self._load = np.asarray(snapshot["load"], dtype=np.float64)
