"""The largest values seen, each with the number of rows it stands for."""

from __future__ import annotations

from typing import Any

import numpy as np

from slackwater.control.disorder.protocol import UNKNOWN, Floats, Ints


class TopRows:
    """Answers "what is the n-th largest value seen?" for every n up to the number of rows kept.

    Costs a sort of what is kept at every batch.

    >>> top = TopRows()
    >>> top.add(np.array([1.0, 5.0, 3.0]), np.array([10, 1, 2]), keep=4)
    >>> top.nth(1), top.nth(3), top.nth(4), top.nth(99)
    (5.0, 3.0, 1.0, -inf)
    """

    def __init__(self) -> None:
        self._values = np.empty(0)
        self._weights = np.empty(0, dtype=np.int64)

    def add(self, values: Floats, weights: Ints | None, keep: int) -> None:
        """Take rows in and keep the largest ``keep`` of all."""
        weights = np.ones(len(values), dtype=np.int64) if weights is None else weights
        if len(self._values):
            values, weights = np.concatenate((self._values, values)), np.concatenate((self._weights, weights))
        order = np.argsort(-values, kind="stable")
        enough = int(np.searchsorted(np.cumsum(weights[order]), keep)) + 1
        self._values, self._weights = values[order[:enough]], weights[order[:enough]]

    def nth(self, n: int) -> float:
        """The n-th largest value, or -inf if fewer rows are known."""
        place = int(np.searchsorted(np.cumsum(self._weights), n))
        return float(self._values[place]) if place < len(self._values) else UNKNOWN

    def snapshot(self) -> dict[str, Any]:
        """As JSON."""
        return {"values": self._values.tolist(), "weights": self._weights.tolist()}

    def resume(self, snapshot: dict[str, Any]) -> None:
        """Go on from a snapshot."""
        self._values = np.asarray(snapshot["values"], dtype=np.float64)
        self._weights = np.asarray(snapshot["weights"], dtype=np.int64)
