"""Rows as columns of numbers."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

_FEW = 4  # rows of a group: with fewer it takes more to tell its beginning than its rows


@dataclass(frozen=True, slots=True, eq=False)
class Rows:
    """Rows in some order: the windowing attribute, the group of each as a number, and the aggregates' inputs.

    The attribute is whole (microseconds for a time), since the papers' time domain is discrete. A value that
    is null is NaN. Values are doubles: whole numbers are exact up to 2⁵³.

    >>> Rows.of([3, 1], values=([1.0, 2.0],)).take(np.array([1])).attribute
    array([1])
    """

    attribute: Ints
    keys: Ints
    values: tuple[Floats, ...]

    @classmethod
    def of(
        cls, attribute: Sequence[int] | Ints, keys: Sequence[int] | Ints | None = None, values: Sequence[object] = ()
    ) -> Rows:
        """Rows from anything that numpy reads; without keys all are one group."""
        at = np.asarray(attribute, dtype=np.int64)
        groups = np.zeros(len(at), dtype=np.int64) if keys is None else np.asarray(keys, dtype=np.int64)
        return cls(at, groups, tuple(np.asarray(column, dtype=np.float64) for column in values))

    @classmethod
    def none(cls, columns: int) -> Rows:
        """No rows, of that many values."""
        return cls.of([], [], [[] for _ in range(columns)])

    @classmethod
    def concat(cls, parts: Sequence[Rows], columns: int) -> Rows:
        """The parts behind one another."""
        if len(parts) == 1:
            return parts[0]
        if not parts:
            return cls.none(columns)
        return cls(
            np.concatenate([part.attribute for part in parts]),
            np.concatenate([part.keys for part in parts]),
            tuple(np.concatenate([part.values[i] for part in parts]) for i in range(columns)),
        )

    def __len__(self) -> int:
        return len(self.attribute)

    def take(self, index: NDArray[np.int64] | NDArray[np.bool_] | slice) -> Rows:
        """The rows at ``index``."""
        return Rows(self.attribute[index], self.keys[index], tuple(column[index] for column in self.values))

    def to_bytes(self) -> bytes:
        """The rows as bytes, without pickling, each column in as few as hold it exactly.

        In order a row is close to the one before it: steps are shorter than distances from the least. Where rows are
        in order by group, a group is told once, with its first row.
        """
        runs = _runs(self)
        steps = _steps(self.attribute, np.zeros(1, dtype=np.int64)) if runs is None else runs.steps
        whole = [self.attribute if steps is None else steps]
        whole += [self.keys] if runs is None else [runs.keys, runs.counts, runs.firsts]
        start = None if steps is None or runs is not None else int(self.attribute[0])
        columns = [*(_packed_whole(c) for c in whole), *(_packed(c) for c in self.values)]
        told = [[len(column), column.dtype.str, low] for column, low in columns]
        head = json.dumps([start, runs is not None, told]).encode() + b"\n"
        return b"".join([head, *(column.tobytes() for column, _ in columns)])

    @classmethod
    def from_bytes(cls, data: bytes, start: int = 0) -> Rows:
        """The rows that ``to_bytes`` wrote, where they begin."""
        begin, start = start, data.index(b"\n", start) + 1
        first, grouped, told = json.loads(data[begin:start])
        found = []
        for count, kind, low in told:
            column = np.frombuffer(data, np.dtype(kind), count, start)
            start += column.nbytes
            found.append(column if low is None else column.astype(np.int64) + low)
        if grouped:
            steps, keys, counts, firsts, *values = found
            at = np.cumsum(steps)
            at += np.repeat(firsts - at[np.cumsum(counts) - counts], counts)
            keys = np.repeat(keys, counts)
        else:
            at, keys, *values = found
            if first is not None:
                at = np.cumsum(at) + first
        return cls(at, keys, tuple(value.astype(np.float64) for value in values))


@dataclass(frozen=True, slots=True, eq=False)
class _Runs:
    """The groups of rows in their order: how many rows each has, its first one, and the steps inside of them."""

    steps: Ints
    keys: Ints
    counts: Ints
    firsts: Ints


def group_begins(keys: Ints) -> Ints:
    """Where each group of rows begins that are in the order of their groups; there is at least one row."""
    return np.append(0, np.flatnonzero(keys[1:] != keys[:-1]) + 1)


def _runs(rows: Rows) -> _Runs | None:
    """The groups, if the rows are in their order, and inside each by the attribute, and a group has several rows."""
    keys = rows.keys
    if not len(keys) or np.any(keys[1:] < keys[:-1]):
        return None
    begins = group_begins(keys)
    if len(begins) * _FEW > len(keys):
        return None
    steps = _steps(rows.attribute, begins)
    if steps is None:
        return None
    return _Runs(steps, keys[begins], np.diff(begins, append=len(keys)), rows.attribute[begins])


def _steps(column: Ints, begins: Ints) -> Ints | None:
    """From each number to the next, but for those that begin a run, if all runs are in order."""
    if len(column) < 2:
        return None
    steps = np.diff(column, prepend=column[:1])
    steps[begins] = 0
    return steps if int(steps.min()) >= 0 else None


def _packed_whole(column: Ints) -> tuple[NDArray[Any], int | None]:
    """Whole numbers as their distance from the least, if that is shorter; and the least."""
    if not len(column):
        return column, None
    low, high = int(column.min()), int(column.max())
    for kind in (np.uint8, np.uint16, np.uint32):
        if high - low <= np.iinfo(kind).max:
            return (column - low).astype(kind), low
    return column, None


def _packed(column: Floats) -> tuple[NDArray[Any], None]:
    """Doubles, or numbers of a quarter or half the size where those are the same."""
    for kind in (np.uint16, np.float32):
        # what the first rows rule out is not tried on all
        if _exactly(column[:16], kind) is not None and (short := _exactly(column, kind)) is not None:
            return short, None
    return column, None


def _exactly(column: Floats, kind: type[np.uint16] | type[np.float32]) -> NDArray[Any] | None:
    with np.errstate(invalid="ignore", over="ignore"):
        short = column.astype(kind)
    same = short == column
    if not same.all() and not (kind is np.float32 and bool((same | np.isnan(column)).all())):
        return None
    signed = kind is np.uint16 and len(column) and int(column.view(np.int64).min()) < 0  # minus zero
    return None if signed else short
