"""Rows as columns of numbers."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

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
        """The rows as bytes, without pickling."""
        head = json.dumps([len(self), len(self.values)]).encode() + b"\n"
        return b"".join([head, self.attribute.tobytes(), self.keys.tobytes(), *(c.tobytes() for c in self.values)])

    @classmethod
    def from_bytes(cls, data: bytes) -> Rows:
        """The rows that ``to_bytes`` wrote."""
        start = data.index(b"\n") + 1
        count, columns = json.loads(data[:start])
        at = np.frombuffer(data, np.int64, count, start)
        keys = np.frombuffer(data, np.int64, count, start + 8 * count)
        values = tuple(np.frombuffer(data, np.float64, count, start + 8 * count * (2 + i)) for i in range(columns))
        return cls(at, keys, values)
