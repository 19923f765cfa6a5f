"""The largest latenesses of the recent past, with how much each still counts."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from slackwater.control.disorder.protocol import Floats, Ints

FINE = 16
"""So many of the largest are kept one by one."""
_FINE_AND_NEXT = np.arange(FINE + 1)
COARSENING = math.log(1.1)
"""Below them, neighbours are merged while their ranks differ by less than 10 %."""
MOST_KEPT = 80
RESCALE_AT = 1e9
FORGOTTEN = 0.2
"""A maximum that has faded below this share of a row no longer counts."""
FADED = 0.01
"""Below this share of a row an entry is dropped when room is made."""
BROKEN_CLOCKS = 32.0
"""Among so many of the largest rows, broken clocks are looked for."""
ABSURD = 30.0
"""A value so many times the next lower one is a broken clock, not a slow row."""


class Tail:
    """The upper tail of a stream of numbers under exponential forgetting: rank in, value out.

    Holds at most 80 entries whatever the stream. Merged entries take the larger value, so an answer errs to the
    safe side, by at most 10 % in rank. Only ranks within the share ``reach`` of the remembered rows are exact.
    """

    def __init__(self, reach: float) -> None:
        self.reach = reach
        self._values: Floats = np.zeros(0)
        self._weights: Floats = np.zeros(0)
        self._ranks: Floats = np.zeros(0)
        self._held = 0.0
        self._total = 0.0
        self._scale = 1.0
        self._floor = -math.inf

    @property
    def rows(self) -> float:
        """How many rows it still remembers."""
        return self._total / self._scale

    def add(self, values: Floats, weights: Ints | None, rows: int, highest: float, forget: float) -> None:
        """Let a batch in, after fading what is known by exp(−``forget``); ``highest`` is its largest value."""
        # Fading is done by letting new rows weigh more: nothing old has to be touched.
        self._scale *= math.exp(min(forget, 30.0))
        self._total += rows * self._scale
        if self._held < self.reach * self._total:
            self._floor = -math.inf
        if highest > self._floor:
            keep = (values > self._floor).nonzero()[0]
            fresh = values[keep]
            heavy = np.full(len(fresh), self._scale) if weights is None else weights[keep] * self._scale
            merged = np.concatenate((self._values, fresh))
            order = (-merged).argsort(kind="stable")
            self._values = merged[order]
            self._weights = np.concatenate((self._weights, heavy))[order]
            self._held += float(heavy.sum())
            if len(order) > MOST_KEPT:
                self._thin()
            self._ranks = self._weights.cumsum()
        if self._scale > RESCALE_AT:
            self._weights = self._weights / self._scale
            self._ranks = self._ranks / self._scale
            self._held /= self._scale
            self._total /= self._scale
            self._scale = 1.0

    def _thin(self) -> None:
        alive = self._weights >= FADED * self._scale
        self._values, self._weights = self._values[alive], self._weights[alive]
        ranks = self._weights.cumsum()
        self._held = float(ranks[-1])
        enough = int(ranks.searchsorted(2.0 * self.reach * self._total)) + 1
        if enough < len(ranks):
            self._floor = float(self._values[enough - 1])
            self._values, self._weights, ranks = self._values[:enough], self._weights[:enough], ranks[:enough]
            self._held = float(ranks[-1])
        if len(ranks) > MOST_KEPT // 2:
            steps = np.floor(np.log(ranks[FINE:] / ranks[FINE - 1]) / COARSENING)
            first = np.concatenate((_FINE_AND_NEXT, FINE + 1 + (steps[1:] != steps[:-1]).nonzero()[0]))
            self._weights = np.add.reduceat(self._weights, first)
            self._values = self._values[first]

    def above(self, count: float) -> float:
        """The smallest value with at most ``count`` remembered rows above it, as far as it is known."""
        if not len(self._values):
            return -math.inf
        at = int(self._ranks.searchsorted(count * self._scale, "right"))
        return float(self._values[min(at, len(self._values) - 1)])

    def highest(self) -> float:
        """The largest value that still counts and is no broken clock."""
        if not len(self._values):
            return -math.inf
        ranks = self._ranks
        first = min(int(ranks.searchsorted(FORGOTTEN * self._scale, "right")), len(ranks) - 1)
        # so many rows, not entries: an entry may stand for many
        top = self._values[first : int(ranks.searchsorted(BROKEN_CLOCKS * self._scale)) + 1]
        gaps = np.flatnonzero((top[:-1] > ABSURD * top[1:]) & (top[1:] > 0))
        return float(top[gaps[-1] + 1] if len(gaps) else top[0])

    def snapshot(self) -> dict[str, Any]:
        """Everything it remembers, as JSON."""
        return {
            "values": self._values.tolist(),
            "weights": self._weights.tolist(),
            "numbers": [self._held, self._total, self._scale],
            "floor": self._floor if math.isfinite(self._floor) else None,
        }

    def resume(self, snapshot: dict[str, Any]) -> None:
        """Go on from a snapshot."""
        self._values = np.asarray(snapshot["values"], dtype=np.float64)
        self._weights = np.asarray(snapshot["weights"], dtype=np.float64)
        self._ranks = self._weights.cumsum()
        self._held, self._total, self._scale = snapshot["numbers"]
        self._floor = -math.inf if snapshot["floor"] is None else float(snapshot["floor"])
