"""Answers that move with their drift until the next one, if readers move them (Zhu 2004, Eq. 8)."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


class MovingAnswers:
    """The time and drift of each answer: 16 bytes per query. If answers do not move, nothing is kept."""

    def __init__(self, queries: int, moving: bool) -> None:
        self._moving = moving
        size = queries if moving else 0
        self._answered_at, self._drift = np.zeros(size), np.zeros(size)

    def put(self, some: Ints, now: float, drift: Floats) -> None:
        """Note new answers."""
        if self._moving:
            self._answered_at[some], self._drift[some] = now, drift

    def as_read(self, value: Floats, some: Ints, at: float | Floats) -> Floats:
        """The answers as readers see them at a later time, from the values that were given."""
        if not self._moving:
            return value
        return np.asarray(value + self._drift[some] * (at - self._answered_at[some]), dtype=np.float64)

    def drift_of_error(self, drift: Floats) -> Floats:
        """The drift of an answer's error, given that of the aggregate: none if the answer moves with it."""
        return np.zeros_like(drift) if self._moving else drift

    def snapshot(self) -> dict[str, NDArray[Any]]:
        """The state of each query, as arrays by name."""
        return {"answered_at": self._answered_at, "answer_drift": self._drift} if self._moving else {}

    def resume(self, snapshot: dict[str, NDArray[Any]], into: slice | Ints) -> None:
        """Restore the state of some queries."""
        if self._moving:
            self._answered_at[into], self._drift[into] = snapshot["answered_at"], snapshot["answer_drift"]
