"""Monitors that measure the query while it runs, so that nobody has to configure its cost and capacity."""

from __future__ import annotations

from typing import Any

from slackwater.control.shedding.protocol import Observation

# smaller measurements are clock errors, and would make the capacity infinite
LEAST_COST_S = 1e-9
LEAST_HEADROOM = 0.01


class CostMonitor:
    """c: the processing time of a row, smoothed over periods.

    ``smoothing`` is the weight of the newest period; 1 means no memory. Periods in which no row finished are ignored.
    The cost is None until a row has finished.
    """

    def __init__(self, smoothing: float = 0.5, cost_s: float | None = None) -> None:
        self.cost_s = cost_s
        self._smoothing = smoothing

    def observe(self, seen: Observation) -> None:
        """Learn from the rows that finished."""
        if seen.finished <= 0 or seen.work_s <= 0:
            return
        measured = max(seen.work_s / seen.finished, LEAST_COST_S)
        self.cost_s = measured if self.cost_s is None else self.cost_s + self._smoothing * (measured - self.cost_s)

    def snapshot(self) -> dict[str, Any]:
        """The cost, as JSON."""
        return {"cost_s": self.cost_s}

    def resume(self, snapshot: dict[str, Any]) -> None:
        """Restore the state from a snapshot."""
        self.cost_s = snapshot["cost_s"]


class HeadroomMonitor:
    """H: the share of the time that the query gets, measured in periods with a backlog from start to end.

    Only in such a period the query uses all the time it can get, so that work done / time passed is the headroom.
    Before the first such period ``headroom`` is the initial value; with ``fixed`` it never changes.
    """

    def __init__(self, headroom: float = 1.0, smoothing: float = 0.1, *, fixed: bool = False) -> None:
        self.headroom = headroom
        self._smoothing = smoothing
        self._fixed = fixed
        self._periods = 0
        self._backlog_before = 0

    def observe(self, seen: Observation) -> None:
        """Learn from a period if it had a backlog throughout."""
        busy = self._backlog_before > 0 and seen.backlog > 0 and self._backlog_before > seen.finished
        self._backlog_before = seen.backlog
        if self._fixed or not busy or seen.work_s <= 0:
            return
        self._periods += 1
        # the first measurements replace the initial value, later ones are smoothed
        weight = max(self._smoothing, 1.0 / self._periods)
        measured = min(max(seen.work_s / seen.period_s, LEAST_HEADROOM), 1.0)
        self.headroom += weight * (measured - self.headroom)

    def snapshot(self) -> dict[str, Any]:
        """The headroom and the number of measurements, as JSON."""
        return {"headroom": self.headroom, "periods": self._periods, "backlog_before": self._backlog_before}

    def resume(self, snapshot: dict[str, Any]) -> None:
        """Restore the state from a snapshot."""
        self.headroom = snapshot["headroom"]
        self._periods = snapshot["periods"]
        self._backlog_before = snapshot["backlog_before"]
