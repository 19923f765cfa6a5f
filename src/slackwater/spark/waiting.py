"""The rows of a shard that wait for the heartbeat: parcels as they came, unopened until it reaches one."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence

import numpy as np

from slackwater.kernel import Rows
from slackwater.spark.parcels import Key, Parcel, sealed, together, unsealed

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
    >>> [(names, rows.attribute.tolist()) for names, rows in waiting.release(6)], waiting.first()
    ([(['a'], [5])], 7)
    >>> Waiting.from_text(waiting.to_text()).parcels == waiting.parcels
    True
    """

    def __init__(self, parcels: Iterable[Parcel] = ()) -> None:
        self.parcels = list(parcels)

    @classmethod
    def from_text(cls, text: str) -> Waiting:
        """From what ``to_text`` wrote."""
        lines = (line.partition(" ") for line in text.splitlines())
        return cls((int(first), parcel) for first, _, parcel in lines)

    def to_text(self) -> str:
        """A line a parcel."""
        return "\n".join(f"{first} {text}" for first, text in self.parcels)

    def first(self) -> int | None:
        """The least attribute that waits, or None."""
        return min((first for first, _ in self.parcels), default=None)

    def release(self, heartbeat: int | None) -> list[tuple[list[Key], Rows]]:
        """The rows below the heartbeat with the names of their groups; without a heartbeat, all of them."""
        kept: list[Parcel] = []
        released = []
        for first, text in self.parcels:
            if heartbeat is not None and first >= heartbeat:
                kept.append((first, text))
                continue
            names, rows = unsealed(text)
            cut = len(rows) if heartbeat is None else int(np.searchsorted(rows.attribute, heartbeat))
            released.append((names, rows.take(slice(0, cut))))
            kept += _halves(names, rows.take(slice(cut, None)))
        self.parcels = kept if len(kept) <= _MANY else _fewer(kept)
        return released


def _halves(names: list[Key], rows: Rows) -> list[Parcel]:
    if not len(rows):
        return []
    if len(rows) <= _WHOLE:
        return [sealed(names, rows)]
    middle = (int(rows.attribute[0]) + int(rows.attribute[-1])) // 2
    cut = int(np.searchsorted(rows.attribute, middle, side="right"))
    return [sealed(names, part) for part in (rows.take(slice(0, cut)), rows.take(slice(cut, None))) if len(part)]


def _fewer(parcels: Sequence[Parcel]) -> list[Parcel]:
    """Small neighbours put together, until they are not small."""
    groups: list[list[Parcel]] = [[]]
    size = 0
    for parcel in parcels:
        if size >= _SMALL or (size and len(parcel[1]) >= _SMALL):
            groups.append([])
            size = 0
        groups[-1].append(parcel)
        size += len(parcel[1])
    return list(itertools.chain.from_iterable(group if len(group) == 1 else [together(group)] for group in groups))
