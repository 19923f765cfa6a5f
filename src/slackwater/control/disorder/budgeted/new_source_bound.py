"""How late a source may be that has not been heard yet: what the ones that were heard say of it."""

from __future__ import annotations

import math
from statistics import NormalDist
from typing import Any

import numpy as np

from slackwater.control.disorder.protocol import Floats, Ints

LEAST_SOURCES = 12
"""Fewer do not tell how much sources differ: the bound would be mostly the error of its own estimation."""
LARGEST_LOG = 700.0


class NewSourceBound:
    """The mean lateness of each source heard so far, and from these what the next source may bring.

    A row says little of a source that has not spoken: rows of one source resemble each other, so the sample that
    counts is that of the sources, and it is small. Sources differ by factors (distance, batching, load), so the
    logarithms of their mean latenesses are taken to be normal, and the answer is the bound of a prediction interval
    for one more of them. It is used before the first heartbeat alone: it decides how long to listen, never how
    long to wait. Costs a few array passes a batch; a source is three numbers.
    """

    def __init__(self) -> None:
        self._known: Ints = np.zeros(0, dtype=np.int64)
        self._sums: Floats = np.zeros(0)
        self._rows: Floats = np.zeros(0)

    def observe(self, lateness: Floats, weights: Ints | None, sources: Ints) -> None:
        """Let rows in."""
        known, slots = np.unique(np.concatenate((self._known, sources)), return_inverse=True)
        counts = np.ones(len(sources)) if weights is None else weights.astype(np.float64)
        sums, rows = np.concatenate((self._sums, lateness * counts)), np.concatenate((self._rows, counts))
        self._known = known.astype(np.int64)
        self._sums = np.bincount(slots, sums, len(known)).astype(np.float64)
        self._rows = np.bincount(slots, rows, len(known)).astype(np.float64)

    def lateness(self, ratio: float) -> float:
        """What the next source exceeds so rarely that ``ratio`` can be promised; 0 while nothing can be said.

        One of k sources is about 1/k of the rows. Where that is less than D, to lose it now and then is what D
        allows; where it is more, it must be rarer in proportion: D · min(D · k, 1).
        """
        means = self._sums / self._rows
        logs = np.log(means[means > 0])
        if len(logs) < LEAST_SOURCES:
            return 0.0
        chance = ratio * min(ratio * len(logs), 1.0)
        bound = float(logs.mean()) + _score(chance, len(logs)) * float(logs.std(ddof=1))
        return math.exp(min(bound, LARGEST_LOG))

    def snapshot(self) -> list[list[float]]:
        """Three parallel lists."""
        return [self._known.tolist(), self._sums.tolist(), self._rows.tolist()]

    def resume(self, snapshot: list[list[Any]]) -> None:
        """Go on from a snapshot."""
        self._known = np.asarray(snapshot[0], dtype=np.int64)
        self._sums, self._rows = (np.asarray(numbers, dtype=np.float64) for numbers in snapshot[1:])


def _score(chance: float, count: int) -> float:
    """How many standard deviations above the mean of ``count`` normal numbers one more lies with so small a chance.

    Student's t by the first term of its expansion around the normal score, t ≈ z + (z³ + z) / 4ν, times
    √(1 + 1/n), since the mean was learned from the same numbers.
    """
    z = NormalDist().inv_cdf(1.0 - min(chance, 0.5))
    return (z + (z**3 + z) / (4.0 * (count - 1))) * math.sqrt(1.0 + 1.0 / count)
