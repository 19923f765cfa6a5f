"""Rows put in order: by the windowing attribute, or by group and then the attribute; ties stay as they are."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from slackwater.kernel.windows.rows import Ints, Rows, group_begins

_WORD = 64


def in_order(rows: Rows) -> Rows:
    """The rows by their attribute."""
    at = rows.attribute
    if np.all(at[1:] >= at[:-1]):
        return rows
    low, high = int(at.min()), int(at.max())
    return rows.take(stable_order(at, low, high - low + 1))


def by_group(rows: Rows) -> tuple[Rows, Ints]:
    """The rows by group, then by their attribute; and where each of them stood.

    Group, attribute and place are one number each, if they fit one: numpy sorts numbers several times as fast as it
    finds their order, and two of the columns come out of them again.

    >>> rows, places = by_group(Rows.of([5, 3, 4], [1, 0, 1]))
    >>> rows.keys.tolist(), rows.attribute.tolist(), places.tolist()
    ([0, 1, 1], [3, 4, 5], [1, 2, 0])
    """
    count = len(rows)
    if not count:
        return rows, np.zeros(0, dtype=np.int64)
    least, first = int(rows.keys.min()), int(rows.attribute.min())
    group_bits = (int(rows.keys.max()) - least).bit_length()
    at_bits = (int(rows.attribute.max()) - first).bit_length()
    place_bits = (count - 1).bit_length()
    if not group_bits and np.all(rows.attribute[1:] >= rows.attribute[:-1]):
        return rows, np.arange(count)
    if group_bits + at_bits + place_bits > _WORD - 1:
        order = np.lexsort((rows.attribute, rows.keys))
        return rows.take(order), order
    line = (rows.keys - least) << at_bits
    line |= rows.attribute - first
    line <<= place_bits
    line |= np.arange(count)
    line.sort()
    order = line & ((1 << place_bits) - 1)
    line >>= place_bits
    at = (line & ((1 << at_bits) - 1)) + first
    line >>= at_bits
    line += least
    return Rows(at, line, tuple(column[order] for column in rows.values)), order


def behind_by_group(old: Rows, new: Rows) -> tuple[Rows, NDArray[np.bool_]]:
    """Of each group the old rows and behind them the new ones, and which are new; both are by group.

    >>> rows, is_new = behind_by_group(Rows.of([1, 2], [0, 1]), Rows.of([3, 4], [0, 2]))
    >>> rows.attribute.tolist(), rows.keys.tolist(), is_new.tolist()
    ([1, 3, 2, 4], [0, 0, 1, 2], [False, True, False, True])
    """
    if not len(old) or not len(new):
        return (new if len(new) else old), np.full(len(old) + len(new), len(new) > 0)
    # How many there are of each group, by turns: old, new, old, new …
    (some, counts), (others, further) = _groups(old.keys), _groups(new.keys)
    groups = np.union1d(some, others)
    lengths = np.zeros((len(groups), 2), dtype=np.int64)
    lengths[np.searchsorted(groups, some), 0] = counts
    lengths[np.searchsorted(groups, others), 1] = further
    is_new = np.repeat(np.tile([False, True], len(groups)), lengths.ravel())
    is_old = ~is_new

    def joined(one: NDArray[Any], other: NDArray[Any]) -> NDArray[Any]:
        column = np.empty(len(is_new), dtype=one.dtype)
        column[is_old], column[is_new] = one, other
        return column

    values = tuple(joined(one, other) for one, other in zip(old.values, new.values, strict=True))
    keys = np.repeat(groups, lengths.sum(axis=1))
    return Rows(joined(old.attribute, new.attribute), keys, values), is_new


def _groups(keys: Ints) -> tuple[Ints, Ints]:
    """The groups of rows that are in their order, and how many rows each has."""
    begins = group_begins(keys)
    return keys[begins], np.diff(begins, append=len(keys))


def stable_order(attribute: Ints, start: int, width: int) -> Ints:
    """The order of numbers from ``start`` on, less than ``width`` above it; those that are equal stay as they are."""
    if width <= 1 << 16:
        return np.argsort((attribute - start).astype(np.uint16), kind="stable")
    if width <= 1 << 32:  # two passes of the radix sort, low half first
        offset = attribute - start
        order = np.argsort((offset & 0xFFFF).astype(np.uint16), kind="stable")
        return order[np.argsort((offset[order] >> 16).astype(np.uint16), kind="stable")]
    return np.argsort(attribute, kind="stable")
