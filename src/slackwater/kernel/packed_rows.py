"""Rows of weights that are read all over the table: each row in one piece, a whole number of half cache lines long.

A deferred tick reads a twelfth of the rows, none beside another. What it costs are the cache lines it touches: four a
row of nine where weights and streams lie in two arrays, two where they lie together and a stream is a short number.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from slackwater.kernel.aligned import LINE, aligned_rows

Ints = NDArray[np.int64]

_HALF_LINE = LINE // 2
_AT_ONCE = 8192  # what is taken apart again must still be in the cache


class PackedRows:
    """A copy of a matrix whose rows all have ``width`` entries; gives the same rows as the matrix itself.

    It costs as much memory as the matrix again: 10 bytes an entry (12 above 65 536 streams), rounded up a row.
    """

    def __init__(self, weights: sparse.csr_matrix, width: int) -> None:
        rows, self._streams = weights.shape
        self._width, self._kind = width, weights.indices.dtype
        self._short = short = np.dtype(np.uint16 if self._streams <= 1 << 16 else weights.indices.dtype)
        used = width * (8 + short.itemsize)
        size = -(-used // _HALF_LINE) * _HALF_LINE
        self._row = np.dtype({
            "names": ["weight", "stream"],
            "formats": [(np.void, 8 * width), (np.void, short.itemsize * width)],
            "offsets": [0, 8 * width],
            "itemsize": size,
        })  # fmt: skip
        self._rows = aligned_rows(rows, size)
        whole = self._rows.view(self._row)
        whole["weight"] = weights.data.view(np.dtype((np.void, 8 * width)))
        whole["stream"] = weights.indices.astype(short).view(self._row["stream"])

    def take(self, chosen: Ints) -> sparse.csr_matrix:
        """Some rows."""
        count, width = len(chosen), self._width
        data, indices = np.empty(count * width), np.empty(count * width, dtype=self._kind)
        pieces = data.view(self._row["weight"])
        some = np.empty(min(count, _AT_ONCE), dtype=self._rows.dtype)
        streams = np.empty(len(some) * width, dtype=self._short)
        for at in range(0, count, _AT_ONCE):
            here = slice(at, min(at + _AT_ONCE, count))
            found = some[: here.stop - at]
            np.take(self._rows, chosen[here], out=found, mode="clip")  # only then is it not copied once more
            rows = found.view(self._row)
            pieces[here] = rows["weight"]
            # Moved in one piece and made long numbers afterwards, all at once.
            short = streams[: len(found) * width]
            short.view(self._row["stream"])[:] = rows["stream"]
            indices[at * width : here.stop * width] = short
        starts = np.arange(0, count * width + 1, width, dtype=self._kind)
        return sparse.csr_matrix((data, indices, starts), shape=(count, self._streams))
