"""The processor time that evaluations take, measured while they run."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

Floats = NDArray[np.float64]

_WEIGHTS_PER_EVALUATION = 64.0  # 64 weights cost about as much as the rest of an evaluation
_LEAST_MS = 10.0  # a tick takes about a millisecond whatever is due, which would count as a cost per evaluation
_FORGET = 0.8


def work_of(weights: sparse.csr_matrix) -> Floats:
    """The work of each query's evaluation. One unit is an evaluation without weights.

    >>> work_of(sparse.csr_matrix(np.ones((1, 32)))).tolist()
    [1.5]
    """
    return np.asarray(1.0 + np.diff(weights.indptr) / _WEIGHTS_PER_EVALUATION, dtype=np.float64)


class EvaluationCost:
    """Processor time per unit of work, over the last few ticks that took long enough to tell.

    A decision never rests on a measurement of its own tick, so a micro-batch that is repeated after a crash evaluates
    the same queries again.

    :param clock_ms: the processor time used so far. Without it nothing is measured, and there is no limit.
    """

    def __init__(self, clock_ms: Callable[[], float] | None = None) -> None:
        self._clock_ms = clock_ms
        self._spent_ms = self._work = 0.0
        self._tick_ms = self._tick_work = 0.0

    @property
    def measured(self) -> bool:
        """Whether processor time is measured."""
        return self._clock_ms is not None

    @property
    def unit_ms(self) -> float | None:
        """Processor time per unit of work; None while unknown."""
        return self._spent_ms / self._work if self._work else None

    def now_ms(self) -> float:
        """The processor time used so far; zero if it is not measured."""
        return 0.0 if self._clock_ms is None else self._clock_ms()

    def affordable(self, budget_ms: float) -> float:
        """The work that fits into a budget; infinite while the cost is not known."""
        return np.inf if self.unit_ms is None or not self.measured else budget_ms / self.unit_ms

    def add(self, spent_ms: float, work: float) -> None:
        """Note the evaluations of one tick."""
        self._tick_ms, self._tick_work = spent_ms, work

    def learn(self, delivery_ms: float) -> float:
        """Learn from the last tick; ``delivery_ms`` is what its answers cost afterwards. Returns its processor time."""
        spent_ms, work = self._tick_ms + delivery_ms, self._tick_work
        if work == 0.0:
            return 0.0
        if spent_ms >= _LEAST_MS:
            self._spent_ms = _FORGET * self._spent_ms + spent_ms
            self._work = _FORGET * self._work + work
        return spent_ms

    def snapshot(self) -> dict[str, NDArray[Any]]:
        """The state as arrays by name."""
        return {"cost": np.array([self._spent_ms, self._work])}

    def resume(self, snapshot: dict[str, NDArray[Any]]) -> None:
        """Continue from a snapshot."""
        self._spent_ms, self._work = (float(number) for number in snapshot["cost"])
