"""The last known values of all streams at recent ticks."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

Floats = NDArray[np.float64]


class History:
    """The values at the last ``least`` ticks.

    Costs 16 bytes per stream and tick: the buffer is twice as long as needed, so that it moves rarely.
    """

    def __init__(self, streams: int, least: int) -> None:
        self._least = least
        self._values = np.zeros((2 * least, streams))
        self._times = np.zeros(2 * least)
        self._start = self._end = 0
        self.ticks = 0

    def append(self, now: float, values: Floats) -> None:
        """Add a tick and forget the oldest one if there are enough."""
        if self._end == len(self._times):
            self._make_room()
        self._values[self._end] = values
        self._times[self._end] = now
        self._end += 1
        self.ticks += 1
        self._start = max(self._start, self._end - self._least)

    def _make_room(self) -> None:
        count = self._end - self._start
        self._values[:count] = self._values[self._start : self._end].copy()
        self._times[:count] = self._times[self._start : self._end].copy()
        self._start, self._end = 0, count

    def grow(self, streams: int) -> None:
        """Make room for more streams. Their past is zero; no query that needs them has an answer yet."""
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

    def aggregates(self, weights: sparse.csr_matrix, at: NDArray[np.int64]) -> Floats:
        """The weighted sum of each row of ``weights`` at its own tick ``at``, counted from the oldest tick kept."""
        ticks, streams = self.values.shape
        index_type = weights.indices.dtype if ticks * streams <= np.iinfo(weights.indices.dtype).max else np.int64
        # With one column per (tick, stream), a single sparse product looks up and adds.
        first = (at * streams).astype(index_type)
        columns = weights.indices + np.repeat(first, np.diff(weights.indptr))
        shifted = sparse.csr_matrix((weights.data, columns, weights.indptr), shape=(len(at), ticks * streams))
        return np.asarray(shifted @ self.values.reshape(-1), dtype=np.float64)

    @property
    def first_tick(self) -> int:
        """The number of the oldest tick kept. The first tick of all is 0."""
        return self.ticks - (self._end - self._start)

    def snapshot(self) -> dict[str, NDArray[np.float64] | NDArray[np.int64]]:
        """The whole state as arrays by name."""
        return {"times": self.times.copy(), "values": self.values.copy(), "ticks": np.array([self.ticks])}

    def resume(self, snapshot: dict[str, NDArray[np.float64] | NDArray[np.int64]]) -> None:
        """Continue from a snapshot."""
        count = len(snapshot["times"])
        self._values, self._times = np.zeros((2 * self._least, snapshot["values"].shape[1])), np.zeros(2 * self._least)
        self._values[:count], self._times[:count] = snapshot["values"], snapshot["times"]
        self._start, self._end, self.ticks = 0, count, int(snapshot["ticks"][0])
