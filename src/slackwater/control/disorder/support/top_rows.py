"""The largest values seen so far, each with a number of rows."""

from __future__ import annotations

from typing import Any

import numpy as np

from slackwater.control.disorder.protocol import UNKNOWN, Floats, Ints


class TopRows:
    """Finds the n-th largest value seen so far, for every n up to the number of rows kept.

    Costs a sort of the kept and the new values per batch.

    >>> top = TopRows()
    >>> top.add(np.array([1.0, 5.0, 3.0]), np.array([10, 1, 2]), keep=4)
    >>> top.nth(1), top.nth(3), top.nth(4), top.nth(99)
    (5.0, 3.0, 1.0, -inf)
    """

    def __init__(self) -> None:
        self._values = np.empty(0)
        self._weights = np.empty(0, dtype=np.int64)

    def add(self, values: Floats, weights: Ints | None, keep: int) -> None:
        """Add rows, then keep only the largest ``keep`` rows."""
        weights = np.ones(len(values), dtype=np.int64) if weights is None else weights
        if len(self._values):
            values, weights = np.concatenate((self._values, values)), np.concatenate((self._weights, weights))
        order = np.argsort(-values, kind="stable")
        enough = int(np.searchsorted(np.cumsum(weights[order]), keep)) + 1
        self._values, self._weights = values[order[:enough]], weights[order[:enough]]

    def nth(self, n: int) -> float:
        """The n-th largest value; ``UNKNOWN`` if there are fewer rows."""
        index = int(np.searchsorted(np.cumsum(self._weights), n))
        return float(self._values[index]) if index < len(self._values) else UNKNOWN

    def snapshot(self) -> dict[str, Any]:
        """The kept values and their row counts, as JSON."""
        return {"values": self._values.tolist(), "weights": self._weights.tolist()}

    def resume(self, snapshot: dict[str, Any]) -> None:
        """Restore the state from a snapshot."""
        self._values = np.asarray(snapshot["values"], dtype=np.float64)
        self._weights = np.asarray(snapshot["weights"], dtype=np.int64)
