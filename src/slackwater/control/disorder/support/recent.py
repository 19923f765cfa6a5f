"""Mean and standard deviation over the latest batches, for methods that receive histograms instead of rows."""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass

import numpy as np

from slackwater.control.disorder.protocol import Floats, Ints


@dataclass(frozen=True, slots=True)
class Moments:
    """Number of rows, mean, standard deviation, and the time from the clock before the first batch to the last one."""

    rows: int
    mean: float
    sd: float
    span: float


class RecentBatches:
    """The shortest run of latest batches with at least the wanted number of rows.

    Batches are kept whole, because the order of rows within a batch is unknown. Costs four numbers per kept batch.
    """

    def __init__(self) -> None:
        self._batches: deque[tuple[int, float, float, float]] = deque()  # rows, mean, sum of squares, clock
        self._before: float | None = None

    def add(self, values: Floats, weights: Ints, clock: float, keep_rows: float) -> Moments:
        """Add a batch, drop batches that ``keep_rows`` no longer needs, and return the moments of the rest."""
        rows = int(weights.sum())
        mean = float(np.dot(values, weights)) / rows
        squares = float(np.dot((values - mean) ** 2, weights))
        if self._before is None:
            self._before = clock
        self._batches.append((rows, mean, squares, clock))
        total = sum(batch[0] for batch in self._batches)
        while total - self._batches[0][0] >= keep_rows:
            dropped = self._batches.popleft()
            total -= dropped[0]
            self._before = dropped[3]
        return self._moments(total)

    def _moments(self, total: int) -> Moments:
        counts = np.array([batch[0] for batch in self._batches], dtype=np.float64)
        means = np.array([batch[1] for batch in self._batches])
        mean = float(np.dot(counts, means)) / total
        squares = sum(batch[2] for batch in self._batches) + float(np.dot(counts, (means - mean) ** 2))
        assert self._before is not None
        return Moments(total, mean, math.sqrt(max(squares, 0.0) / total), self._batches[-1][3] - self._before)

    def snapshot(self) -> list[list[float]]:
        """The clock before the first kept batch, and the kept batches, as JSON."""
        head = [] if self._before is None else [[self._before]]
        return head + [list(batch) for batch in self._batches]

    def resume(self, snapshot: list[list[float]]) -> None:
        """Restore the state from a snapshot."""
        self._before = snapshot[0][0] if snapshot else None
        self._batches = deque((int(rows), mean, squares, clock) for rows, mean, squares, clock in snapshot[1:])
