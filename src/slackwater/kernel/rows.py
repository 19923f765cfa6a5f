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
        """The rows as bytes, without pickling, each column in as few as hold it exactly."""
        columns = [_packed_whole(self.attribute), _packed_whole(self.keys), *(_packed(c) for c in self.values)]
        head = json.dumps([len(self), [[column.dtype.str, low] for column, low in columns]]).encode() + b"\n"
        return b"".join([head, *(column.tobytes() for column, _ in columns)])

    @classmethod
    def from_bytes(cls, data: bytes) -> Rows:
        """The rows that ``to_bytes`` wrote."""
        start = data.index(b"\n") + 1
        count, packed = json.loads(data[:start])
        found = []
        for kind, low in packed:
            column = np.frombuffer(data, np.dtype(kind), count, start)
            start += column.nbytes
            found.append(column if low is None else column.astype(np.int64) + low)
        at, keys, *values = found
        return cls(at, keys, tuple(value.astype(np.float64) for value in values))


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
    if not np.array_equal(short, column, equal_nan=True):
        return None
    signed = kind is np.uint16 and len(column) and int(column.view(np.int64).min()) < 0  # minus zero
    return None if signed else short
