"""The window generator of Kim 2010, Fig. 2: the rows of each window, and its aggregates."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from slackwater.kernel.windows.intervals import aggregate_intervals
from slackwater.kernel.windows.rows import Floats, Ints, Rows, group_begins

_CHUNK_ROWS = 1 << 14  # intermediate arrays of this many rows stay in the cache
_LARGE_GROUP_ROWS = 1 << 13  # a group this large is a chunk of its own, which needs no search by group
_MOST = np.iinfo(np.int64).max


@dataclass(frozen=True, slots=True)
class WindowSpec:
    """A window and its aggregates.

    :param length: the extent, in units of the attribute, or in tuples; ignored if there is a landmark.
    :param slide: the distance between windows, in the same unit; None gives one result per row.
    :param tuples: ``length`` and ``slide`` count tuples.
    :param per_key: tuples are counted per group, not in the whole stream.
    :param aggregates: pairs of (name, index of the input column); index -1 is COUNT(*).
    :param landmark: all windows begin here. With SLIDE there is a result for each step that has rows.
    """

    length: int
    slide: int | None = None
    tuples: bool = False
    per_key: bool = False
    aggregates: tuple[tuple[str, int], ...] = ()
    landmark: int | None = None

    @property
    def grouped(self) -> bool:
        """Whether rows are kept by group: each window holds rows of one group and a range of the attribute."""
        return not self.tuples and self.landmark is None


@dataclass(frozen=True, slots=True, eq=False)
class Results:
    """Results as columns: the window's start and end, its group, and the aggregates.

    A window per row is (start, end]. A window with SLIDE is [start, end). For tuples, start and end are the attributes
    of the first and the last row.
    """

    start: Ints
    end: Ints
    keys: Ints
    aggregates: tuple[Floats, ...]

    def __len__(self) -> int:
        return len(self.end)

    def parts(self, most: int) -> Iterator[Results]:
        """Split the results into parts of at most ``most``."""
        for start in range(0, len(self), most):
            part = slice(start, start + most)
            yield Results(self.start[part], self.end[part], self.keys[part], tuple(c[part] for c in self.aggregates))


def generate(
    spec: WindowSpec, rows: Rows, fresh: NDArray[np.bool_], after: int | None, heartbeat: int, tuples_before: Ints
) -> Results:
    """The results that became complete when the heartbeat rose from ``after`` to ``heartbeat``.

    :param rows: the window buffer: sorted by group and attribute if ``spec.grouped``, else by attribute.
    :param fresh: marks the rows that the heartbeat has passed since ``after``.
    :param after: the previous heartbeat, or None if there was none.
    :param tuples_before: for windows of tuples, the number of tuples before each row.
    """
    if spec.tuples:
        if spec.per_key:
            return _tuples_per_group(spec, rows, int(np.count_nonzero(fresh)), tuples_before)
        return _tuples(spec, rows, int(np.count_nonzero(fresh)), tuples_before)
    codes = _group_codes(rows.keys)
    if spec.slide is None:
        return _per_row(spec, rows, codes, fresh)
    group, ends = _window_ends(rows.attribute, codes, spec.length, spec.slide, after, heartbeat)
    low, high = _first_at_or_above(rows.attribute, codes, group, ends - spec.length, ends)
    return _results(spec, rows, low, high, ends - spec.length, ends, rows.keys[low])


def _group_codes(keys: Ints) -> Ints:
    """The group of each row, numbered from 0. Rows are sorted by group."""
    if not len(keys) or keys[0] == keys[-1]:
        return np.zeros(len(keys), dtype=np.int64)
    begins = group_begins(keys)
    return np.repeat(np.arange(len(begins)), np.diff(begins, append=len(keys)))


def _per_row(spec: WindowSpec, rows: Rows, group: Ints, fresh: NDArray[np.bool_]) -> Results:
    """The windows (t − length, t] of the fresh rows, in the order of the rows: by group, then by time."""
    count = int(np.count_nonzero(fresh))
    at, keys = np.empty(count, dtype=np.int64), np.empty(count, dtype=np.int64)
    answers = tuple(np.empty(count) for _ in spec.aggregates)
    done = 0
    for part in _chunks(group):
        chunk, codes = rows.take(part), group[part]
        new = _selection(fresh[part])
        ends = chunk.attribute[new]
        if codes[0] == codes[-1]:
            low = np.searchsorted(chunk.attribute, ends - spec.length + 1)
        else:
            (low,) = _first_at_or_above(
                chunk.attribute, codes - codes[0], codes[new] - codes[0], ends - spec.length + 1
            )
        out = slice(done, done + len(ends))
        at[out], keys[out] = ends, chunk.keys[new]
        for column, answer in zip(_aggregates(spec, chunk, low, _ties_end(chunk, codes)[new]), answers, strict=True):
            answer[out] = column
        done += len(ends)
    return Results(at - spec.length, at, keys, answers)


def _selection(chosen: NDArray[np.bool_]) -> Ints | slice:
    """The index of the true entries; a slice, which copies nothing, if they are neighbours."""
    index = np.flatnonzero(chosen)
    if len(index) and int(index[-1]) - int(index[0]) + 1 == len(index):
        return slice(int(index[0]), int(index[-1]) + 1)
    return index


def _chunks(group: Ints) -> list[slice]:
    """Chunks of whole groups: a large group alone, small groups together. Rows are sorted by group."""
    if not len(group):
        return []
    begins = group_begins(group)
    ends = np.append(begins[1:], len(group))
    large = ends - begins >= _LARGE_GROUP_ROWS
    last = large | np.append(large[1:], True)
    last[:-1] |= np.diff(ends // _CHUNK_ROWS) > 0
    return [slice(start, end) for start, end in itertools.pairwise([0, *ends[last].tolist()])]


def _ties_end(rows: Rows, group: Ints) -> Ints:
    """For each row, the index after the last row of the same instant and group. Rows are sorted by both."""
    same = rows.attribute[1:] == rows.attribute[:-1]
    if group[0] != group[-1]:
        same[group_begins(group)[1:] - 1] = False
    ends = np.arange(1, len(rows) + 1)
    tied = np.flatnonzero(same)  # rows whose next row is of the same instant
    if len(tied):
        last = np.flatnonzero(np.diff(tied, append=-1) != 1)
        ends[tied] = np.repeat(tied[last] + 2, np.diff(last, prepend=-1))
    return ends


def _one_group(rows: Rows) -> bool:
    return not len(rows) or bool((rows.keys == rows.keys[0]).all())


def _by_key(rows: Rows) -> tuple[Ints, Ints]:
    """The stable order by group, and the group of each row, numbered from 0."""
    if _one_group(rows):
        return np.arange(len(rows)), np.zeros(len(rows), dtype=np.int64)
    low, high = int(rows.keys.min()), int(rows.keys.max())
    if high - low < 1 << 16:
        codes = rows.keys - low
        return np.argsort(codes.astype(np.uint16), kind="stable"), codes
    _, codes = np.unique(rows.keys, return_inverse=True)
    return np.argsort(codes, kind="stable"), codes.astype(np.int64)


def _first_at_or_above(attribute: Ints, codes: Ints, group: Ints, *edges: Ints) -> tuple[Ints, ...]:
    """The index of the first row of ``group[i]`` at or above ``edge[i]``, for each of the ``edges``.

    Rows are sorted by (``codes``, ``attribute``).
    """
    if not len(attribute) or not len(group):
        return tuple(np.zeros(len(group), dtype=np.int64) for _ in edges)
    base = int(min(attribute.min(), *(edge.min() for edge in edges)))
    span = int(max(attribute.max(), *(edge.max() for edge in edges))) - base + 1
    groups = int(codes.max()) + 1
    if groups == 1:
        return tuple(np.searchsorted(attribute, edge) for edge in edges)
    if span < _MOST // groups:
        # One number per (group, attribute), in the same order: one search serves all groups.
        numbers = codes * span + (attribute - base)
        return tuple(np.searchsorted(numbers, group * span + (edge - base)) for edge in edges)
    found = tuple(np.zeros(len(group), dtype=np.int64) for _ in edges)
    begins = np.searchsorted(codes, np.arange(groups + 1))
    for code in np.unique(group).tolist():
        part, chosen = attribute[begins[code] : begins[code + 1]], group == code
        for index, edge in zip(found, edges, strict=True):
            index[chosen] = begins[code] + np.searchsorted(part, edge[chosen])
    return found


def _window_ends(
    attribute: Ints, codes: Ints, length: int, slide: int, after: int | None, heartbeat: int
) -> tuple[Ints, Ints]:
    """Group and end of every window that has a row and ends in (``after``, ``heartbeat``]; sorted by end."""
    if not len(attribute):
        return np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)
    pane = int(np.gcd(length, slide))
    number = attribute // pane
    # Rows are sorted by (group, attribute): a pane begins where either changes.
    begins = np.empty(len(number), dtype=bool)
    begins[0] = True
    np.not_equal(number[1:], number[:-1], out=begins[1:])
    begins[1:] |= codes[1:] != codes[:-1]
    panes, owner = number[begins] * pane, codes[begins]
    steps = np.arange(-(-length // slide)) * slide
    # Windows start at multiples of SLIDE, as in Spark.
    ends = (panes // slide * slide)[:, None] - steps + length
    good = (ends <= heartbeat) & (panes[:, None] < ends)
    if after is not None:
        good &= ends > after
    group = np.broadcast_to(owner[:, None], ends.shape)[good]
    ends = ends[good]
    order = np.lexsort((group, ends))
    group, ends = group[order], ends[order]
    first = np.ones(len(ends), dtype=bool)
    first[1:] = (ends[1:] != ends[:-1]) | (group[1:] != group[:-1])
    return group[first], ends[first]


def _tuples_per_group(spec: WindowSpec, window: Rows, fresh: int, tuples_before: Ints) -> Results:
    """Windows of the last n tuples of each group, for the last ``fresh`` rows."""
    order, codes = _by_key(window)
    rows, group = window.take(order), codes[order]
    first = np.searchsorted(group, group)
    number = tuples_before[order] + 1  # of each row in its group, from 1
    last = np.flatnonzero((order >= len(window) - fresh) & ((number % (spec.slide or 1)) == 0))
    low = np.maximum(last - spec.length + 1, first[last])
    by_time = np.argsort(order[last], kind="stable")
    last, low = last[by_time], low[by_time]
    at = rows.attribute
    return _results(spec, rows, low, last + 1, at[low], at[last], rows.keys[last])


def _tuples(spec: WindowSpec, window: Rows, fresh: int, tuples_before: Ints) -> Results:
    """Windows of the last n tuples of the whole stream, for the last ``fresh`` rows, with a result per group."""
    total = len(window)
    last = np.arange(total - fresh, total)
    last = last[((tuples_before[last] + 1) % (spec.slide or 1)) == 0] if fresh else last
    begin = np.maximum(last - spec.length + 1, 0)
    at = window.attribute
    if _one_group(window):
        return _results(spec, window, begin, last + 1, at[begin], at[last], window.keys[last])
    order, codes = _by_key(window)
    rows, group = window.take(order), codes[order]
    if spec.slide is None:
        chosen, wanted = np.arange(len(last)), codes[last]
    else:
        groups = np.arange(int(codes.max()) + 1)
        chosen, wanted = np.repeat(np.arange(len(last)), len(groups)), np.tile(groups, len(last))
    # Inside a group the rows keep their order, so their index in the whole stream can be searched like an attribute.
    low, high = _first_at_or_above(order.astype(np.int64), group, wanted, begin[chosen], last[chosen] + 1)
    some = high > low
    low, high, chosen = low[some], high[some], chosen[some]
    return _results(spec, rows, low, high, at[begin[chosen]], at[last[chosen]], rows.keys[low])


def _results(spec: WindowSpec, rows: Rows, low: Ints, high: Ints, start: Ints, end: Ints, keys: Ints) -> Results:
    return Results(start, end, keys, _aggregates(spec, rows, low, high))


def _aggregates(spec: WindowSpec, rows: Rows, low: Ints, high: Ints) -> tuple[Floats, ...]:
    """Each aggregate over the rows ``low[i]:high[i]``."""
    return tuple(
        (high - low).astype(np.float64)
        if name == "count" and column < 0
        else aggregate_intervals(name, rows.values[column], low, high)
        for name, column in spec.aggregates
    )
