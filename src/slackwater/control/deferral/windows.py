"""The largest value of a moving window: how long it is certain not to fall by more than the bound."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def certain_time(block: Floats, times: Floats, now: float, window: float, bound: Floats) -> Floats:
    """φ1: until then the window still holds a value above its present maximum less the bound, whatever comes.

    ``block`` has a row a query: its aggregate at each tick of the window [now − window, now], oldest first. One scan
    (Zhu 2004, Theorem 1). It is the window's length where nothing in the window is that much below the maximum.

    >>> block = np.array([[9.0, 5.0, 4.0], [9.0, 5.0, 8.9]])
    >>> certain_time(block, np.array([0.0, 1.0, 2.0]), 2.0, 2.0, np.array([1.0, 1.0])).tolist()
    [0.0, 2.0]
    """
    from_here_on = np.maximum.accumulate(block[:, ::-1], axis=1)[:, ::-1]
    high = np.count_nonzero(from_here_on > from_here_on[:, :1] - bound[:, None], axis=1)
    # The last of the high ticks leaves the window when the trailing edge passes it.
    leaves = times[np.maximum(high - 1, 0)] + window - now
    return np.where(high == block.shape[1], window, np.where(high == 0, 0.0, leaves))
