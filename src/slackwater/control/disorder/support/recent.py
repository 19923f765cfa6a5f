"""Mean and standard deviation over the latest batches, for methods that see histograms instead of rows."""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass

import numpy as np

from slackwater.control.disorder.protocol import Floats, Ints


@dataclass(frozen=True, slots=True)
class Moments:
    """How many rows, their mean, the standard deviation, and the clock's span from before the first to the last."""

    rows: int
    mean: float
    sd: float
    span: float


class RecentBatches:
    """The latest batches that together hold at least so many rows: whole batches, as their inner order is unknown.

    Costs a few numbers a batch, and at most one entry a row.
    """

    def __init__(self) -> None:
        self._batches: deque[tuple[int, float, float, float]] = deque()
        self._before: float | None = None

    def add(self, values: Floats, weights: Ints, clock: float, keep_rows: float) -> Moments:
        """Take a batch in and drop the ones no longer needed; the moments of what is left."""
        rows = int(weights.sum())
        mean = float(np.dot(values, weights)) / rows
        squares = float(np.dot((values - mean) ** 2, weights))
        if self._before is None:
            self._before = clock
        self._batches.append((rows, mean, squares, clock))
        total = sum(batch[0] for batch in self._batches)
        while total - self._batches[0][0] >= keep_rows:
            gone = self._batches.popleft()
            total -= gone[0]
            self._before = gone[3]
        return self._moments(total)

    def _moments(self, total: int) -> Moments:
        counts = np.array([batch[0] for batch in self._batches], dtype=np.float64)
        means = np.array([batch[1] for batch in self._batches])
        mean = float(np.dot(counts, means)) / total
        squares = sum(batch[2] for batch in self._batches) + float(np.dot(counts, (means - mean) ** 2))
        assert self._before is not None
        return Moments(total, mean, math.sqrt(max(squares, 0.0) / total), self._batches[-1][3] - self._before)

    def snapshot(self) -> list[list[float]]:
        """As JSON."""
        head = [] if self._before is None else [[self._before]]
        return head + [list(batch) for batch in self._batches]

    def resume(self, snapshot: list[list[float]]) -> None:
        """Go on from a snapshot."""
        self._before = snapshot[0][0] if snapshot else None
        self._batches = deque((int(rows), mean, squares, clock) for rows, mean, squares, clock in snapshot[1:])
