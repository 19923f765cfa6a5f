"""Base class of the papers' methods, which decide at every row but must also accept histograms."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar

import numpy as np

from slackwater.control.disorder.protocol import UNKNOWN, Batch, Floats, Ints
from slackwater.promises import Completeness


class RowMethod(ABC):
    """Processes single rows exactly, and approximates where a batch is only known as a histogram with a clock.

    Rows with arrivals, and rows of a stream without a clock, go through ``_rows`` one by one. The state after a batch
    equals the state after batches of one row. Histogram cells, and rows without arrivals of their own, go through
    ``_cells``, because their order within the batch is unknown. In a stream without a clock the front (the highest
    value so far) serves as the arrival.
    """

    name: ClassVar[str]

    def __init__(self, promise: Completeness) -> None:
        self._drop_ratio = promise.drop_ratio
        self._front = UNKNOWN
        self._has_clock = True

    def observe(self, batch: Batch) -> None:
        """Learn from a batch whose late rows have been counted."""
        if not len(batch.values):
            return
        self._has_clock = batch.arrivals is not None or batch.clock is not None
        if batch.weights is None and (batch.arrivals is not None or batch.clock is None):
            reference = self._reference(batch.values, batch.arrivals)
            self._rows(batch.values, reference, batch.late, None)
        else:
            assert batch.clock is not None, "a histogram comes with the clock of its batch"
            weights = np.ones(len(batch.values), dtype=np.int64) if batch.weights is None else batch.weights
            self._front = max(self._front, float(batch.values.max()))
            self._cells(batch.values, weights, batch.clock, batch.late)

    def trail(self, values: Floats, arrivals: Floats | None) -> Floats:
        """Learn from rows one by one and return the heartbeat that is proposed after each of them.

        The result equals calls of ``observe`` and ``heartbeat`` with batches of one row, at a lower cost.
        """
        heartbeats: list[float] = []
        self._has_clock = arrivals is not None
        if len(values):
            self._rows(values, self._reference(values, arrivals), None, heartbeats)
        return np.asarray(heartbeats, dtype=np.float64)

    def _reference(self, values: Floats, arrivals: Floats | None) -> Floats:
        """The arrival of each row, or the front after it if there are no arrivals."""
        front = np.maximum(np.maximum.accumulate(values), self._front)
        self._front = float(front[-1])
        return front if arrivals is None else arrivals

    def _now(self, clock: float | None) -> float:
        return self._front if clock is None else clock

    @abstractmethod
    def _rows(self, values: Floats, reference: Floats, late: int | None, heartbeats: list[float] | None) -> None:
        """Learn from each row in turn, and append the proposed heartbeat after each to ``heartbeats`` if it is a list.

        ``reference`` is what ``_reference`` returns. ``late`` counts the late rows. It is None if ``heartbeats`` is a
        list: those heartbeats are then the ones in force, and the method counts late rows itself.
        """

    @abstractmethod
    def _cells(self, values: Floats, weights: Ints, clock: float, late: int) -> None:
        """Learn from the histogram of one batch: ``weights[i]`` rows have the value ``values[i]``."""

    @abstractmethod
    def heartbeat(self, clock: float | None) -> float:
        """Propose a heartbeat for the arrival clock ``clock``."""

    @abstractmethod
    def snapshot(self) -> dict[str, Any]:
        """The state of the method, as JSON."""

    @abstractmethod
    def resume(self, snapshot: dict[str, Any]) -> None:
        """Restore the state from a snapshot of the same method."""
