"""The offline optimum: the fewest evaluations that would have kept an answer within its bound at every tick."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def fewest_evaluations(series: Floats, bound: Floats | float) -> int:
    """The fewest evaluations of one query.

    An answer given at tick i stands until the first tick outside its bound. The next answer may be given at any tick
    until then, so the furthest tick that n answers can cover is found level by level. Costs ticks × deferral.

    :param series: the true value at every tick.
    :param bound: the bound of an answer given at each tick.

    >>> fewest_evaluations(np.array([0.0, 1.0, 2.0, 1.0, 0.0]), 1.0)
    2
    """
    ticks = len(series)
    if ticks == 0:
        return 0
    ends = _ends(series, np.broadcast_to(np.asarray(bound, dtype=np.float64), ticks))
    answers, scanned, reach = 1, 1, int(ends[0])
    while reach < ticks:
        # The next answer may be given at any tick up to `reach`. The best is the one that stands longest.
        reach, scanned = max(reach, int(ends[scanned : reach + 1].max())), reach + 1
        answers += 1
    return answers


def _ends(series: Floats, bound: Floats) -> NDArray[np.int64]:
    """For every tick, the first later tick outside the bound of an answer given there."""
    ticks = len(series)
    ends = np.full(ticks, ticks, dtype=np.int64)
    standing = np.arange(ticks)
    ahead = 1
    while len(standing):
        standing = standing[standing + ahead < ticks]
        out = np.abs(series[standing + ahead] - series[standing]) > bound[standing]
        ends[standing[out]] = standing[out] + ahead
        standing = standing[~out]
        ahead += 1
    return ends
