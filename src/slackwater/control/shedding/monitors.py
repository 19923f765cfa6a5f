"""What the controller must know about the query, identified while it runs rather than typed in."""

from __future__ import annotations

from typing import Any

from slackwater.control.shedding.protocol import Observation

# below these a measurement is a fault of the clock, and would make the capacity infinite
LEAST_COST_S = 1e-9
LEAST_HEADROOM = 0.01


class CostMonitor:
    """c: the processing time of a row, smoothed over periods.

    ``smoothing`` is the weight of the newest period (1: no memory). A period in which nothing finished says
    nothing. Until the first row has finished the cost is unknown (None).
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
        """The cost so far."""
        return {"cost_s": self.cost_s}

    def resume(self, snapshot: dict[str, Any]) -> None:
        """Go on from there."""
        self.cost_s = snapshot["cost_s"]


class HeadroomMonitor:
    """H: the share of the time that goes to the query, seen in periods that had a backlog from end to end.

    Only then did the query get all that it can: work done / time passed is the headroom. Until such a period
    came, the headroom is the one that it was started with.
    """

    def __init__(self, headroom: float = 1.0, smoothing: float = 0.1, *, fixed: bool = False) -> None:
        self.headroom = headroom
        self._smoothing = smoothing
        self._fixed = fixed
        self._periods = 0
        self._backlog_before = 0

    def observe(self, seen: Observation) -> None:
        """Learn from a period that was busy throughout."""
        busy = self._backlog_before > 0 and seen.backlog > 0 and self._backlog_before > seen.finished
        self._backlog_before = seen.backlog
        if self._fixed or not busy or seen.work_s <= 0:
            return
        self._periods += 1
        # the first measurements replace the guess, later ones are smoothed
        weight = max(self._smoothing, 1.0 / self._periods)
        measured = min(max(seen.work_s / seen.period_s, LEAST_HEADROOM), 1.0)
        self.headroom += weight * (measured - self.headroom)

    def snapshot(self) -> dict[str, Any]:
        """The headroom so far."""
        return {"headroom": self.headroom, "periods": self._periods, "backlog_before": self._backlog_before}

    def resume(self, snapshot: dict[str, Any]) -> None:
        """Go on from there."""
        self.headroom = snapshot["headroom"]
        self._periods = snapshot["periods"]
        self._backlog_before = snapshot["backlog_before"]


class BacklogMonitor:
    """q: rows that came in and have not left, by counting both ends; exact as long as both counts are."""

    def __init__(self) -> None:
        self.backlog = 0

    def observe(self, admitted: int, finished: int, shed_from_queue: int = 0) -> int:
        """The backlog after so many more came and went."""
        self.backlog += admitted - finished - shed_from_queue
        return self.backlog
