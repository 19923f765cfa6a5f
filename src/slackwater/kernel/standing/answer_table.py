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
from slackwater.control.deferral.spending import Lengthening
from slackwater.kernel.standing.aligned import aligned_rows
from slackwater.kernel.standing.queries import QuerySet
from slackwater.kernel.standing.records import Records

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

ENOUGH = 255  # past some tens of evaluations their number changes nothing

# A row: the answer and the signed bound in double precision, then four single words: caution; what it rests on, with
# the number of evaluations in the bits that rounding frees; mean ticks and what is earned, half a word each; the tick.
_ROW = np.dtype("V32")
_CAUTION, _LASTING, _MEANS, _TICK = 4, 5, 6, 7
_MEAN_TICKS, _EARNED = 2 * _MEANS, 2 * _MEANS + 1
_HALF = 1 << 9  # what was learned is rounded to 13 bits, so that it takes half the room where it is put away
_LEARNED = ~(2 * _HALF - 1)
_LONGEST = 6e4  # of half a word


@dataclass(slots=True, eq=False)
class AnswerRows:
    """Some queries' answers: the value, the tick it was given at, the bound then; caution, and what it rests on.

    ``relative`` is None where no query has a relative bound, ``lengthening`` where nothing is earned. ``rows`` is where
    they were taken from.
    """

    rows: NDArray[np.int32]
    value: Floats
    bound: Floats
    relative: NDArray[np.bool_] | None
    tick: Ints
    caution: Floats
    lasting: Floats
    mean_ticks: Floats
    count: NDArray[np.uint8]
    earned: Floats
    confidence: Floats
    z: Floats
    lengthening: Lengthening | None

    def epsilon(self) -> Floats:
        """The bound that the held value promised."""
        if self.relative is None:
            return self.bound
        return np.where(self.relative, self.bound * np.abs(self.value), self.bound)


class AnswerTable:
    """One row a query. Learned numbers are single precision, so that putting them away changes nothing."""

    def __init__(self, queries: QuerySet, spends: bool = False) -> None:
        size = queries.queries
        self._records: Records | None = None
        self._lay(aligned_rows(size, _ROW.itemsize))
        self._wide[:, 1] = np.where(queries.relative, -queries.bound, queries.bound)
        self._any_relative = bool(np.any(queries.relative))
        if size and np.all(queries.confidence == queries.confidence[0]):
            self._confidences, self._kind = queries.confidence[:1], np.zeros(0, dtype=np.int32)
        else:
            self._confidences, kind = np.unique(queries.confidence, return_inverse=True)
            self._kind = kind.astype(np.int32)
        self._zs = two_sided_quantile(self._confidences)
        self._lengthening = Lengthening.of(self._confidences) if spends else None

    def _lay(self, memory: NDArray[Any]) -> None:
        """Have the rows in ``memory``, one at the beginning of each piece of it."""
        self._rows, self._apart = memory.view(_ROW), memory.itemsize // _ROW.itemsize  # moved in one piece
        self._whole = memory.view(np.int32).reshape(len(memory), 8 * self._apart)
        self._wide, self._short = self._whole.view(np.float64), self._whole.view(np.float16)

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

    def take(self, due: Ints, taken: NDArray[Any] | None = None) -> AnswerRows:
        """The rows of some queries; ``taken``, where they have been read already."""
        size = len(due)
        if taken is None:
            taken = np.empty(size, dtype=_ROW)
            np.take(self._rows, self._places(due), out=taken, mode="clip")  # only then is it not copied once more
        rows = taken.view(np.int32).reshape(size, 8)
        wide, short = rows.view(np.float64), rows.view(np.float16)
        bound = wide[:, 1]
        if len(self._confidences) == 1:
            confidence, z, lengthening = (
                np.broadcast_to(self._confidences, size),
                np.broadcast_to(self._zs, size),
                self._lengthening,
            )
        else:
            kind = self._kind[due]
            confidence, z = self._confidences[kind], self._zs[kind]
            lengthening = None if self._lengthening is None else self._lengthening.each(kind)
        return AnswerRows(
            rows,
            wide[:, 0].copy(),
            np.abs(bound),
            bound < 0.0 if self._any_relative else None,
            rows[:, _TICK].astype(np.int64),
            rows.view(np.float32)[:, _CAUTION].astype(np.float64),
            (rows[:, _LASTING] & _LEARNED).view(np.float32).astype(np.float64),
            short[:, _MEAN_TICKS].astype(np.float64),
            rows[:, _LASTING].astype(np.uint8),
            np.zeros(0) if lengthening is None else short[:, _EARNED].astype(np.float64),
            confidence,
            z,
            lengthening,
        )

    def put(self, due: Ints, held: AnswerRows, tick: int) -> None:
        """Put the rows back, as answers of that tick; their bounds do not change."""
        rows = held.rows
        short = rows.view(np.float16)
        rows.view(np.float64)[:, 0] = held.value
        rows[:, _CAUTION] = _rounded(held.caution)
        rows[:, _LASTING] = _rounded(held.lasting) | held.count
        short[:, _MEAN_TICKS] = np.minimum(held.mean_ticks, _LONGEST)
        if held.lengthening is not None:
            short[:, _EARNED] = np.clip(held.earned, -_LONGEST, _LONGEST)
        rows[:, _TICK] = tick
        np.put(self._rows, self._places(due), rows.view(_ROW).ravel(), mode="clip")

    def ticks(self, due: Ints) -> Ints:
        """When some queries were last evaluated."""
        return np.asarray(self._whole[due, _TICK], dtype=np.int64)

    def snapshot(self) -> dict[str, NDArray[Any]]:
        """What is not known from the queries, as arrays by name."""
        learned = self._whole[:, _CAUTION:_MEANS] & _LEARNED
        own: dict[str, NDArray[Any]] = {
            "held": self._wide[:, 0].copy(),
            "learned": np.column_stack([learned.view(np.float32), self._short[:, _MEAN_TICKS].astype(np.float32)]),
            "tick": self._whole[:, _TICK].copy(),
            "count": self._whole[:, _LASTING].astype(np.uint8),
        }
        return own if self._lengthening is None else own | {"earned": self._short[:, _EARNED].copy()}

    def resume(self, snapshot: dict[str, NDArray[Any]], into: slice | Ints) -> None:
        """Go on from the rows of a snapshot."""
        self._wide[into, 0] = snapshot["held"]
        self._whole[into, _TICK] = snapshot["tick"]
        self.learned(snapshot, into)

    def learned(self, snapshot: dict[str, NDArray[Any]], into: slice | Ints) -> None:
        """Take over what was learned, and no answer."""
        caution, lasting, mean_ticks = snapshot["learned"].T
        self._whole[into, _CAUTION] = _rounded(caution)
        self._whole[into, _LASTING] = _rounded(lasting) | snapshot["count"]
        self._short[into, _MEAN_TICKS] = np.minimum(mean_ticks, _LONGEST)
        if "earned" in snapshot:
            self._short[into, _EARNED] = snapshot["earned"]


def _rounded(learned: NDArray[Any]) -> NDArray[np.int32]:
    """The bits of some numbers, the last ten of them free."""
    word = learned.astype(np.float32).view(np.int32)
    word += _HALF
    word &= _LEARNED
    return word
