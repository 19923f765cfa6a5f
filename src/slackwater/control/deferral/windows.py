"""The maximum of a moving window: how long it is certain not to fall by more than the bound."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def certain_time(block: Floats, times: Floats, now: float, window: float, bound: Floats) -> Floats:
    """φ1 (Zhu 2004, Theorem 1): how long the window still holds a value above its maximum minus the bound.

    Whatever values come, the maximum cannot fall below that before then. One scan of the window.

    :param block: queries × ticks: the aggregate at each tick of the window [now − window, now], oldest first; NaN
        while it was not known.
    :return: the time from now; the window's length if no value in it is that far below the maximum.

    >>> block = np.array([[9.0, 5.0, 4.0], [9.0, 5.0, 8.9]])
    >>> certain_time(block, np.array([0.0, 1.0, 2.0]), 2.0, 2.0, np.array([1.0, 1.0])).tolist()
    [0.0, 2.0]
    """
    largest_from_here = np.fmax.accumulate(block[:, ::-1], axis=1)[:, ::-1]
    high = np.count_nonzero(largest_from_here > largest_from_here[:, :1] - bound[:, None], axis=1)
    # The last high tick leaves the window when the trailing edge passes it.
    leaves = times[np.maximum(high - 1, 0)] + window - now
    return np.where(high == block.shape[1], window, np.where(high == 0, 0.0, leaves))
