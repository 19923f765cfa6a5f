"""The current answer of every query and what the calibration loops have learned about it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from slackwater.control.deferral.spending import Lengthening
from slackwater.kernel.standing.queries import QuerySet
from slackwater.kernel.standing.rounding import rounded

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

MAX_COUNT = 255  # the step size no longer changes after some tens of evaluations

_LARGEST = 6e4  # float16 ends at 65 504
_ANSWER = ("value", "tick")
_LEARNED = ("hit_caution", "fidelity_caution", "mean_ticks", "count", "earned")


@dataclass(slots=True, eq=False)
class AnswerRows:
    """A copy of some rows of an ``AnswerTable``, in double precision.

    ``value`` and ``tick`` are the answer and the tick it was given at. ``hit_caution`` and ``fidelity_caution`` are the
    positions of the two calibration loops, ``mean_ticks`` is the average length of a deferral, ``count`` the number of
    deferrals learned from. ``earned`` (see ``control.deferral.spending``) is empty where ``lengthening`` is None.
    ``bound``, ``relative``, ``confidence`` and its quantile ``z`` come from the queries.
    """

    value: Floats
    tick: Ints
    hit_caution: Floats
    fidelity_caution: Floats
    mean_ticks: Floats
    count: NDArray[np.uint8]
    earned: Floats
    bound: Floats
    relative: NDArray[np.bool_]
    confidence: Floats
    z: Floats
    lengthening: Lengthening | None

    def epsilon(self) -> Floats:
        """The bound in units of the answer: a relative bound times the absolute value."""
        return np.where(self.relative, self.bound * np.abs(self.value), self.bound)


class AnswerTable:
    """One column per number, one entry per query: 23 bytes per query.

    Learned numbers are stored with few digits, because the whole table is written in every micro-batch. The table in
    memory has the same digits, so that a restart changes no answer.
    """

    def __init__(self, queries: QuerySet, spends: bool = False) -> None:
        size = queries.queries
        self._queries = queries
        self._columns: dict[str, NDArray[Any]] = {
            "value": np.zeros(size),
            "tick": np.zeros(size, dtype=np.int32),
            "hit_caution": np.zeros(size, dtype=np.float32),
            "fidelity_caution": np.zeros(size, dtype=np.float32),
            "mean_ticks": np.zeros(size, dtype=np.float16),
            "count": np.zeros(size, dtype=np.uint8),
        }
        self._lengthening: Lengthening | None = None
        if spends:
            self._columns["earned"] = np.zeros(size, dtype=np.float16)
            confidences, self._confidence_index = _distinct(queries.confidence)
            self._lengthening = Lengthening.of(confidences)

    def take(self, due: Ints) -> AnswerRows:
        """Copy the rows of some queries."""
        columns, queries = self._columns, self._queries
        lengthening = None if self._lengthening is None else self._lengthening.each(self._confidence_index[due])
        return AnswerRows(
            value=columns["value"][due],
            tick=columns["tick"][due].astype(np.int64),
            hit_caution=columns["hit_caution"][due].astype(np.float64),
            fidelity_caution=columns["fidelity_caution"][due].astype(np.float64),
            mean_ticks=columns["mean_ticks"][due].astype(np.float64),
            count=columns["count"][due],
            earned=np.zeros(0) if lengthening is None else columns["earned"][due].astype(np.float64),
            bound=queries.bound[due],
            relative=queries.relative[due],
            confidence=queries.confidence[due],
            z=queries.z[due],
            lengthening=lengthening,
        )

    def put(self, due: Ints, rows: AnswerRows, tick: int) -> None:
        """Store rows as answers given at ``tick``."""
        columns = self._columns
        columns["value"][due] = rows.value
        columns["tick"][due] = tick
        columns["hit_caution"][due] = rounded(rows.hit_caution)
        columns["fidelity_caution"][due] = rounded(rows.fidelity_caution)
        columns["mean_ticks"][due] = np.minimum(rows.mean_ticks, _LARGEST)
        columns["count"][due] = rows.count
        if rows.lengthening is not None:
            columns["earned"][due] = np.clip(rows.earned, -_LARGEST, _LARGEST)

    def ticks(self, due: Ints) -> Ints:
        """The ticks at which some queries were last evaluated."""
        return np.asarray(self._columns["tick"][due], dtype=np.int64)

    def snapshot(self) -> dict[str, NDArray[Any]]:
        """All columns by name."""
        return dict(self._columns)

    def resume(self, snapshot: dict[str, NDArray[Any]], into: slice | Ints) -> None:
        """Restore answers and what was learned into the rows ``into``."""
        self._restore(snapshot, into, _ANSWER + _LEARNED)

    def resume_learned(self, snapshot: dict[str, NDArray[Any]], into: slice | Ints) -> None:
        """Restore only what was learned, for queries whose old answer no longer counts."""
        self._restore(snapshot, into, _LEARNED)

    def _restore(self, snapshot: dict[str, NDArray[Any]], into: slice | Ints, names: tuple[str, ...]) -> None:
        for name in names:
            if name in self._columns:
                self._columns[name][into] = snapshot[name]


def _distinct(confidence: Floats) -> tuple[Floats, NDArray[np.int64]]:
    """The distinct values, and the index of each entry's value. Avoids a sort in the usual case of a single value."""
    if len(confidence) and np.all(confidence == confidence[0]):
        return confidence[:1], np.zeros(len(confidence), dtype=np.int64)
    values, index = np.unique(confidence, return_inverse=True)
    return values, index
