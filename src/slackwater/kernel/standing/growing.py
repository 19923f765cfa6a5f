"""An array that grows at its end and shrinks at its front."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray


class GrowingArray:
    """Rows in a buffer that is up to twice as long as needed, so that it moves rarely.

    >>> some = GrowingArray(np.arange(3))
    >>> some.extend(np.array([7, 8]))
    >>> some.drop(4)
    >>> some.rows.tolist()
    [8]
    """

    def __init__(self, rows: NDArray[Any]) -> None:
        self._buffer, self._start, self._end = rows, 0, len(rows)

    def __len__(self) -> int:
        return self._end - self._start

    @property
    def rows(self) -> NDArray[Any]:
        """All rows, not copied."""
        return self._buffer[self._start : self._end]

    def extend(self, more: NDArray[Any]) -> None:
        """Add rows at the end."""
        end = self._end + len(more)
        if end > len(self._buffer):
            rows = self.rows
            self._buffer = np.empty((2 * (len(rows) + len(more)), *rows.shape[1:]), dtype=rows.dtype)
            self._buffer[: len(rows)] = rows
            self._start, self._end, end = 0, len(rows), len(rows) + len(more)
        self._buffer[self._end : end] = more
        self._end = end

    def drop(self, count: int) -> None:
        """Remove rows at the front."""
        self._start += count
