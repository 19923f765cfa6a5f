"""Aggregates over many overlapping intervals of one sorted column, all at once."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from slackwater.kernel.rows import Floats, Ints


def aggregate_intervals(name: str, values: Floats, low: Ints, high: Ints) -> Floats:
    """The aggregate of ``values[low[i]:high[i]]`` for every i; NaN values are nulls and are left out.

    COUNT, SUM, AVG and the variances cost O(rows + intervals), MIN and MAX O(rows · log of the longest
    interval). Sums are taken around the column's middle, so that they do not drown in a large offset; they are
    exact for whole numbers below 2⁵³, and otherwise as good as a sum of all rows.

    >>> aggregate_intervals("max", np.array([3.0, 1.0, 2.0]), np.array([0, 1]), np.array([2, 3]))
    array([3., 2.])
    """
    return AGGREGATES[name](values, low, high)


def _prefix(values: Floats) -> Floats:
    sums = np.empty(len(values) + 1)
    sums[0] = 0.0
    np.cumsum(values, out=sums[1:])
    return sums


def _count(values: Floats, low: Ints, high: Ints) -> Floats:
    nulls = np.isnan(values)
    if not nulls.any():
        return (high - low).astype(np.float64)
    counts = _prefix((~nulls).astype(np.float64))
    return counts[high] - counts[low]


def _centre(values: Floats) -> float:
    if not len(values) or np.all(np.isnan(values)):
        return 0.0
    middle = float(np.nanmean(values))
    return float(np.round(middle)) if np.isfinite(middle) else 0.0


def _sum(values: Floats, low: Ints, high: Ints) -> Floats:
    count = _count(values, low, high)
    centre = _centre(values)
    sums = _prefix(np.nan_to_num(values - centre, nan=0.0))
    return np.where(count > 0, sums[high] - sums[low] + centre * count, np.nan)


def _avg(values: Floats, low: Ints, high: Ints) -> Floats:
    count = _count(values, low, high)
    with np.errstate(invalid="ignore", divide="ignore"):
        return _sum(values, low, high) / count


def _spread(sample: bool, root: bool) -> Callable[[Floats, Ints, Ints], Floats]:
    def spread(values: Floats, low: Ints, high: Ints) -> Floats:
        count = _count(values, low, high)
        shifted = np.nan_to_num(values - _centre(values), nan=0.0)
        sums, squares = _prefix(shifted), _prefix(shifted * shifted)
        with np.errstate(invalid="ignore", divide="ignore"):
            total = sums[high] - sums[low]
            around = np.maximum(squares[high] - squares[low] - total * total / count, 0.0)
            answer = np.where(count > sample, around / (count - sample), np.nan)
        return np.sqrt(answer) if root else answer

    return spread


def _extreme(better: np.ufunc, worst: float) -> Callable[[Floats, Ints, Ints], Floats]:
    """MIN or MAX by a sparse table: level k holds the best of 2ᵏ neighbours, and two of them cover any interval."""

    def extreme(values: Floats, low: Ints, high: Ints) -> Floats:
        answer = np.full(len(low), np.nan)
        length = high - low
        if not len(values) or not len(low):
            return answer
        level_of = np.frexp(np.maximum(length, 1).astype(np.float64))[1] - 1
        level_of[length <= 0] = -1
        nulls = np.isnan(values)
        table = np.where(nulls, worst, values) if nulls.any() else values
        wanted = np.bincount(level_of[level_of >= 0], minlength=1)
        spare = (
            np.empty_like(table),
            np.empty_like(table),
        )  # two levels at a time: fresh memory costs more than the work
        for level in range(len(wanted)):
            if level:
                step = 1 << (level - 1)
                table = better(table[:-step], table[step:], out=spare[level % 2][: len(table) - step])
            if not wanted[level]:
                continue
            chosen = slice(None) if wanted[level] == len(low) else np.flatnonzero(level_of == level)
            answer[chosen] = better(table[low[chosen]], table[high[chosen] - (1 << level)])
        if nulls.any():
            answer[_count(values, low, high) == 0] = np.nan
        return answer

    return extreme


def _first(values: Floats, low: Ints, high: Ints) -> Floats:
    return _pick(values, low, high, low)


def _last(values: Floats, low: Ints, high: Ints) -> Floats:
    return _pick(values, low, high, high - 1)


def _pick(values: Floats, low: Ints, high: Ints, index: Ints) -> Floats:
    answer = np.full(len(low), np.nan)
    some = high > low
    answer[some] = values[index[some]]
    return answer


AGGREGATES: dict[str, Callable[[Floats, Ints, Ints], Floats]] = {
    "count": _count,
    "sum": _sum,
    "avg": _avg,
    "min": _extreme(np.minimum, np.inf),
    "max": _extreme(np.maximum, -np.inf),
    "var_pop": _spread(False, False),
    "var_samp": _spread(True, False),
    "stddev_pop": _spread(False, True),
    "stddev_samp": _spread(True, True),
    "first": _first,
    "last": _last,
}
