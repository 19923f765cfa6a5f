"""The front of each source, and the limits that slow or silent sources put on the heartbeat."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from slackwater.control.disorder.budgeted.backlog_bound import HEARD_WITHIN, BacklogBound
from slackwater.control.disorder.budgeted.silence_risk import SilenceRisk
from slackwater.control.disorder.protocol import Floats, Ints

BUSY = 0.3
"""A delivering source limits the heartbeat if its rows of one wait are at least this share of the balance."""
BEHIND = 2.0
"""A source has stalled if it is behind by this multiple of the usual distance, its own and the stream's."""
USUAL_WAITS = 10.0
"""It takes about this many waits to learn that a source is always slow; until then it may have stalled."""


class SourceFronts:
    """Tracks the front (the highest value) of each source and limits the heartbeat by it.

    Rows of one source arrive in better order than rows of different sources, so the next rows of a source are most
    likely above its front. The front of a source limits the heartbeat in three cases:

    - The source is delivering, and the rows of one wait would cost a large share of the budget.
    - The source has stalled: at its last row it was further behind than is usual for it and for the stream. A source
      that has always been slow has not stalled; its rows are in the tail of the lateness, and the budget covers them.
    - The source fell silent while it was up to date, so it may be idle or cut off. It limits the heartbeat only while
      it may be holding back more rows than all sources had sent before, and more than ``SilenceRisk`` allows.

    Costs a few array passes per batch and eleven numbers per source.
    """

    def __init__(self) -> None:
        self._known: Ints = np.zeros(0, dtype=np.int64)
        self._fronts: Floats = np.zeros(0)
        self._heard: Floats = np.zeros(0)
        self._behind: Floats = np.zeros(0)
        self._usual: Floats = np.zeros(0)
        self._at_risk: Floats = np.zeros(0)
        self._passed = -math.inf
        self._began = math.inf
        self._backlogs = BacklogBound()
        self._risk = SilenceRisk()

    def observe(self, values: Floats, weights: Ints | None, sources: Ints, now: float, wait: float) -> None:
        """Learn from rows that arrived until ``now``; ``wait`` is the current wait."""
        slots = self._slots(sources)
        np.maximum.at(self._fronts, slots, values)
        counts = np.bincount(slots, weights, len(self._known)).astype(np.float64)
        touched = np.flatnonzero(counts)
        self._end_silences(values < self._passed, weights, slots, counts, touched)
        self._began = min(self._began, now)
        # a new source counts as silent since the start of the stream
        silent = now - np.maximum(self._heard[touched], self._began)
        self._backlogs.observe(touched, counts[touched], silent, wait)
        self._heard[touched] = now
        behind = now - self._fronts[touched]
        self._behind[touched] = behind
        if wait > 0:
            # the time of a long silence does not count towards the usual distance
            step = np.minimum(silent, HEARD_WITHIN * wait) / (self._backlogs.spans[touched] + USUAL_WAITS * wait)
            self._usual[touched] += (behind - self._usual[touched]) * step

    def _end_silences(
        self, old: NDArray[np.bool_], weights: Ints | None, slots: Ints, counts: Floats, touched: Ints
    ) -> None:
        """Report to the risk record how many of the rows at risk arrived late, for sources that are heard again."""
        at_risk = self._at_risk[touched]
        if at_risk.any():
            arrived = np.bincount(slots, old if weights is None else old * weights, len(counts))[touched]
            self._risk.settle(at_risk, at_risk * arrived / counts[touched])
            self._at_risk[touched] = 0.0

    def _slots(self, sources: Ints) -> Ints:
        """The array positions of the sources; new sources are inserted."""
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
            self._at_risk = np.insert(self._at_risk, at, 0.0)
            self._backlogs.add_sources(at)
            slots = np.searchsorted(self._known, sources)
        return slots

    def lowest_limit(
        self, now: float, wait: float, balance: float, usual: float, idle_after: float
    ) -> tuple[float, int]:
        """The lowest front that limits the heartbeat, and its source; infinite if no front does.

        ``balance`` is the budget in rows, ``usual`` the usual lateness of the stream.
        """
        silent = now - self._heard
        load = self._backlogs.load * np.exp(-silent / wait) if wait > 0 else self._backlogs.load
        delivering = (silent <= HEARD_WITHIN * wait) & (load >= BUSY * balance)
        stalled = (self._behind > BEHIND * np.maximum(self._usual, usual)) & (silent <= idle_after)
        binding = np.where(delivering | stalled, self._fronts, math.inf)
        slot = int(np.argmin(binding))
        return float(binding[slot]), int(self._known[slot])

    def limit_for_silent(
        self, heartbeat: float, now: float, wait: float, balance: float, idle_after: float
    ) -> tuple[float, int]:
        """Limit the heartbeat so that it passes a silent source by no more rows than may be risked.

        Returns the heartbeat and the source that limits it, or -1. A source that would hold the heartbeat back by more
        than ``idle_after`` is ignored; if ``idle_after`` is infinite, all silent sources are.
        """
        self._at_risk, self._passed = np.zeros(len(self._known)), heartbeat
        if wait <= 0 or math.isinf(idle_after):
            return heartbeat, -1
        slots = ((now - self._heard > HEARD_WITHIN * wait) & (self._fronts < heartbeat)).nonzero()[0]
        times = np.minimum(heartbeat - self._fronts[slots], idle_after)
        self._at_risk[slots] = self._backlogs.within(times, slots, wait)
        slots = slots[self._at_risk[slots] > balance]
        slots = slots[self._backlogs.outweighs(idle_after, slots, wait)]
        if not len(slots):
            return heartbeat, -1
        may_risk = self._risk.affordable(balance)
        slots = slots[self._at_risk[slots] > may_risk]
        limits = self._fronts[slots] + self._backlogs.time_until(may_risk, slots, wait)
        limits[heartbeat - limits > idle_after] = math.inf
        if not len(limits) or limits.min() >= heartbeat:
            return heartbeat, -1
        at = int(np.argmin(limits))
        return float(limits[at]), int(self._known[slots[at]])

    def snapshot(self) -> dict[str, Any]:
        """The state as JSON: a list per quantity, the backlog bounds and the risk record."""
        return {
            "known": self._known.tolist(),
            "fronts": self._fronts.tolist(),
            "heard": self._heard.tolist(),
            "behind": self._behind.tolist(),
            "usual": self._usual.tolist(),
            "feared": self._at_risk.tolist(),
            "passed": self._passed if math.isfinite(self._passed) else None,
            "began": self._began if math.isfinite(self._began) else None,
            "backlogs": self._backlogs.snapshot(),
            "bets": self._risk.snapshot(),
        }

    def resume(self, snapshot: dict[str, Any]) -> None:
        """Restore the state from a snapshot."""
        self._known = np.asarray(snapshot["known"], dtype=np.int64)
        self._fronts = np.asarray(snapshot["fronts"], dtype=np.float64)
        self._heard = np.asarray(snapshot["heard"], dtype=np.float64)
        self._behind = np.asarray(snapshot["behind"], dtype=np.float64)
        self._usual = np.asarray(snapshot["usual"], dtype=np.float64)
        self._at_risk = np.asarray(snapshot["feared"], dtype=np.float64)
        self._passed = -math.inf if snapshot["passed"] is None else float(snapshot["passed"])
        self._began = math.inf if snapshot["began"] is None else float(snapshot["began"])
        self._backlogs.resume(snapshot["backlogs"])
        self._risk.resume(snapshot["bets"])
