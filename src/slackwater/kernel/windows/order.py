"""Stable sorts of rows: by the windowing attribute, or by group and then by the attribute."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from slackwater.kernel.windows.rows import Ints, Rows, group_begins

_WORD_BITS = 64
_FEW_RUNS = 64  # numpy merges this many sorted runs faster than a radix sort takes


def in_order(rows: Rows) -> Rows:
    """Sort the rows by the attribute. Ties keep their order."""
    at = rows.attribute
    descents = int(np.count_nonzero(at[1:] < at[:-1]))
    if not descents:
        return rows
    if descents < _FEW_RUNS:
        return rows.take(np.argsort(at, kind="stable"))
    return rows.take(_stable_order(at))


def by_group(rows: Rows) -> tuple[Rows, Ints]:
    """Sort the rows by group, then by the attribute. Also returns the old index of each row.

    If group, attribute and index fit into 63 bits together, they are sorted as one integer: numpy sorts values several
    times faster than it computes an argsort, and the sorted columns can be read back from the integers.

    >>> rows, index = by_group(Rows.of([5, 3, 4], [1, 0, 1]))
    >>> rows.keys.tolist(), rows.attribute.tolist(), index.tolist()
    ([0, 1, 1], [3, 4, 5], [1, 2, 0])
    """
    count = len(rows)
    if not count:
        return rows, np.zeros(0, dtype=np.int64)
    least, first = int(rows.keys.min()), int(rows.attribute.min())
    group_bits = (int(rows.keys.max()) - least).bit_length()
    at_bits = (int(rows.attribute.max()) - first).bit_length()
    index_bits = (count - 1).bit_length()
    if not group_bits and np.all(rows.attribute[1:] >= rows.attribute[:-1]):
        return rows, np.arange(count)
    if group_bits + at_bits + index_bits > _WORD_BITS - 1:
        order = np.lexsort((rows.attribute, rows.keys))
        return rows.take(order), order
    packed = (rows.keys - least) << at_bits
    packed |= rows.attribute - first
    packed <<= index_bits
    packed |= np.arange(count)
    packed.sort()
    order = packed & ((1 << index_bits) - 1)
    packed >>= index_bits
    at = (packed & ((1 << at_bits) - 1)) + first
    packed >>= at_bits
    packed += least
    return Rows(at, packed, tuple(column[order] for column in rows.values)), order


def append_by_group(old: Rows, new: Rows) -> tuple[Rows, NDArray[np.bool_]]:
    """Append the new rows of each group to its old rows. Both inputs are sorted by group; so is the result.

    The second result marks the new rows.

    >>> rows, is_new = append_by_group(Rows.of([1, 2], [0, 1]), Rows.of([3, 4], [0, 2]))
    >>> rows.attribute.tolist(), rows.keys.tolist(), is_new.tolist()
    ([1, 3, 2, 4], [0, 0, 1, 2], [False, True, False, True])
    """
    if not len(old) or not len(new):
        return (new if len(new) else old), np.full(len(old) + len(new), len(new) > 0)
    (old_groups, old_counts), (new_groups, new_counts) = _groups(old.keys), _groups(new.keys)
    groups = np.union1d(old_groups, new_groups)
    lengths = np.zeros((len(groups), 2), dtype=np.int64)  # per group: old rows, new rows
    lengths[np.searchsorted(groups, old_groups), 0] = old_counts
    lengths[np.searchsorted(groups, new_groups), 1] = new_counts
    is_new = np.repeat(np.tile([False, True], len(groups)), lengths.ravel())
    is_old = ~is_new

    def interleaved(before: NDArray[Any], after: NDArray[Any]) -> NDArray[Any]:
        column = np.empty(len(is_new), dtype=before.dtype)
        column[is_old], column[is_new] = before, after
        return column

    values = tuple(interleaved(before, after) for before, after in zip(old.values, new.values, strict=True))
    keys = np.repeat(groups, lengths.sum(axis=1))
    return Rows(interleaved(old.attribute, new.attribute), keys, values), is_new


def _groups(keys: Ints) -> tuple[Ints, Ints]:
    """The keys of the groups and their row counts. Rows are sorted by group."""
    begins = group_begins(keys)
    return keys[begins], np.diff(begins, append=len(keys))


def _stable_order(attribute: Ints) -> Ints:
    """The stable argsort of integers, by radix sort where their spread fits 32 bits."""
    least = int(attribute.min())
    spread = int(attribute.max()) - least
    if spread < 1 << 16:
        return np.argsort((attribute - least).astype(np.uint16), kind="stable")
    if spread < 1 << 32:  # two passes, low half first: numpy has a radix sort for 16 bits only
        offset = attribute - least
        order = np.argsort((offset & 0xFFFF).astype(np.uint16), kind="stable")
        return order[np.argsort((offset[order] >> 16).astype(np.uint16), kind="stable")]
    return np.argsort(attribute, kind="stable")
