"""The last rows of every stream, and what each adds to the one before it.

What estimates are made of is worked out once, when a row comes, and not from all rows at every estimate: Algorithm 2
estimates a steady stream anew every few ticks, and then a sum over a ring is all that is left to do.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

_CANCELLED = 1e-6  # where less than this is left of a sum of squares, its rounding would show


class RecentRows:
    """A ring of ``k`` rows a stream: values, times, the gap before each row and its step, squared, over the gap.

    Gap and square are zero in a cell that is empty, and for the oldest row, which follows none: sums need no mask.
    It costs 32·k bytes a stream; values and times alone are needed to go on.
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
        """A row each of some streams, after the rows they have."""
        items = self.items[streams]
        # A cell by one number, a row's place and its column: half the time of a look-up by two.
        rows = streams * self.k
        turn = items % self.k
        at, before = rows + turn, rows + np.where(turn > 0, turn, self.k) - 1
        with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
            gaps, steps = times - self.times.take(before), values - self.values.take(before)
            squares = steps * (steps / gaps)
        first = items == 0
        if np.any(first):
            gaps[first] = squares[first] = 0.0
        self.values.put(at, values)
        self.times.put(at, times)
        after = rows + np.where(turn < self.k - 1, turn + 1, 0)  # the oldest row from now on, or a cell that is empty
        for ring, fresh in ((self.gaps, gaps), (self._squares, squares)):
            ring.put(at, fresh)
            ring.put(after, 0.0)
        self.items[streams] = items + 1

    def held(self, due: Ints) -> Ints:
        """How many rows some streams have."""
        return np.minimum(self.items[due], self.k)

    def rise(self, due: Ints) -> Floats:
        """From the oldest row to the newest."""
        items = self.items[due]
        turn, rows = items % self.k, due * self.k
        newest, oldest = np.where(turn > 0, turn, self.k) - 1, np.where(items >= self.k, turn, 0)
        return np.asarray(self.values.take(rows + newest) - self.values.take(rows + oldest), dtype=np.float64)

    def residual(self, due: Ints, drift: Floats, span: Floats) -> Floats:
        """Σ (step − drift·gap)² / gap, where the drift is the rise over the span."""
        squares = of_streams(self._squares, due).sum(axis=1)
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
        """A stream's times and values, oldest first."""
        items = int(self.items[stream])
        turn = np.arange(max(items - self.k, 0), items) % self.k
        return self.times[stream, turn], self.values[stream, turn]

    def resume(self, items: NDArray[Any], times: NDArray[Any], values: NDArray[Any]) -> None:
        """Go on from rows that were put away."""
        self.items, self.times, self.values = (
            items.astype(np.int64),
            times.astype(np.float64),
            values.astype(np.float64),
        )
        gaps, steps = _steps(self.times), _steps(self.values)
        none = np.arange(self.k)[None, :] >= self.items[:, None]
        none[np.arange(len(self.items)), np.where(self.items >= self.k, self.items % self.k, 0)] = True
        with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
            squares = steps * (steps / gaps)
        self.gaps, self._squares = np.where(none, 0.0, gaps), np.where(none, 0.0, squares)


def of_streams(ring: Floats, due: Ints) -> Floats:
    """Some streams' cells, not copied where it is all of them, in order."""
    return ring if len(due) == len(ring) else ring[due]


def _steps(ring: Floats) -> Floats:
    """What each cell adds to the one before it."""
    steps = np.empty_like(ring)
    np.subtract(ring[:, 1:], ring[:, :-1], out=steps[:, 1:])
    np.subtract(ring[:, 0], ring[:, -1], out=steps[:, 0])
    return steps
