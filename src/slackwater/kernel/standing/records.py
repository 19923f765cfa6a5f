"""All that an evaluation reads of a query, in one piece: what is held of it, its weights and its streams.

A deferred tick reads a twelfth of the queries, none beside another. What it costs are the cache lines it touches: five
a query of nine streams where answers, weights and streams lie in three arrays, two where they lie together and a
stream is a short number.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from slackwater.kernel.standing.aligned import LINE, aligned_rows

Ints = NDArray[np.int64]

_HALF_LINE = LINE // 2
_AT_ONCE = 8192  # what is taken apart again must still be in the cache


class Records:
    """A record each of queries that all have ``width`` streams; gives the same weights as the matrix itself.

    A record begins with what is held, which may be changed in ``memory``. It costs as much memory as what is held and
    the matrix: 10 bytes an entry (12 above 65 536 streams), rounded up a record to half cache lines.
    """

    def __init__(self, held: NDArray[Any], weights: sparse.csr_matrix, width: int) -> None:
        self._width, self._kind = width, weights.indices.dtype
        self._short = short = np.dtype(np.uint16 if weights.shape[1] <= 1 << 16 else weights.indices.dtype)
        first = held.itemsize
        used = first + width * (8 + short.itemsize)
        size = -(-used // _HALF_LINE) * _HALF_LINE
        self._record = np.dtype({
            "names": ["held", "weight", "stream"],
            "formats": [(np.void, first), (np.void, 8 * width), (np.void, short.itemsize * width)],
            "offsets": [0, first, first + 8 * width],
            "itemsize": size,
        })  # fmt: skip
        self.memory = aligned_rows(len(held), size)
        whole = self.memory.view(self._record)
        whole["held"] = held
        whole["weight"] = weights.data.view(self._record["weight"])
        whole["stream"] = weights.indices.astype(short).view(self._record["stream"])

    def take(self, chosen: Ints, streams: int) -> tuple[NDArray[Any], sparse.csr_matrix]:
        """What is held of some queries, and their weights over so many streams."""
        count, width = len(chosen), self._width
        held = np.empty(count, dtype=self._record["held"])
        data, indices = np.empty(count * width), np.empty(count * width, dtype=self._kind)
        weights = data.view(self._record["weight"])
        some = np.empty(min(count, _AT_ONCE), dtype=self.memory.dtype)
        short = np.empty(len(some) * width, dtype=self._short)
        for at in range(0, count, _AT_ONCE):
            here = slice(at, min(at + _AT_ONCE, count))
            found = some[: here.stop - at]
            np.take(self.memory, chosen[here], out=found, mode="clip")  # only then is it not copied once more
            records = found.view(self._record)
            held[here] = records["held"]
            weights[here] = records["weight"]
            # Moved in one piece and made long numbers afterwards, all at once.
            streams_here = short[: len(records) * width]
            streams_here.view(self._record["stream"])[:] = records["stream"]
            indices[at * width : here.stop * width] = streams_here
        starts = np.arange(0, count * width + 1, width, dtype=self._kind)
        return held, sparse.csr_matrix((data, indices, starts), shape=(count, streams))
