"""The last k rows of every stream, with the terms of the estimates computed once per row.

Algorithm 2 re-estimates a steady stream every few ticks. With precomputed terms an estimate is only a sum over a ring.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

_CANCELLED = 1e-6  # if a difference keeps less than this of a sum of squares, rounding errors dominate it


class RecentRows:
    """A ring of ``k`` rows per stream: value, time, gap to the previous row, and step² / gap.

    The gap and the square are zero in an empty cell and for the oldest row, so that sums need no mask. Costs 32·k bytes
    per stream. Values and times are enough to rebuild the rest.
    """

    def __init__(self, streams: int, k: int) -> None:
        self.k = k
        self.items = np.zeros(streams, dtype=np.int64)
        self.values = np.zeros((streams, k))
        self.times = np.zeros((streams, k))
        self.gaps = np.zeros((streams, k))
        self._squares = np.zeros((streams, k))

    def grow(self, streams: int) -> None:
        """Make room for more streams."""
        fresh = RecentRows(max(streams - len(self.items), 0), self.k)
        for name in ("items", "values", "times", "gaps", "_squares"):
            setattr(self, name, np.concatenate([getattr(self, name), getattr(fresh, name)]))

    def put(self, streams: Ints, times: Floats, values: Floats) -> None:
        """Append rows, grouped by stream, oldest first within a stream. Costs a few passes over the rows."""
        if len(streams) == 0:
            return
        first = np.flatnonzero(np.concatenate([[True], streams[1:] != streams[:-1]]))
        own = streams[first]
        counts = np.diff(first, append=len(streams))
        items, rings = self.items[own], own * self.k  # a flat index takes half the time of a (row, column) pair
        newest = rings + (items - 1) % self.k
        gaps, steps = np.diff(times, prepend=0.0), np.diff(values, prepend=0.0)
        gaps[first], steps[first] = times[first] - self.times.take(newest), values[first] - self.values.take(newest)
        with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
            squares = steps * (steps / gaps)
        fresh = first[items == 0]
        gaps[fresh] = squares[fresh] = 0.0
        nth = np.arange(len(streams)) - np.repeat(first, counts)
        at = np.repeat(rings, counts) + (np.repeat(items, counts) + nth) % self.k
        last = slice(None) if counts.max() <= self.k else nth >= np.repeat(counts, counts) - self.k
        for ring, column in ((self.values, values), (self.times, times), (self.gaps, gaps), (self._squares, squares)):
            ring.put(at[last], column[last])
        self.items[own] = items + counts
        oldest = rings + (items + counts) % self.k  # or an empty cell
        self.gaps.put(oldest, 0.0)
        self._squares.put(oldest, 0.0)

    def buffered(self, due: Ints) -> Ints:
        """The number of rows in the rings of some streams."""
        return np.minimum(self.items[due], self.k)

    def rise(self, due: Ints) -> Floats:
        """The newest value minus the oldest one, for some streams."""
        items = self.items[due]
        turn, rows = items % self.k, due * self.k
        newest, oldest = np.where(turn > 0, turn, self.k) - 1, np.where(items >= self.k, turn, 0)
        return np.asarray(self.values.take(rows + newest) - self.values.take(rows + oldest), dtype=np.float64)

    def residual(self, due: Ints, drift: Floats, span: Floats) -> Floats:
        """Σ (step − drift·gap)² / gap, where the drift is the rise over the span."""
        squares = select_streams(self._squares, due).sum(axis=1)
        with np.errstate(over="ignore", invalid="ignore"):
            residual = np.asarray(squares - np.square(drift) * span, dtype=np.float64)
            straight = np.flatnonzero(~(residual > _CANCELLED * squares))
        if len(straight):
            residual[straight] = self._term_by_term(due[straight], drift[straight])
        return residual

    def _term_by_term(self, due: Ints, drift: Floats) -> Floats:
        gaps = self.gaps[due]
        steps = np.where(gaps > 0.0, _steps(self.values[due]), 0.0)
        with np.errstate(over="ignore", invalid="ignore"):
            steps -= gaps * drift[:, None]
            return np.asarray(np.einsum("ij,ij->i", steps, steps / np.where(gaps > 0.0, gaps, 1.0)), dtype=np.float64)

    def in_order(self, stream: int) -> tuple[Floats, Floats]:
        """The times and values of one stream, oldest first."""
        items = int(self.items[stream])
        turn = np.arange(max(items - self.k, 0), items) % self.k
        return self.times[stream, turn], self.values[stream, turn]

    def resume(self, items: NDArray[Any], times: NDArray[Any], values: NDArray[Any]) -> None:
        """Continue from rows that were saved."""
        self.items, self.times, self.values = (
            items.astype(np.int64),
            times.astype(np.float64),
            values.astype(np.float64),
        )
        gaps, steps = _steps(self.times), _steps(self.values)
        empty = np.arange(self.k)[None, :] >= self.items[:, None]
        empty[np.arange(len(self.items)), np.where(self.items >= self.k, self.items % self.k, 0)] = True
        with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
            squares = steps * (steps / gaps)
        self.gaps, self._squares = np.where(empty, 0.0, gaps), np.where(empty, 0.0, squares)


def select_streams(ring: Floats, due: Ints) -> Floats:
    """The rings of some streams, given in rising order. Not a copy if it is all of them."""
    return ring if len(due) == len(ring) else ring[due]


def _steps(ring: Floats) -> Floats:
    """The difference between each cell and the one before it, around the ring."""
    steps = np.empty_like(ring)
    np.subtract(ring[:, 1:], ring[:, :-1], out=steps[:, 1:])
    np.subtract(ring[:, 0], ring[:, -1], out=steps[:, 0])
    return steps
