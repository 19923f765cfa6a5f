"""The rows of a shard that wait for the heartbeat. They stay packed until the heartbeat reaches them."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterable, Sequence

from slackwater.kernel.windows import Rows
from slackwater.spark.worker.packed_rows import Key, KeyedRows, PackedRows, merge_packed, pack_rows, unpack_rows

_MAX_PARTS = 64
_SMALL_TEXT = 1 << 16  # characters
_MIN_ROWS_TO_SPLIT = 1024


class WaitingRows:
    """Releases rows once the heartbeat is past them, in the order of their arrival. It does not sort them.

    Spark passes the whole state to Python and back in every micro-batch, so a waiting row must cost little. Packed rows
    are texts that are passed on unread. Only a part that the heartbeat has reached is unpacked; its remaining rows are
    split in the middle of their time, so that the later half need not be unpacked again for every step of the
    heartbeat. Each row is therefore repacked only a few times (the logarithm of its wait in micro-batches). Many small
    parts are merged.

    >>> waiting = WaitingRows([pack_rows(["a"], Rows.of([5, 7]))])
    >>> [(part.keys, part.rows.attribute.tolist()) for part in waiting.release(6)]
    [(['a'], [5])]
    >>> [part.first for part in waiting.parts]
    [7]
    >>> WaitingRows.from_text(waiting.to_text()).parts == waiting.parts
    True
    """

    def __init__(self, parts: Iterable[PackedRows] = (), *, grouped: bool = False) -> None:
        self.parts = list(parts)
        self._grouped = grouped

    @classmethod
    def from_text(cls, text: str, *, grouped: bool = False) -> WaitingRows:
        """Read what ``to_text`` wrote."""
        head, _, packed = text.partition("\n")
        parts: list[PackedRows] = []
        start = 0
        for first, length in json.loads(head):
            parts.append(PackedRows(first, packed[start : start + length]))
            start += length
        return cls(parts, grouped=grouped)

    def to_text(self) -> str:
        """A JSON line with the first attribute and the length of each part, then the texts of the parts."""
        head = json.dumps([(part.first, len(part.text)) for part in self.parts])
        return "".join([head, "\n", *(part.text for part in self.parts)])

    def release(self, heartbeat: int) -> list[KeyedRows]:
        """Remove and return the rows below the heartbeat, in the order of their arrival."""
        kept: list[PackedRows] = []
        released = []
        for part in self.parts:
            if part.first >= heartbeat:
                kept.append(part)
                continue
            keys, rows = unpack_rows(part.text)
            below, rest = _split(rows, heartbeat)
            released.append(KeyedRows(keys, below))
            kept += _packed_halves(keys, rest)
        self.parts = kept if len(kept) <= _MAX_PARTS else _merge_small(kept, self._grouped)
        return released


def _split(rows: Rows, cut: int) -> tuple[Rows, Rows]:
    """The rows below the cut, and the other rows."""
    below = rows.attribute < cut
    return (rows, rows.take(slice(0, 0))) if below.all() else (rows.take(below), rows.take(~below))


def _packed_halves(keys: list[Key], rows: Rows) -> list[PackedRows]:
    """Pack rows in two parts, split in the middle of their time; in one part if they are few."""
    if not len(rows):
        return []
    if len(rows) <= _MIN_ROWS_TO_SPLIT:
        return [pack_rows(keys, rows)]
    middle = (int(rows.attribute.min()) + int(rows.attribute.max())) // 2
    return [pack_rows(keys, part) for part in _split(rows, middle + 1) if len(part)]


def _merge_small(parts: Sequence[PackedRows], grouped: bool) -> list[PackedRows]:
    """Merge neighbours until they are not small."""
    groups: list[list[PackedRows]] = [[]]
    size = 0
    for part in parts:
        if size >= _SMALL_TEXT or (size and len(part.text) >= _SMALL_TEXT):
            groups.append([])
            size = 0
        groups[-1].append(part)
        size += len(part.text)
    merged = (group if len(group) == 1 else [merge_packed(group, grouped)] for group in groups)
    return list(itertools.chain.from_iterable(merged))
