"""What the papers' methods share: they decide at every row, and must also live with a histogram."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar

import numpy as np

from slackwater.control.disorder.protocol import UNKNOWN, Batch, Floats, Ints
from slackwater.promises import Completeness


class RowMethod(ABC):
    """Exact per row where the rows are known, sensible where only a batch's histogram and clock are.

    Rows with their arrivals (or without any clock) go through ``_rows`` one after the other, so that the state
    after a batch is what it would be after batches of one row. Cells with weights, or rows that know only the
    batch's clock, go through ``_cells``: the order inside the batch is unknown there. Without any clock the front
    (the highest value so far) stands in for the arrival.
    """

    name: ClassVar[str]

    def __init__(self, promise: Completeness) -> None:
        self._drop_ratio = promise.drop_ratio
        self._front = UNKNOWN
        self._clocked = True

    def observe(self, batch: Batch) -> None:
        """Learn from rows that have just been judged."""
        if not len(batch.values):
            return
        self._clocked = batch.arrivals is not None or batch.clock is not None
        if batch.weights is None and (batch.arrivals is not None or batch.clock is None):
            reference = self._reference(batch.values, batch.arrivals)
            self._rows(batch.values, reference, batch.late, None)
        else:
            assert batch.clock is not None, "a histogram has its batch's clock"
            weights = np.ones(len(batch.values), dtype=np.int64) if batch.weights is None else batch.weights
            self._front = max(self._front, float(batch.values.max()))
            self._cells(batch.values, weights, batch.clock, batch.late)

    def trail(self, values: Floats, arrivals: Floats | None) -> Floats:
        """Learn from rows one by one; the heartbeat proposed at the arrival of each, the row itself included.

        It is what ``observe`` and ``heartbeat`` would have answered with batches of a single row, and faster.
        """
        heartbeats: list[float] = []
        self._clocked = arrivals is not None
        if len(values):
            self._rows(values, self._reference(values, arrivals), None, heartbeats)
        return np.asarray(heartbeats, dtype=np.float64)

    def _reference(self, values: Floats, arrivals: Floats | None) -> Floats:
        """The arrival of each row, or the front at its arrival."""
        front = np.maximum(np.maximum.accumulate(values), self._front)
        self._front = float(front[-1])
        return front if arrivals is None else arrivals

    def _now(self, clock: float | None) -> float:
        return self._front if clock is None else clock

    @abstractmethod
    def _rows(self, values: Floats, reference: Floats, late: int | None, heartbeats: list[float] | None) -> None:
        """Learn from each row in turn; append the heartbeat after each if asked.

        ``late`` is None where the heartbeats asked for are the ones in force: the method then counts for itself.
        """

    @abstractmethod
    def _cells(self, values: Floats, weights: Ints, clock: float, late: int) -> None:
        """Learn from a histogram of rows that came in one batch, in unknown order."""

    @abstractmethod
    def heartbeat(self, clock: float | None) -> float:
        """The heartbeat to put in force now."""

    @abstractmethod
    def snapshot(self) -> dict[str, Any]:
        """Everything it has learned, as JSON."""

    @abstractmethod
    def resume(self, snapshot: dict[str, Any]) -> None:
        """Go on from a snapshot of the same method."""


def to_json(value: float) -> float | None:
    """A number that may be unknown, as JSON has it."""
    return None if value == UNKNOWN else value


def from_json(value: float | None) -> float:
    """And back."""
    return UNKNOWN if value is None else value
