"""Rows stored as numpy columns, and their compact byte form."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

_MIN_ROWS_PER_GROUP = 4  # with fewer rows per group on average, run-length coding takes more bytes than it saves


@dataclass(frozen=True, slots=True, eq=False)
class Rows:
    """Rows as columns: the windowing attribute, the group key as a number, and the inputs of the aggregates.

    The attribute is an integer (microseconds for a time), because the papers' time domain is discrete. Values are
    doubles, so integers are exact up to 2⁵³. A null value is NaN. The rows may be in any order.

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
        """Build rows from anything that numpy reads. Without ``keys`` all rows are in one group."""
        at = np.asarray(attribute, dtype=np.int64)
        groups = np.zeros(len(at), dtype=np.int64) if keys is None else np.asarray(keys, dtype=np.int64)
        return cls(at, groups, tuple(np.asarray(column, dtype=np.float64) for column in values))

    @classmethod
    def empty(cls, columns: int) -> Rows:
        """No rows, with the given number of value columns."""
        return cls.of([], [], [[] for _ in range(columns)])

    @classmethod
    def concat(cls, parts: Sequence[Rows], columns: int) -> Rows:
        """Append the parts to one another. ``columns`` is the number of value columns, needed if there are no parts."""
        if len(parts) == 1:
            return parts[0]
        if not parts:
            return cls.empty(columns)
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
        """Write the rows in a lossless byte form: a line of JSON, then the columns, each in its smallest exact type.

        Sorted attributes are stored as differences. Rows sorted by group, then by attribute, store each key once, with
        its number of rows and its first attribute.
        """
        runs = _runs(self)
        steps = _steps(self.attribute, np.zeros(1, dtype=np.int64)) if runs is None else runs.steps
        integers = [self.attribute if steps is None else steps]
        integers += [self.keys] if runs is None else [runs.keys, runs.counts, runs.firsts]
        columns = [*(_shrink_integers(c) for c in integers), *(_shrink_doubles(c) for c in self.values)]
        header = {
            "start": None if steps is None or runs is not None else int(self.attribute[0]),
            "runs": runs is not None,
            "columns": [[len(column), column.dtype.str, low] for column, low in columns],
        }
        return b"".join([json.dumps(header).encode(), b"\n", *(column.tobytes() for column, _ in columns)])

    @classmethod
    def from_bytes(cls, data: bytes, start: int = 0) -> Rows:
        """Read what ``to_bytes`` wrote, beginning at offset ``start``."""
        offset = data.index(b"\n", start) + 1
        header = json.loads(data[start:offset])
        columns = []
        for count, dtype, low in header["columns"]:
            column = np.frombuffer(data, np.dtype(dtype), count, offset)
            offset += column.nbytes
            columns.append(column if low is None else column.astype(np.int64) + low)
        if header["runs"]:
            steps, keys, counts, firsts, *values = columns
            at = np.cumsum(steps)
            at += np.repeat(firsts - at[np.cumsum(counts) - counts], counts)
            keys = np.repeat(keys, counts)
        else:
            at, keys, *values = columns
            if header["start"] is not None:
                at = np.cumsum(at) + header["start"]
        return cls(at, keys, tuple(value.astype(np.float64) for value in values))


@dataclass(frozen=True, slots=True, eq=False)
class _Runs:
    """Rows sorted by group and attribute, run-length coded: per group its key, row count and first attribute."""

    steps: Ints
    keys: Ints
    counts: Ints
    firsts: Ints


def group_begins(keys: Ints) -> Ints:
    """The index of each group's first row. Rows are sorted by group, and there is at least one row."""
    return np.append(0, np.flatnonzero(keys[1:] != keys[:-1]) + 1)


def _runs(rows: Rows) -> _Runs | None:
    """Run-length code the rows; None if they are not sorted by (group, attribute), or if groups are too small."""
    keys = rows.keys
    if not len(keys) or np.any(keys[1:] < keys[:-1]):
        return None
    begins = group_begins(keys)
    if len(begins) * _MIN_ROWS_PER_GROUP > len(keys):
        return None
    steps = _steps(rows.attribute, begins)
    if steps is None:
        return None
    return _Runs(steps, keys[begins], np.diff(begins, append=len(keys)), rows.attribute[begins])


def _steps(column: Ints, begins: Ints) -> Ints | None:
    """Differences to the previous number, 0 at the index in ``begins``; None if any difference is negative."""
    if len(column) < 2:
        return None
    steps = np.diff(column, prepend=column[:1])
    steps[begins] = 0
    return steps if int(steps.min()) >= 0 else None


def _shrink_integers(column: Ints) -> tuple[NDArray[Any], int | None]:
    """The column minus its minimum in a smaller type, and the minimum; or the column as it is, and None."""
    if not len(column):
        return column, None
    low, high = int(column.min()), int(column.max())
    for kind in (np.uint8, np.uint16, np.uint32):
        if high - low <= np.iinfo(kind).max:
            return (column - low).astype(kind), low
    return column, None


def _shrink_doubles(column: Floats) -> tuple[NDArray[Any], None]:
    """The column as uint16 or float32 if that loses nothing, else as it is."""
    for kind in (np.uint16, np.float32):
        # The first rows rule out most types cheaply.
        if _converted(column[:16], kind) is not None and (short := _converted(column, kind)) is not None:
            return short, None
    return column, None


def _converted(column: Floats, kind: type[np.uint16] | type[np.float32]) -> NDArray[Any] | None:
    """The column in another type, or None if any value would change."""
    with np.errstate(invalid="ignore", over="ignore"):
        short = column.astype(kind)
    same = short == column
    if not same.all() and not (kind is np.float32 and bool((same | np.isnan(column)).all())):
        return None
    minus_zero = kind is np.uint16 and len(column) and int(column.view(np.int64).min()) < 0
    return None if minus_zero else short
