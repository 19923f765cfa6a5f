"""The window generator of Kim 2010, Fig. 2: which rows make each window, and its aggregates."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from slackwater.kernel.windows.intervals import aggregate_intervals
from slackwater.kernel.windows.rows import Floats, Ints, Rows, group_begins

_STRETCH = 1 << 14  # rows: what is made of so many on the way stays in the cache
_LARGE = 1 << 13  # rows of a group that is worth calls of its own, since nothing need tell its rows from others
_MOST = np.iinfo(np.int64).max


@dataclass(frozen=True, slots=True)
class WindowSpec:
    """A window: ``length`` on the attribute or in tuples, ``slide`` likewise (None: one result per row).

    ``per_key`` lets tuples be counted per group. ``aggregates`` are (name, index of its input). With a
    ``landmark`` the window begins there and has no length; with SLIDE it then has a result for each step in which
    rows came.
    """

    length: int
    slide: int | None = None
    tuples: bool = False
    per_key: bool = False
    aggregates: tuple[tuple[str, int], ...] = ()
    landmark: int | None = None

    @property
    def grouped(self) -> bool:
        """Whether its rows are best kept by group: each window is one group's, of a stretch of the attribute."""
        return not self.tuples and self.landmark is None


@dataclass(frozen=True, slots=True, eq=False)
class Results:
    """One entry a result: the window's start and end, its group, and the aggregates.

    Per row the window is (start, end]; with SLIDE it is [start, end). For tuples start and end are the
    attribute of the first and last row.
    """

    start: Ints
    end: Ints
    keys: Ints
    aggregates: tuple[Floats, ...]

    def __len__(self) -> int:
        return len(self.end)

    def parts(self, most: int) -> Iterator[Results]:
        """The results in pieces of at most so many."""
        for start in range(0, len(self), most):
            part = slice(start, start + most)
            yield Results(self.start[part], self.end[part], self.keys[part], tuple(c[part] for c in self.aggregates))


def generate(
    spec: WindowSpec, window: Rows, fresh: NDArray[np.bool_], after: int | None, heartbeat: int, seen: Ints
) -> Results:
    """The results that the ``fresh`` rows of the ``window`` buffer complete; it is grouped where the spec says so.

    For time windows with SLIDE these are the windows that end above ``after`` and at or below ``heartbeat``.
    ``seen`` holds how many tuples came before the window buffer (per group if the spec counts so).
    """
    if spec.tuples:
        return _tuples(spec, window, int(np.count_nonzero(fresh)), seen)
    codes = _codes(window.keys)
    if spec.slide is None:
        return _per_row(spec, window, codes, fresh)
    group, ends = _ends(window.attribute, codes, spec.length, spec.slide, after, heartbeat)
    low, high = _found(window.attribute, codes, group, ends - spec.length, ends)
    return _results(spec, window, low, high, ends - spec.length, ends, window.keys[low])


def _codes(keys: Ints) -> Ints:
    """The groups of rows that are in their order, counted from 0."""
    if not len(keys) or keys[0] == keys[-1]:
        return np.zeros(len(keys), dtype=np.int64)
    begins = group_begins(keys)
    return np.repeat(np.arange(len(begins)), np.diff(begins, append=len(keys)))


def _per_row(spec: WindowSpec, rows: Rows, group: Ints, fresh: NDArray[np.bool_]) -> Results:
    """The windows (t − length, t] of the fresh rows, in their order: by group, then by time."""
    count = int(np.count_nonzero(fresh))
    at, keys = np.empty(count, dtype=np.int64), np.empty(count, dtype=np.int64)
    found = tuple(np.empty(count) for _ in spec.aggregates)
    done = 0
    for part in _stretches(group):
        some, own = rows.take(part), group[part]
        mine = _places(fresh[part])
        here = some.attribute[mine]
        if own[0] == own[-1]:
            low = np.searchsorted(some.attribute, here - spec.length + 1)
        else:
            (low,) = _found(some.attribute, own - own[0], own[mine] - own[0], here - spec.length + 1)
        answers = slice(done, done + len(here))
        at[answers], keys[answers] = here, some.keys[mine]
        for column, answer in zip(_aggregates(spec, some, low, _ties_end(some, own)[mine]), found, strict=True):
            answer[answers] = column
        done += len(here)
    return Results(at - spec.length, at, keys, found)


def _places(chosen: NDArray[np.bool_]) -> Ints | slice:
    """Where it is true; as a slice, which copies nothing, if those are neighbours."""
    places = np.flatnonzero(chosen)
    if len(places) and int(places[-1]) - int(places[0]) + 1 == len(places):
        return slice(int(places[0]), int(places[-1]) + 1)
    return places


def _stretches(group: Ints) -> list[slice]:
    """Whole groups: a large one alone, small ones together; rows are in the order of groups."""
    if not len(group):
        return []
    begins = group_begins(group)
    ends = np.append(begins[1:], len(group))
    large = ends - begins >= _LARGE
    last = large | np.append(large[1:], True)
    last[:-1] |= np.diff(ends // _STRETCH) > 0
    return [slice(start, end) for start, end in itertools.pairwise([0, *ends[last].tolist()])]


def _ties_end(rows: Rows, group: Ints) -> Ints:
    """Behind the last row of each row's instant and group; rows are in order."""
    same = rows.attribute[1:] == rows.attribute[:-1]
    if group[0] != group[-1]:
        same[group_begins(group)[1:] - 1] = False
    ends = np.arange(1, len(rows) + 1)
    tied = np.flatnonzero(same)  # to the row behind them
    if len(tied):
        last = np.flatnonzero(np.diff(tied, append=-1) != 1)
        ends[tied] = np.repeat(tied[last] + 2, np.diff(last, prepend=-1))
    return ends


def _one_group(rows: Rows) -> bool:
    return not len(rows) or bool((rows.keys == rows.keys[0]).all())


def _by_key(rows: Rows) -> tuple[Ints, Ints]:
    """The order by group, then as it is (by the attribute); and each row's group, counted from 0."""
    if _one_group(rows):
        return np.arange(len(rows)), np.zeros(len(rows), dtype=np.int64)
    low, high = int(rows.keys.min()), int(rows.keys.max())
    if high - low < 1 << 16:
        codes = rows.keys - low
        return np.argsort(codes.astype(np.uint16), kind="stable"), codes
    _, codes = np.unique(rows.keys, return_inverse=True)
    return np.argsort(codes, kind="stable"), codes.astype(np.int64)


def _found(attribute: Ints, codes: Ints, group: Ints, *edges: Ints) -> tuple[Ints, ...]:
    """Where the first row of each group at or above each edge stands; rows are ordered by (group, attribute)."""
    if not len(attribute) or not len(group):
        return tuple(np.zeros(len(group), dtype=np.int64) for _ in edges)
    base = int(min(attribute.min(), *(edge.min() for edge in edges)))
    span = int(max(attribute.max(), *(edge.max() for edge in edges))) - base + 1
    groups = int(codes.max()) + 1
    if groups == 1:
        return tuple(np.searchsorted(attribute, edge) for edge in edges)
    if span < _MOST // groups:
        # One number per (group, attribute), in the same order: one search for all groups.
        line = codes * span + (attribute - base)
        return tuple(np.searchsorted(line, group * span + (edge - base)) for edge in edges)
    found = tuple(np.zeros(len(group), dtype=np.int64) for _ in edges)
    begins = np.searchsorted(codes, np.arange(groups + 1))
    for number in np.unique(group).tolist():
        part, mine = attribute[begins[number] : begins[number + 1]], group == number
        for places, edge in zip(found, edges, strict=True):
            places[mine] = begins[number] + np.searchsorted(part, edge[mine])
    return found


def _ends(
    attribute: Ints, codes: Ints, length: int, slide: int, after: int | None, heartbeat: int
) -> tuple[Ints, Ints]:
    """Every (group, end) of a window that holds a row, ends after ``after`` and is complete at ``heartbeat``."""
    if not len(attribute):
        return np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)
    pane = int(np.gcd(length, slide))
    number = attribute // pane
    # Rows are ordered by (group, attribute): a pane begins where either changes.
    begins = np.empty(len(number), dtype=bool)
    begins[0] = True
    np.not_equal(number[1:], number[:-1], out=begins[1:])
    begins[1:] |= codes[1:] != codes[:-1]
    panes, owner = number[begins] * pane, codes[begins]
    steps = np.arange(-(-length // slide)) * slide
    # Windows start at multiples of SLIDE, as Spark's do.
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


def _tuples(spec: WindowSpec, window: Rows, fresh: int, seen: Ints) -> Results:
    """Windows of the last n tuples, of the whole stream or per group."""
    if spec.per_key:
        order, codes = _by_key(window)
        rows, group = window.take(order), codes[order]
        first = np.searchsorted(group, group)
        position = np.arange(len(order))
        new = order >= len(window) - fresh
        number = seen[order] + 1  # of each row in its group, from 1
        mine = position[new & ((number % (spec.slide or 1)) == 0)]
        low = np.maximum(mine - spec.length + 1, first[mine])
        emitted = np.argsort(order[mine], kind="stable")
        mine, low = mine[emitted], low[emitted]
        at = rows.attribute
        return _results(spec, rows, low, mine + 1, at[low], at[mine], rows.keys[mine])
    total = len(window)
    last = np.arange(total - fresh, total)
    last = last[((seen[last] + 1) % (spec.slide or 1)) == 0] if fresh else last
    begin = np.maximum(last - spec.length + 1, 0)
    at = window.attribute
    if _one_group(window):
        keys = window.keys[last]
        return _results(spec, window, begin, last + 1, at[begin], at[last], keys)
    order, codes = _by_key(window)
    rows, group = window.take(order), codes[order]
    if spec.slide is None:
        chosen, own = np.arange(len(last)), codes[last]
    else:
        groups = np.arange(int(codes.max()) + 1)
        chosen, own = np.repeat(np.arange(len(last)), len(groups)), np.tile(groups, len(last))
    # Inside a group the rows keep their place in the whole order, so a place is searched like an attribute.
    low, high = _found(order.astype(np.int64), group, own, begin[chosen], last[chosen] + 1)
    some = high > low
    low, high, chosen = low[some], high[some], chosen[some]
    return _results(spec, rows, low, high, at[begin[chosen]], at[last[chosen]], rows.keys[low])


def _results(spec: WindowSpec, rows: Rows, low: Ints, high: Ints, start: Ints, end: Ints, keys: Ints) -> Results:
    return Results(start, end, keys, _aggregates(spec, rows, low, high))


def _aggregates(spec: WindowSpec, rows: Rows, low: Ints, high: Ints) -> tuple[Floats, ...]:
    found = []
    for name, column in spec.aggregates:
        if name == "count" and column < 0:
            found.append((high - low).astype(np.float64))
        else:
            found.append(aggregate_intervals(name, rows.values[column], low, high))
    return tuple(found)
