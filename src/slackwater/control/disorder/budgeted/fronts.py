"""How far each source has come, when it was last heard, and which of them must not be overtaken."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from slackwater.control.disorder.budgeted.backlog_bound import HEARD_WITHIN, BacklogBound
from slackwater.control.disorder.budgeted.silence_risk import SilenceRisk
from slackwater.control.disorder.protocol import Floats, Ints

BUSY = 0.3
"""A source matters if what it delivers in one wait would cost this share of the budget."""
BEHIND = 2.0
"""A source so many times further behind than usual, the stream's and its own, has stalled; else it may be idle."""
USUAL_WAITS = 10.0
"""A source is known to be a slow one only after so many waits; until then it may have stalled."""


class SourceFronts:
    """The highest value of each source, and the lowest one that the heartbeat must not pass.

    A source keeps its own order far better than the sources keep theirs, so what it will deliver next is most
    likely above its front. That binds the heartbeat while the source is delivering and could cost more than the
    budget allows, and while it is stalled: was further behind when it was last heard than is usual, for the stream
    and for itself. A source that has always been slow is not stalled: its rows are in the tail like all others, and
    the budget pays for them. A source that fell silent when it was up to date may be idle: it binds only while it
    could hold back more rows than all had sent before, and more of them would be passed than can be bet on it. Costs
    a few array passes a batch; a source is eleven numbers.
    """

    def __init__(self) -> None:
        self._known: Ints = np.zeros(0, dtype=np.int64)
        self._fronts: Floats = np.zeros(0)
        self._heard: Floats = np.zeros(0)
        self._behind: Floats = np.zeros(0)
        self._usual: Floats = np.zeros(0)
        self._feared: Floats = np.zeros(0)
        self._passed = -math.inf
        self._began = math.inf
        self._backlogs = BacklogBound()
        self._bets = SilenceRisk()

    def observe(self, values: Floats, weights: Ints | None, sources: Ints, now: float, wait: float) -> None:
        """Let rows in that came until ``now``."""
        slots = self._slots(sources)
        np.maximum.at(self._fronts, slots, values)
        counts = np.bincount(slots, weights, len(self._known)).astype(np.float64)
        touched = np.flatnonzero(counts)
        self._settle(values < self._passed, weights, slots, counts, touched)
        self._began = min(self._began, now)
        # one that is new has been silent for as long as there was a stream
        silent = now - np.maximum(self._heard[touched], self._began)
        self._backlogs.observe(touched, counts[touched], silent, wait)
        self._heard[touched] = now
        behind = now - self._fronts[touched]
        self._behind[touched] = behind
        if wait > 0:
            # time that it was cut off for says nothing of what is usual
            step = np.minimum(silent, HEARD_WITHIN * wait) / (self._backlogs.spans[touched] + USUAL_WAITS * wait)
            self._usual[touched] += (behind - self._usual[touched]) * step

    def _settle(self, old: NDArray[np.bool_], weights: Ints | None, slots: Ints, counts: Floats, touched: Ints) -> None:
        """Bets on sources that have spoken again are over: what came of the fear is the share of old rows."""
        feared = self._feared[touched]
        if feared.any():
            came = np.bincount(slots, old if weights is None else old * weights, len(counts))[touched]
            self._bets.settle(feared, feared * came / counts[touched])
            self._feared[touched] = 0.0

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
            self._usual = np.insert(self._usual, at, 0.0)
            self._feared = np.insert(self._feared, at, 0.0)
            self._backlogs.add_sources(at)
            slots = np.searchsorted(self._known, sources)
        return slots

    def lowest_binding(
        self, now: float, wait: float, balance: float, usual: float, idle_after: float
    ) -> tuple[float, int]:
        """The lowest front that binds the heartbeat, and whose it is; infinite if none does."""
        silent = now - self._heard
        load = self._backlogs.load * np.exp(-silent / wait) if wait > 0 else self._backlogs.load
        delivering = (silent <= HEARD_WITHIN * wait) & (load >= BUSY * balance)
        stalled = (self._behind > BEHIND * np.maximum(self._usual, usual)) & (silent <= idle_after)
        binding = np.where(delivering | stalled, self._fronts, math.inf)
        slot = int(np.argmin(binding))
        return float(binding[slot]), int(self._known[slot])

    def hold_for_silent(
        self, heartbeat: float, now: float, wait: float, balance: float, idle_after: float
    ) -> tuple[float, int]:
        """The heartbeat, kept from passing a silent source by more than can be bet on it; and whose bet that is.

        A hold that would cost more than ``idle_after`` is given up, and where that has no end none is begun.
        """
        self._feared, self._passed = np.zeros(len(self._known)), heartbeat
        if wait <= 0 or math.isinf(idle_after):
            return heartbeat, -1
        slots = ((now - self._heard > HEARD_WITHIN * wait) & (self._fronts < heartbeat)).nonzero()[0]
        times = np.minimum(heartbeat - self._fronts[slots], idle_after)
        self._feared[slots] = self._backlogs.within(times, slots, wait)
        slots = slots[self._feared[slots] > balance]
        slots = slots[self._backlogs.outweighs(idle_after, slots, wait)]
        if not len(slots):
            return heartbeat, -1
        bet = self._bets.affordable(balance)
        slots = slots[self._feared[slots] > bet]
        limits = self._fronts[slots] + self._backlogs.time_until(bet, slots, wait)
        limits[heartbeat - limits > idle_after] = math.inf
        if not len(limits) or limits.min() >= heartbeat:
            return heartbeat, -1
        at = int(np.argmin(limits))
        return float(limits[at]), int(self._known[slots[at]])

    def snapshot(self) -> dict[str, Any]:
        """Parallel lists, and the record of bets."""
        return {
            "known": self._known.tolist(),
            "fronts": self._fronts.tolist(),
            "heard": self._heard.tolist(),
            "behind": self._behind.tolist(),
            "usual": self._usual.tolist(),
            "feared": self._feared.tolist(),
            "passed": self._passed if math.isfinite(self._passed) else None,
            "began": self._began if math.isfinite(self._began) else None,
            "backlogs": self._backlogs.snapshot(),
            "bets": self._bets.snapshot(),
        }

    def resume(self, snapshot: dict[str, Any]) -> None:
        """Go on from a snapshot."""
        self._known = np.asarray(snapshot["known"], dtype=np.int64)
        self._fronts = np.asarray(snapshot["fronts"], dtype=np.float64)
        self._heard = np.asarray(snapshot["heard"], dtype=np.float64)
        self._behind = np.asarray(snapshot["behind"], dtype=np.float64)
        self._usual = np.asarray(snapshot["usual"], dtype=np.float64)
        self._feared = np.asarray(snapshot["feared"], dtype=np.float64)
        self._passed = -math.inf if snapshot["passed"] is None else float(snapshot["passed"])
        self._began = math.inf if snapshot["began"] is None else float(snapshot["began"])
        self._backlogs.resume(snapshot["backlogs"])
        self._bets.resume(snapshot["bets"])
