"""A bound on the lateness of a source that has not sent a row yet, from the sources that have."""

from __future__ import annotations

import math
from statistics import NormalDist
from typing import Any

import numpy as np

from slackwater.control.disorder.protocol import Floats, Ints

LEAST_SOURCES = 12
"""With fewer sources the bound would consist mostly of estimation error."""
LARGEST_LOG = 700.0


class NewSourceBound:
    """Predicts the lateness of the next new source from the mean lateness of each known source.

    Rows of one source resemble each other, so the sample is the sources, not the rows, and it is small. Sources differ
    by factors (distance, batching, load). The logarithms of their mean latenesses are therefore modelled as normal, and
    the bound is the upper end of a prediction interval for one more source.

    It is used only before the first heartbeat, to decide how long to observe the stream. Costs a few array passes per
    batch and three numbers per source.
    """

    def __init__(self) -> None:
        self._known: Ints = np.zeros(0, dtype=np.int64)
        self._sums: Floats = np.zeros(0)
        self._rows: Floats = np.zeros(0)

    def observe(self, lateness: Floats, weights: Ints | None, sources: Ints) -> None:
        """Learn the lateness of rows."""
        known, slots = np.unique(np.concatenate((self._known, sources)), return_inverse=True)
        counts = np.ones(len(sources)) if weights is None else weights.astype(np.float64)
        sums, rows = np.concatenate((self._sums, lateness * counts)), np.concatenate((self._rows, counts))
        self._known = known.astype(np.int64)
        self._sums = np.bincount(slots, sums, len(known)).astype(np.float64)
        self._rows = np.bincount(slots, rows, len(known)).astype(np.float64)

    def lateness(self, ratio: float) -> float:
        """The lateness that the next source exceeds with a probability low enough for ``ratio``; 0 if unknown.

        One of k sources sends about 1/k of the rows. If 1/k is below D, the source may be lost with probability D. If
        it is above, the probability must be lower in proportion: D · min(D · k, 1).
        """
        means = self._sums / self._rows
        logs = np.log(means[means > 0])
        if len(logs) < LEAST_SOURCES:
            return 0.0
        probability = ratio * min(ratio * len(logs), 1.0)
        bound = float(logs.mean()) + _score(probability, len(logs)) * float(logs.std(ddof=1))
        return math.exp(min(bound, LARGEST_LOG))

    def snapshot(self) -> list[list[float]]:
        """The state as JSON: the sources, their sums of lateness and their row counts."""
        return [self._known.tolist(), self._sums.tolist(), self._rows.tolist()]

    def resume(self, snapshot: list[list[Any]]) -> None:
        """Restore the state from a snapshot."""
        self._known = np.asarray(snapshot[0], dtype=np.int64)
        self._sums, self._rows = (np.asarray(numbers, dtype=np.float64) for numbers in snapshot[1:])


def _score(probability: float, count: int) -> float:
    """The standard score that one more normal number exceeds with ``probability``, given ``count`` numbers.

    This is Student's t, approximated as z + (z³ + z) / 4ν, times √(1 + 1/n) because the mean was estimated from the
    same numbers.
    """
    z = NormalDist().inv_cdf(1.0 - min(probability, 0.5))
    return (z + (z**3 + z) / (4.0 * (count - 1))) * math.sqrt(1.0 + 1.0 / count)
