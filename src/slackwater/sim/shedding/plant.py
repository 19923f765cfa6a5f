"""The plant of Tu 2006: a first-in-first-out queue in front of a server with a headroom."""

from __future__ import annotations

from collections import deque

import numpy as np
from numpy.typing import NDArray

from slackwater.control.shedding import Decision, Observation

Floats = NDArray[np.float64]

ACTUATORS = ("entry", "queue")


class Plant:
    """Serves rows one by one. Row i takes cost(t)·spread_i/H, where t is the start of its service.

    ``cost_spread`` is the coefficient of variation of the cost between rows, which take different paths through a
    query; with 0 all rows cost the same. The actuator "entry" sheds arriving rows. The actuator "queue" also sheds
    waiting rows if that is not enough. The simulation is exact to the row and costs about half a microsecond per row.
    """

    def __init__(
        self,
        arrivals_s: Floats,
        cost_s: Floats,
        *,
        headroom: float = 0.97,
        actuator: str = "queue",
        cost_spread: float = 0.0,
        seed: int = 0,
    ) -> None:
        if actuator not in ACTUATORS:
            raise ValueError(f"unknown actuator {actuator!r}; use one of {ACTUATORS}")
        rng = np.random.default_rng(seed)
        rows = len(arrivals_s)
        self.arrivals_s = arrivals_s
        self.finished_s = np.full(rows, np.nan)
        self._arrival_list: list[float] = arrivals_s.tolist()
        self._cost_list: list[float] = cost_s.tolist()
        shape = 1.0 / cost_spread**2 if cost_spread > 0 else 0.0
        self._spread: list[float] = (rng.gamma(shape, 1.0 / shape, rows) if shape else np.ones(rows)).tolist()
        self._coins: list[float] = rng.random(rows).tolist()
        self._rng = rng
        self._headroom = headroom
        self._actuator = actuator
        self._queue: deque[int] = deque()
        self._next = 0
        self._free_at = 0.0
        self._in_service: tuple[float, float] | None = None

    def run_period(self, start_s: float, end_s: float, decision: Decision) -> Observation:
        """Simulate the arrivals and the service of one period, and shed as decided."""
        if self._actuator == "queue":
            self._shed_from_queue(decision.queue_shed_ratio)
        entry_ratio = decision.shed_ratio
        arrived = admitted = 0
        arrival_list, coins, queue = self._arrival_list, self._coins, self._queue
        while self._next < len(arrival_list) and arrival_list[self._next] < end_s:
            arrived += 1
            if coins[self._next] >= entry_ratio:
                queue.append(self._next)
                admitted += 1
            self._next += 1
        finished, work_s = self._serve(end_s)
        backlog = len(queue) + (self._in_service is not None)
        return Observation(end_s - start_s, arrived, admitted, finished, backlog, work_s)

    def drain(self) -> None:
        """Serve all waiting rows, so that every admitted row has a delay."""
        self._serve(float("inf"))

    def _serve(self, end_s: float) -> tuple[int, float]:
        finished, work_s = 0, 0.0
        if self._in_service is not None:
            if self._in_service[0] > end_s:
                return 0, 0.0
            work_s += self._in_service[1]
            finished += 1
            self._in_service = None
        last_cost = len(self._cost_list) - 1
        while self._queue:
            row = self._queue[0]
            begin_s = max(self._free_at, self._arrival_list[row])
            if begin_s >= end_s:
                break
            self._queue.popleft()
            cost_s = self._cost_list[min(int(begin_s), last_cost)] * self._spread[row]
            self._free_at = begin_s + cost_s / self._headroom
            self.finished_s[row] = self._free_at
            if self._free_at > end_s:
                self._in_service = (self._free_at, cost_s)
                break
            finished += 1
            work_s += cost_s
        return finished, work_s

    def _shed_from_queue(self, ratio: float) -> None:
        """Remove random waiting rows, as the shedder of Tu 2006, §5 does."""
        if ratio > 0 and self._queue:
            keep = (self._rng.random(len(self._queue)) >= ratio).tolist()
            self._queue = deque(row for row, kept in zip(self._queue, keep, strict=True) if kept)
