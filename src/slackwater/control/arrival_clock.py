"""The arrival clock of a stream that is read out of the order of arrival, such as the backlog of a topic."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

FASTEST = 2.0
"""A clock that was held back approaches the newest arrival at most this many times as fast as in the batch before."""


class ArrivalClock:
    """Follows the newest arrival, less the time by which a part of the stream is read behind the rest.

    A source hands over partitions side by side. If one of them holds an hour and another one the last five minutes, the
    newest arrival is near the end at once, and most rows look an hour late although each came in time. Read in order, a
    batch has no row that arrived before the newest row of the batch before. So the time from its first arrival to that
    one is how far the slowest partition is behind, and the clock is held back by it. Nothing is held back for a few
    rows: if at most the share ``ratio`` of a batch is behind, the promise can afford them, and an arrival that is too
    old is no sign of a slow partition.

    While a partition is behind, the rows of the others lie ahead of the clock. If it delivers nothing any more, it has
    ended or is interrupted. A partition that was behind by more than ``idle_after`` is waited for as long, by the real
    clock. Then, or if it was behind by less, the clock moves on, at first slowly.

    >>> clock, ahead = ArrivalClock(0.01), np.array([3_550.0])
    >>> clock.observe(3_500.0, 0.0, np.array([100.0]), np.array([900]), now=0.0)
    3500.0
    >>> clock.observe(3_600.0, 200.0, np.array([250.0]), np.array([900]), now=1.0), clock.is_held
    (300.0, True)
    """

    def __init__(self, ratio: float, idle_after: float = math.inf) -> None:
        self._ratio = ratio
        self._idle_after = idle_after
        self._newest = -math.inf
        self._clock = -math.inf
        self._step = 0.0
        self._missed_at: float | None = None

    @property
    def is_held(self) -> bool:
        """Whether a part of the stream is read behind the rest."""
        return self._clock < self._newest

    @property
    def has_started(self) -> bool:
        """Whether it has seen a batch. From the first one alone nothing can be said about the order of arrival."""
        return math.isfinite(self._newest)

    @property
    def newest(self) -> float:
        """The newest arrival."""
        return self._newest

    def observe(
        self, newest: float, began: float | None, values: NDArray[np.float64], counts: NDArray[np.int64], now: float
    ) -> float:
        """The clock after a batch; it retreats if the batch shows that it was too far ahead.

        :param newest: the newest arrival in the batch, ``began`` the first one (None: unknown).
        :param values: the event times of its rows, ``counts`` how many rows have each.
        :param now: the real time, in the same unit.
        """
        held_back = self._newest - self._clock if self.is_held else 0.0
        behind = self._behind(began, values, counts)
        self._newest = max(self._newest, newest)
        clock = self._newest - behind
        if held_back and clock > self._clock:
            span = 0.0 if began is None else newest - began
            farthest = self._clock + FASTEST * max(self._step, span, 1.0)
            if clock <= farthest:
                self._missed_at = None
            elif self._waits(held_back, now):
                return self._clock
            clock = min(clock, farthest)
        else:
            self._missed_at = None
        if math.isfinite(self._clock):
            self._step = max(clock - self._clock, 0.0)
        self._clock = clock
        return clock

    def _waits(self, held_back: float, now: float) -> bool:
        """Whether the partition for which the clock was held back, and of which a batch had no row, is waited for."""
        if held_back <= self._idle_after:
            return False
        if self._missed_at is None:
            self._missed_at = now
        return now - self._missed_at <= self._idle_after

    def _behind(self, began: float | None, values: NDArray[np.float64], counts: NDArray[np.int64]) -> float:
        """How far the slowest part of the batch is behind the newest arrival before it."""
        if began is None or not began < self._newest < math.inf:
            return 0.0
        middle = (began + self._newest) / 2.0
        behind = counts[values < middle].sum()
        return self._newest - began if behind > self._ratio * counts.sum() else 0.0

    def release(self) -> float:
        """The clock once the source has nothing more to hand over: the newest arrival."""
        self._clock, self._missed_at = self._newest, None
        return self._clock

    def snapshot(self) -> dict[str, Any]:
        """The state as JSON."""
        if not math.isfinite(self._newest):
            return {}
        state = {"newest": self._newest, "clock": self._clock, "step": self._step}
        return state if self._missed_at is None else {**state, "missed_at": self._missed_at}

    def resume(self, snapshot: dict[str, Any]) -> None:
        """Restore the state from a snapshot."""
        if snapshot:
            self._newest, self._clock, self._step = snapshot["newest"], snapshot["clock"], snapshot["step"]
            self._missed_at = snapshot.get("missed_at")
