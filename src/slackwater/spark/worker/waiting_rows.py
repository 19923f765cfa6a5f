"""The rows of a shard that wait for the heartbeat: parcels as they came, unopened until it reaches one."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterable, Sequence

from slackwater.kernel.windows import Rows
from slackwater.spark.worker.packed_rows import Key, Packed, sealed, together, unsealed

_MANY = 64
_SMALL = 1 << 16  # letters
_WHOLE = 1024  # rows


class Waiting:
    """Hands rows over once the heartbeat is past them, in the order of their arrival; it does not sort them.

    Spark hands the whole state to Python and back in every micro-batch, so that a row should cost little while nothing
    becomes of it: a parcel is text, and passed on as it is. One that the heartbeat is inside of is parted; what is left
    of it is cut in the middle of its time, so that the later half is not opened for every row of the earlier one, and
    each row is packed anew a few times at most (the logarithm of the wait in micro-batches). Many small parcels are
    put together.

    >>> waiting = Waiting([sealed(["a"], Rows.of([5, 7]))])
    >>> [(names, rows.attribute.tolist()) for names, rows in waiting.release(6)]
    [(['a'], [5])]
    >>> [first for first, _ in waiting.parcels]
    [7]
    >>> Waiting.from_text(waiting.to_text()).parcels == waiting.parcels
    True
    """

    def __init__(self, packed_rows: Iterable[Packed] = (), *, grouped: bool = False) -> None:
        self.packed_rows = list(packed_rows)
        self._grouped = grouped

    @classmethod
    def from_text(cls, text: str, *, grouped: bool = False) -> Waiting:
        """From what ``to_text`` wrote."""
        head, _, packed = text.partition("\n")
        packed_rows: list[Packed] = []
        start = 0
        for first, length in json.loads(head):
            packed_rows.append((first, packed[start : start + length]))
            start += length
        return cls(packed_rows, grouped=grouped)

    def to_text(self) -> str:
        """A line that says when each parcel begins and how long it is, and the parcels."""
        head = json.dumps([(first, len(text)) for first, text in self.packed_rows])
        return "".join([head, "\n", *(text for _, text in self.packed_rows)])

    def release(self, heartbeat: int) -> list[tuple[list[Key], Rows]]:
        """The rows below the heartbeat with the names of their groups."""
        kept: list[Packed] = []
        released = []
        for first, text in self.packed_rows:
            if first >= heartbeat:
                kept.append((first, text))
                continue
            names, rows = unsealed(text)
            below, rest = _parted(rows, heartbeat)
            released.append((names, below))
            kept += _halves(names, rest)
        self.packed_rows = kept if len(kept) <= _MANY else _fewer(kept, self._grouped)
        return released


def _parted(rows: Rows, cut: int) -> tuple[Rows, Rows]:
    """The rows below the cut, and the others."""
    below = rows.attribute < cut
    return (rows, rows.take(slice(0, 0))) if below.all() else (rows.take(below), rows.take(~below))


def _halves(names: list[Key], rows: Rows) -> list[Packed]:
    if not len(rows):
        return []
    if len(rows) <= _WHOLE:
        return [sealed(names, rows)]
    middle = (int(rows.attribute.min()) + int(rows.attribute.max())) // 2
    return [sealed(names, part) for part in _parted(rows, middle + 1) if len(part)]


def _fewer(packed_rows: Sequence[Packed], grouped: bool) -> list[Packed]:
    """Small neighbours put together, until they are not small."""
    groups: list[list[Packed]] = [[]]
    size = 0
    for packed in packed_rows:
        if size >= _SMALL or (size and len(packed[1]) >= _SMALL):
            groups.append([])
            size = 0
        groups[-1].append(packed)
        size += len(packed[1])
    put_together = (group if len(group) == 1 else [together(group, grouped)] for group in groups)
    return list(itertools.chain.from_iterable(put_together))
