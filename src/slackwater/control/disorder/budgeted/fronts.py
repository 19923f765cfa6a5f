"""The front of each source, and the limit that sources that are behind put on the heartbeat."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from slackwater.control.disorder.protocol import Floats, Ints

BUSY = 0.3
"""A delivering source limits the heartbeat if its rows of one wait are at least this share of the balance."""
BEHIND = 2.0
"""A source has stalled if it is behind by this multiple of the usual distance, its own and the stream's."""
HEARD_WITHIN = 0.6
"""A source is delivering if its last row arrived within this many waits."""
USUAL_WAITS = 10.0
"""It takes about this many waits to learn that a source is always slow; until then it may have stalled."""
SPAN_WAITS = 100.0
"""The time over which a source has been heard is forgotten over this many waits."""
_PER_SOURCE = ("fronts", "heard", "behind", "usual", "load", "spans")


class SourceFronts:
    """Tracks the front (the highest value) of each source and limits the heartbeat by it.

    Rows of one source arrive in better order than rows of different sources, so the next rows of a source are most
    likely above its front. The front of a source limits the heartbeat in two cases:

    - The source is delivering, and the rows of one wait would cost a large share of the budget.
    - The source has stalled: at its last row it was further behind than is usual for it and for the stream. A source
      that has always been slow has not stalled; its rows are in the tail of the lateness, and the budget covers them.

    A source that falls silent while it is up to date does not limit the heartbeat: it may have nothing to send. If it
    was cut off, its backlog is late and counts against the budget. Costs a few array passes per batch and seven numbers
    per source.
    """

    def __init__(self) -> None:
        self._known: Ints = np.zeros(0, dtype=np.int64)
        self.fronts: Floats = np.zeros(0)
        self.heard: Floats = np.zeros(0)  # the clock at its last row
        self.behind: Floats = np.zeros(0)  # the distance of its front from the clock at that time
        self.usual: Floats = np.zeros(0)  # the average of that distance
        self.load: Floats = np.zeros(0)  # its rows within one wait
        self.spans: Floats = np.zeros(0)  # the time over which it has been heard
        self._began = math.inf

    def observe(self, values: Floats, weights: Ints | None, sources: Ints, now: float, wait: float) -> None:
        """Learn from rows that arrived until ``now``; ``wait`` is the current wait."""
        slots = self._slots(sources)
        np.maximum.at(self.fronts, slots, values)
        counts = np.bincount(slots, weights, len(self._known)).astype(np.float64)
        touched = np.flatnonzero(counts)
        self._began = min(self._began, now)
        # a new source counts as silent since the start of the stream
        silent = now - np.maximum(self.heard[touched], self._began)
        self._follow_load(touched, counts[touched], silent, wait)
        self.heard[touched] = now
        behind = now - self.fronts[touched]
        self.behind[touched] = behind
        if wait > 0:
            # the time of a long silence does not count towards the usual distance
            step = np.minimum(silent, HEARD_WITHIN * wait) / (self.spans[touched] + USUAL_WAITS * wait)
            self.usual[touched] += (behind - self.usual[touched]) * step

    def _follow_load(self, touched: Ints, counts: Floats, silent: Floats, wait: float) -> None:
        elapsed = np.minimum(silent, SPAN_WAITS * wait)
        self.load[touched] = self.load[touched] * (np.exp(-silent / wait) if wait > 0 else 0.0) + counts
        forget = np.exp(-elapsed / (SPAN_WAITS * wait)) if wait > 0 else 1.0
        self.spans[touched] = self.spans[touched] * forget + elapsed

    def _slots(self, sources: Ints) -> Ints:
        """The array positions of the sources; new sources are inserted."""
        slots = np.searchsorted(self._known, sources)
        known = np.take(self._known, slots, mode="clip") == sources if len(self._known) else np.zeros(len(slots), bool)
        if not known.all():
            added = np.setdiff1d(sources, self._known)
            at = np.searchsorted(self._known, added)
            self._known = np.insert(self._known, at, added)
            for name in _PER_SOURCE:
                new = -math.inf if name in ("fronts", "heard") else 0.0
                setattr(self, name, np.insert(getattr(self, name), at, new))
            slots = np.searchsorted(self._known, sources)
        return slots

    def lowest_limit(
        self, now: float, wait: float, balance: float, usual: float, idle_after: float
    ) -> tuple[float, int]:
        """The lowest front that limits the heartbeat, and its source; infinite if no front does.

        ``balance`` is the budget in rows, ``usual`` the usual lateness of the stream.
        """
        silent = now - self.heard
        load = self.load * np.exp(-silent / wait) if wait > 0 else self.load
        delivering = (silent <= HEARD_WITHIN * wait) & (load >= BUSY * balance)
        stalled = (self.behind > BEHIND * np.maximum(self.usual, usual)) & (silent <= idle_after)
        binding = np.where(delivering | stalled, self.fronts, math.inf)
        slot = int(np.argmin(binding))
        return float(binding[slot]), int(self._known[slot])

    def snapshot(self) -> dict[str, Any]:
        """The state as JSON: a list per quantity."""
        began = self._began if math.isfinite(self._began) else None
        lists = {name: getattr(self, name).tolist() for name in _PER_SOURCE}
        return {"known": self._known.tolist(), "began": began, **lists}

    def resume(self, snapshot: dict[str, Any]) -> None:
        """Restore the state from a snapshot."""
        self._known = np.asarray(snapshot["known"], dtype=np.int64)
        self._began = math.inf if snapshot["began"] is None else float(snapshot["began"])
        for name in _PER_SOURCE:
            setattr(self, name, np.asarray(snapshot[name], dtype=np.float64))
