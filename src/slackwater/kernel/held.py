"""The answers that stand, and what was learned of each: half a cache line a query.

An evaluation touches queries all over the table, so that what it reads and writes must lie together and be little.
Where many evaluations follow, the weights are moved beside it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from slackwater.control.deferral.model import two_sided_quantile
from slackwater.kernel.aligned import aligned_rows
from slackwater.kernel.queries import QuerySet
from slackwater.kernel.records import Records

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

ENOUGH = 255  # past some tens of evaluations their number changes nothing

# A row: the answer and the signed bound in double precision, then four single words.
_ROW = np.dtype("V32")
_CAUTION, _LASTING, _MEAN_TICKS, _TICK = 4, 5, 6, 7
_HALF = 1 << 9  # what was learned is rounded to 13 bits, so that it takes half the room where it is put away


@dataclass(slots=True, eq=False)
class Held:
    """Some queries' answers: the value, the tick it was given at, the bound then; caution, and what it rests on.

    ``relative`` is None where no query has a relative bound. ``rows`` is where they were taken from.
    """

    rows: NDArray[np.float32]
    value: Floats
    bound: Floats
    relative: NDArray[np.bool_] | None
    tick: Ints
    caution: Floats
    lasting: Floats
    mean_ticks: Floats
    count: NDArray[np.uint8]
    belief: Floats
    z: Floats

    def epsilon(self) -> Floats:
        """The bound that the held value promised."""
        if self.relative is None:
            return self.bound
        return np.where(self.relative, self.bound * np.abs(self.value), self.bound)


class HeldAnswers:
    """One row a query. Learned numbers are single precision, so that putting them away changes nothing."""

    def __init__(self, queries: QuerySet, lasting: Floats | None = None) -> None:
        size = queries.queries
        self._records: Records | None = None
        self._lay(aligned_rows(size, _ROW.itemsize))
        self._wide[:, 1] = np.where(queries.relative, -queries.bound, queries.bound)
        self._any_relative = bool(np.any(queries.relative))
        if size and np.all(queries.belief == queries.belief[0]):
            self._beliefs, self._kind = queries.belief[:1], np.zeros(0, dtype=np.int32)
        else:
            self._beliefs, kind = np.unique(queries.belief, return_inverse=True)
            self._kind = kind.astype(np.int32)
        self._zs = two_sided_quantile(self._beliefs)
        self._count = np.zeros(size, dtype=np.uint8)
        if lasting is not None:
            self._block[:, _LASTING] = lasting

    def _lay(self, memory: NDArray[Any]) -> None:
        """Have the rows in ``memory``, one at the beginning of each piece of it."""
        self._rows, self._apart = memory.view(_ROW), memory.itemsize // _ROW.itemsize  # moved in one piece
        self._block = memory.view(np.float32).reshape(len(memory), 8 * self._apart)
        self._wide, self._whole = self._block.view(np.float64), self._block.view(np.int32)

    @property
    def with_weights(self) -> bool:
        """Whether weights lie beside the rows."""
        return self._records is not None

    def move_weights_in(self, queries: QuerySet) -> None:
        """Put the weights beside the rows, which costs as much as reading all of them a few times."""
        held = self._rows[:: self._apart]
        self._records = Records(held, queries.weights, queries.width)
        self._lay(self._records.memory)

    def read(self, due: Ints, streams: int) -> tuple[NDArray[Any], sparse.csr_matrix]:
        """The rows of some queries, for ``take``, and their weights over so many streams."""
        assert self._records is not None
        return self._records.take(due, streams)

    def _places(self, due: Ints) -> Ints:
        return due if self._apart == 1 else due * self._apart

    def take(self, due: Ints, taken: NDArray[Any] | None = None) -> Held:
        """The rows of some queries; ``taken``, where they have been read already."""
        size = len(due)
        if taken is None:
            taken = np.empty(size, dtype=_ROW)
            np.take(self._rows, self._places(due), out=taken, mode="clip")  # only then is it not copied once more
        rows = taken.view(np.float32).reshape(size, 8)
        wide = rows.view(np.float64)
        bound = wide[:, 1]
        if len(self._beliefs) == 1:
            belief, z = np.broadcast_to(self._beliefs, size), np.broadcast_to(self._zs, size)
        else:
            kind = self._kind[due]
            belief, z = self._beliefs[kind], self._zs[kind]
        return Held(
            rows,
            wide[:, 0].copy(),
            np.abs(bound),
            bound < 0.0 if self._any_relative else None,
            rows.view(np.int32)[:, _TICK].astype(np.int64),
            rows[:, _CAUTION].astype(np.float64),
            rows[:, _LASTING].astype(np.float64),
            rows[:, _MEAN_TICKS].astype(np.float64),
            np.take(self._count, due),
            belief,
            z,
        )

    def put(self, due: Ints, held: Held, tick: int) -> None:
        """Put the rows back, as answers of that tick; their bounds do not change."""
        rows = held.rows
        whole = rows.view(np.int32)
        rows.view(np.float64)[:, 0] = held.value
        for column, learned in ((_CAUTION, held.caution), (_LASTING, held.lasting), (_MEAN_TICKS, held.mean_ticks)):
            word = learned.astype(np.float32).view(np.int32)
            word += _HALF
            word &= ~(2 * _HALF - 1)
            whole[:, column] = word
        whole[:, _TICK] = tick
        np.put(self._rows, self._places(due), rows.view(_ROW).ravel(), mode="clip")
        self._count[due] = held.count

    def ticks(self, due: Ints) -> Ints:
        """When some queries were last evaluated."""
        return np.asarray(self._whole[due, _TICK], dtype=np.int64)

    def snapshot(self) -> dict[str, NDArray[Any]]:
        """What is not known from the queries, as arrays by name."""
        return {
            "held": self._wide[:, 0].copy(),
            "learned": self._block[:, _CAUTION:_TICK].copy(),
            "tick": self._whole[:, _TICK].copy(),
            "count": self._count,
        }

    def resume(self, snapshot: dict[str, NDArray[Any]], into: slice | Ints) -> None:
        """Go on from the rows of a snapshot."""
        self._wide[into, 0] = snapshot["held"]
        self._whole[into, _TICK] = snapshot["tick"]
        self.learned(snapshot, into)

    def learned(self, snapshot: dict[str, NDArray[Any]], into: slice | Ints) -> None:
        """Take over what was learned, and no answer."""
        self._block[into, _CAUTION:_TICK] = snapshot["learned"]
        self._count[into] = snapshot["count"]
