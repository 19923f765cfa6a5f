"""Aggregates over many overlapping intervals of one column, computed together."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from slackwater.kernel.windows.rows import Floats, Ints

_BLOCK = 64
_ROWS_PER_CUT = 512  # one cut costs about as much as this many rows do by blocks


def aggregate_intervals(name: str, values: Floats, low: Ints, high: Ints) -> Floats:
    """The aggregate ``name`` of ``values[low[i]:high[i]]`` for every i. NaN values are nulls and are skipped.

    The cost is O(rows + intervals); MIN and MAX cost slightly more for intervals of many blocks. Sums are differences
    of prefix sums around the column's mean, which keeps precision where values have a large offset. Sums of integers
    below 2⁵³ are exact; other sums have the rounding error of a sum over all rows.

    >>> aggregate_intervals("max", np.array([3.0, 1.0, 2.0]), np.array([0, 1]), np.array([2, 3]))
    array([3., 2.])
    """
    return AGGREGATES[name](values, low, high)


def _prefix_sums(values: Floats) -> Floats:
    sums = np.empty(len(values) + 1)
    sums[0] = 0.0
    np.cumsum(values, out=sums[1:])
    return sums


def _interval_sums(values: Floats, low: Ints, high: Ints) -> Floats:
    sums = _prefix_sums(values)
    return sums[high] - sums[low]


def _count(values: Floats, low: Ints, high: Ints) -> Floats:
    nulls = np.isnan(values)
    if not nulls.any():
        return (high - low).astype(np.float64)
    return _interval_sums((~nulls).astype(np.float64), low, high)


def _around_centre(values: Floats) -> tuple[Floats, float]:
    """The values minus their rounded mean, and that mean. Nulls become zero."""
    middle = float(np.mean(values)) if len(values) else 0.0
    if np.isfinite(middle):
        return values - np.round(middle), float(np.round(middle))
    nulls = np.isnan(values)
    middle = 0.0 if nulls.all() else float(np.round(np.mean(values[~nulls])))
    centre = middle if np.isfinite(middle) else 0.0
    return np.where(nulls, 0.0, values - centre), centre


def _sum(values: Floats, low: Ints, high: Ints) -> Floats:
    count = _count(values, low, high)
    around, centre = _around_centre(values)
    return np.where(count > 0, _interval_sums(around, low, high) + centre * count, np.nan)


def _avg(values: Floats, low: Ints, high: Ints) -> Floats:
    count = _count(values, low, high)
    around, centre = _around_centre(values)
    with np.errstate(invalid="ignore", divide="ignore"):
        return _interval_sums(around, low, high) / count + centre


def _spread(sample: bool, root: bool) -> Callable[[Floats, Ints, Ints], Floats]:
    def spread(values: Floats, low: Ints, high: Ints) -> Floats:
        count = _count(values, low, high)
        around, _ = _around_centre(values)
        with np.errstate(invalid="ignore", divide="ignore"):
            total = _interval_sums(around, low, high)
            squares = np.maximum(_interval_sums(around * around, low, high) - total * total / count, 0.0)
            answer = np.where(count > sample, squares / (count - sample), np.nan)
        return np.sqrt(answer) if root else answer

    return spread


def _extreme(better: np.ufunc, worst: float) -> Callable[[Floats, Ints, Ints], Floats]:
    """MIN or MAX: by cuts if the intervals are long and move forward together, else by blocks."""

    def extreme(values: Floats, low: Ints, high: Ints) -> Floats:
        if not len(values) or not len(low):
            return np.full(len(low), np.nan)
        nulls = np.isnan(values)
        some_null = bool(nulls.any())
        known = np.where(nulls, worst, values) if some_null else values
        cuts = _cuts(low, high)
        if cuts is None:
            answer = _by_blocks(better, worst, known, low, high)
        else:
            answer = _by_cuts(better, worst, known, low, high, cuts)
        if some_null:
            answer[_count(values, low, high) == 0] = np.nan
        return answer

    return extreme


def _cuts(low: Ints, high: Ints) -> Ints | None:
    """Positions such that every interval contains or touches exactly one; None if there are none, or too many.

    They exist only if neither the starts nor the ends of the intervals ever decrease. The next cut is the end of the
    last interval that the current cut touches, because every later interval ends there or after it.
    """
    if np.any(low[1:] < low[:-1]) or np.any(high[1:] < high[:-1]) or np.any(high <= low):
        return None
    most = len(low) // _ROWS_PER_CUT
    if (int(high[-1]) - int(low[0])) > most * float(np.mean(high - low)):
        return None
    cuts, touched = [int(low[0])], int(np.searchsorted(low, low[0], side="right"))
    while touched < len(low):
        if len(cuts) > most:
            return None
        last = int(high[touched - 1])
        cuts.append(last if last > cuts[-1] else int(low[touched]))
        touched = int(np.searchsorted(low, cuts[-1], side="right"))
    return np.array(cuts)


def _by_cuts(better: np.ufunc, worst: float, values: Floats, low: Ints, high: Ints, cuts: Ints) -> Floats:
    """Combine the running extremes from each interval's cut to its two ends.

    van Herk 1992, Gil & Werman 1993, for intervals of any length: two comparisons per row, whatever the length.
    """
    rightwards, leftwards = np.empty(len(values)), np.empty(len(values))
    for start, end in itertools.pairwise([*cuts.tolist(), int(high[-1])]):
        better.accumulate(values[start:end], out=rightwards[start:end])
        better.accumulate(values[start:end][::-1], out=leftwards[start:end][::-1])
    cut = np.repeat(cuts, np.diff(np.searchsorted(low, cuts, side="right"), prepend=0))
    left, right = leftwards[low], rightwards[high - 1]
    left[low == cut] = worst
    right[high == cut] = worst
    return np.asarray(better(left, right, out=left))


def _by_blocks(better: np.ufunc, worst: float, values: Floats, low: Ints, high: Ints) -> Floats:
    """Split each interval into the end of one block, whole blocks, and the start of another; NaN if it is empty.

    Whole blocks are looked up in a sparse table over blocks, which is 64 times smaller than one over rows. Intervals
    inside one block use a sparse table over rows.
    """
    answer = np.full(len(low), np.nan)
    grid = np.full((-(-len(values) // _BLOCK), _BLOCK), worst)
    table = grid.ravel()
    table[: len(values)] = values
    first, last = low // _BLOCK, (high - 1) // _BLOCK
    wide = _selection(first < last)
    if wide is not None:
        to_here = better.accumulate(grid, axis=1)
        from_here = better.accumulate(grid[:, ::-1], axis=1)[:, ::-1].ravel()
        found = better(from_here[low[wide]], to_here.ravel()[high[wide] - 1])
        whole = _selection(last[wide] - first[wide] > 1)
        if whole is not None:
            inner = _from_table(better, to_here[:, -1], first[wide][whole] + 1, last[wide][whole])
            found[whole] = better(found[whole], inner)
        answer[wide] = found
    narrow = _selection((first == last) & (high > low))
    if narrow is not None:
        answer[narrow] = _from_table(better, table, low[narrow], high[narrow])
    return answer


def _selection(chosen: NDArray[np.bool_]) -> Ints | slice | None:
    """The index of the true entries; a full slice if all are true, None if none is."""
    index = np.flatnonzero(chosen)
    if len(index) == len(chosen):
        return slice(None)
    return index if len(index) else None


def _from_table(better: np.ufunc, table: Floats, low: Ints, high: Ints) -> Floats:
    """The extreme of each interval by a sparse table: level k holds the extreme of 2ᵏ neighbours.

    Two entries of one level cover any interval. Levels are built one after another and only where needed.
    """
    answer = np.empty(len(low))
    level_of = np.frexp((high - low).astype(np.float64))[1] - 1
    wanted = np.bincount(level_of)
    spare = (np.empty_like(table), np.empty_like(table))  # a fresh array per level would cost more than filling it
    for level in range(len(wanted)):
        if level:
            step = 1 << (level - 1)
            table = better(table[:-step], table[step:], out=spare[level % 2][: len(table) - step])
        if wanted[level]:
            chosen = slice(None) if wanted[level] == len(low) else np.flatnonzero(level_of == level)
            answer[chosen] = better(table[low[chosen]], table[high[chosen] - (1 << level)])
    return answer


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
