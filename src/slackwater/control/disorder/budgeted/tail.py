"""The upper tail of a stream of numbers, with exponential forgetting."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from slackwater.control.disorder.protocol import Floats, Ints

FINE = 16
"""This many of the largest values are kept without merging."""
_FINE_AND_NEXT = np.arange(FINE + 1)
COARSENING = math.log(1.1)
"""Below those, neighbouring values are merged if their ranks differ by less than 10 %."""
MOST_KEPT = 80
"""More entries than this are merged."""
RESCALE_AT = 1e9
"""The weights are rescaled when the weight of a new row exceeds this."""
FORGOTTEN = 0.2
"""A maximum with less than this remaining weight (1 is a new row) is ignored."""
FADED = 0.01
"""Entries with less than this remaining weight are dropped when entries are merged."""
BROKEN_CLOCKS = 32.0
"""Implausible values are looked for among this many of the largest rows."""
ABSURD = 30.0
"""A value more than this many times the next lower one comes from a broken clock, not from a slow row."""


class Tail:
    """Converts a rank from the top to a value.

    A merged entry takes the larger value, so an answer is too large by at most 10 % in rank, which is the safe side.
    Ranks beyond the share ``reach`` of the remembered rows are not covered. Costs at most 80 entries.
    """

    def __init__(self, reach: float) -> None:
        self.reach = reach
        self._values: Floats = np.zeros(0)
        self._weights: Floats = np.zeros(0)
        self._ranks: Floats = np.zeros(0)
        self._kept = 0.0
        self._total = 0.0
        self._scale = 1.0
        self._floor = -math.inf

    @property
    def rows(self) -> float:
        """The number of rows it remembers, after forgetting."""
        return self._total / self._scale

    def add(self, values: Floats, weights: Ints | None, rows: int, highest: float, forget: float) -> None:
        """Multiply the weight of old rows by exp(−``forget``), then add a batch; ``highest`` is its largest value."""
        # New rows get a larger weight instead of old rows a smaller one, so old entries need no update.
        self._scale *= math.exp(min(forget, 30.0))
        self._total += rows * self._scale
        if self._kept < self.reach * self._total:
            self._floor = -math.inf
        if highest > self._floor:
            keep = (values > self._floor).nonzero()[0]
            fresh = values[keep]
            heavy = np.full(len(fresh), self._scale) if weights is None else weights[keep] * self._scale
            merged = np.concatenate((self._values, fresh))
            order = (-merged).argsort(kind="stable")
            self._values = merged[order]
            self._weights = np.concatenate((self._weights, heavy))[order]
            self._kept += float(heavy.sum())
            if len(order) > MOST_KEPT:
                self._merge()
            self._ranks = self._weights.cumsum()
        if self._scale > RESCALE_AT:
            self._weights = self._weights / self._scale
            self._ranks = self._ranks / self._scale
            self._kept /= self._scale
            self._total /= self._scale
            self._scale = 1.0

    def _merge(self) -> None:
        """Drop entries that are forgotten or out of reach, and merge neighbours."""
        alive = self._weights >= FADED * self._scale
        self._values, self._weights = self._values[alive], self._weights[alive]
        ranks = self._weights.cumsum()
        self._kept = float(ranks[-1])
        enough = int(ranks.searchsorted(2.0 * self.reach * self._total)) + 1
        if enough < len(ranks):
            self._floor = float(self._values[enough - 1])
            self._values, self._weights, ranks = self._values[:enough], self._weights[:enough], ranks[:enough]
            self._kept = float(ranks[-1])
        if len(ranks) > MOST_KEPT // 2:
            steps = np.floor(np.log(ranks[FINE:] / ranks[FINE - 1]) / COARSENING)
            first = np.concatenate((_FINE_AND_NEXT, FINE + 1 + (steps[1:] != steps[:-1]).nonzero()[0]))
            self._weights = np.add.reduceat(self._weights, first)
            self._values = self._values[first]

    def above(self, count: float) -> float:
        """The smallest known value with at most ``count`` remembered rows above it."""
        if not len(self._values):
            return -math.inf
        at = int(self._ranks.searchsorted(count * self._scale, "right"))
        return float(self._values[min(at, len(self._values) - 1)])

    def highest(self) -> float:
        """The largest value that is not forgotten and does not come from a broken clock."""
        if not len(self._values):
            return -math.inf
        ranks = self._ranks
        first = min(int(ranks.searchsorted(FORGOTTEN * self._scale, "right")), len(ranks) - 1)
        # the limit counts rows, not entries: one entry may stand for many rows
        top = self._values[first : int(ranks.searchsorted(BROKEN_CLOCKS * self._scale)) + 1]
        gaps = np.flatnonzero((top[:-1] > ABSURD * top[1:]) & (top[1:] > 0))
        return float(top[gaps[-1] + 1] if len(gaps) else top[0])

    def snapshot(self) -> dict[str, Any]:
        """The state of the tail, as JSON."""
        return {
            "values": self._values.tolist(),
            "weights": self._weights.tolist(),
            "numbers": [self._kept, self._total, self._scale],
            "floor": self._floor if math.isfinite(self._floor) else None,
        }

    def resume(self, snapshot: dict[str, Any]) -> None:
        """Restore the state from a snapshot."""
        self._values = np.asarray(snapshot["values"], dtype=np.float64)
        self._weights = np.asarray(snapshot["weights"], dtype=np.float64)
        self._ranks = self._weights.cumsum()
        self._kept, self._total, self._scale = snapshot["numbers"]
        self._floor = -math.inf if snapshot["floor"] is None else float(snapshot["floor"])
