"""What every stream was believed to be at the last ticks."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

Floats = NDArray[np.float64]


class History:
    """The values of all streams at recent ticks: at least ``least`` ticks, and all not older than ``keep``.

    It costs 8 bytes a stream and tick, twice over (it moves only when the second half is full).
    """

    def __init__(self, streams: int, least: int, keep: float = 0.0) -> None:
        self._least, self._keep = least, keep
        self._values = np.zeros((2 * least, streams))
        self._times = np.zeros(2 * least)
        self._start = self._end = 0
        self.ticks = 0

    def append(self, now: float, values: Floats) -> None:
        """One more tick."""
        if self._end == len(self._times):
            self._make_room()
        self._values[self._end] = values
        self._times[self._end] = now
        self._end += 1
        self.ticks += 1
        old = self._end - self._least
        if old > self._start:
            self._start = min(old, int(np.searchsorted(self._times[: self._end], now - self._keep)))

    def _make_room(self) -> None:
        held = self._end - self._start
        size = max(2 * held, len(self._times))
        values, times = np.zeros((size, self._values.shape[1])), np.zeros(size)
        values[:held], times[:held] = self._values[self._start : self._end], self._times[self._start : self._end]
        self._values, self._times, self._start, self._end = values, times, 0, held

    def grow(self, streams: int) -> None:
        """Make room for more streams; their past is zero, and nobody who needs them has an answer yet."""
        more = streams - self._values.shape[1]
        if more > 0:
            self._values = np.concatenate([self._values, np.zeros((len(self._values), more))], axis=1)

    @property
    def times(self) -> Floats:
        """Tick times, oldest first."""
        return self._times[self._start : self._end]

    @property
    def values(self) -> Floats:
        """Ticks × streams, oldest first."""
        return self._values[self._start : self._end]

    def aggregates(self, rows: sparse.csr_matrix, at: NDArray[np.int64], width: int = 0) -> Floats:
        """The weighted sum of each row at the tick of its own, counted from the oldest held.

        ``width``: how many entries every row has, unless they differ.
        """
        ticks, streams = self.values.shape
        kind = rows.indices.dtype if ticks * streams <= np.iinfo(rows.indices.dtype).max else np.int64
        # A stream at a tick is a column: one product looks up and adds.
        first = (at * streams).astype(kind)
        if width:
            columns = (rows.indices.reshape(-1, width) + first[:, np.newaxis]).ravel()
        else:
            columns = rows.indices + np.repeat(first, np.diff(rows.indptr))
        there = sparse.csr_matrix((rows.data, columns, rows.indptr), shape=(len(at), ticks * streams))
        return np.asarray(there @ self.values.reshape(-1), dtype=np.float64)

    @property
    def first_tick(self) -> int:
        """The number of the oldest tick held, counting from 0."""
        return self.ticks - (self._end - self._start)

    def snapshot(self) -> dict[str, NDArray[np.float64] | NDArray[np.int64]]:
        """Everything, as arrays by name."""
        return {"times": self.times.copy(), "values": self.values.copy(), "ticks": np.array([self.ticks])}

    def resume(self, snapshot: dict[str, NDArray[np.float64] | NDArray[np.int64]]) -> None:
        """Go on from a snapshot."""
        held = len(snapshot["times"])
        size = max(2 * held, 2 * self._least)
        self._values, self._times = np.zeros((size, snapshot["values"].shape[1])), np.zeros(size)
        self._values[:held], self._times[:held] = snapshot["values"], snapshot["times"]
        self._start, self._end, self.ticks = 0, held, int(snapshot["ticks"][0])
