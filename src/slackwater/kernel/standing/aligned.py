"""Rows that begin where cache lines do, so that a row read alone touches no line more than it must."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

LINE = 64


def aligned_rows(count: int, size: int) -> NDArray[Any]:
    """So many rows of ``size`` bytes, all zero, each in one piece; the first one on the border of a line.

    NumPy's own arrays begin 16 bytes after one, where every second row of half a line lies in two.

    >>> rows = aligned_rows(3, 32)
    >>> rows.shape, rows.itemsize, rows.ctypes.data % LINE
    ((3,), 32, 0)
    """
    memory = np.zeros(count * size + LINE, dtype=np.uint8)
    begin = -memory.ctypes.data % LINE
    return memory[begin : begin + count * size].view(np.dtype((np.void, size)))
