"""The largest latenesses of the recent past, with how much each still counts."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from slackwater.control.disorder.protocol import Floats, Ints

FINE = 16
"""So many of the largest are kept one by one."""
COARSENING = 1.06
"""Below them, neighbours are merged while their ranks differ by less than this factor."""
MOST_KEPT = 160
RESCALE_AT = 1e9


class Tail:
    """The upper tail of a stream of numbers under exponential forgetting: rank in, value out.

    Holds at most 160 entries whatever the stream; merged entries take the larger value, so an answer errs to
    the safe side, by at most 6 % in rank. Only the share ``reach`` of the distribution can be asked for.
    """

    def __init__(self, horizon_rows: float, reach: float) -> None:
        self.horizon_rows = horizon_rows
        self.reach = reach
        self._values: Floats = np.zeros(0)
        self._weights: Floats = np.zeros(0)
        self._total = 0.0
        self._scale = 1.0
        self._floor = -math.inf

    @property
    def rows(self) -> float:
        """How many rows it still remembers."""
        return self._total / self._scale

    def add(self, values: Floats, weights: Ints | None, rows: int, highest: float) -> None:
        """Let a batch in; ``highest`` is the largest of its values."""
        # Forgetting is done by letting new rows weigh more: nothing old has to be touched.
        self._scale *= math.exp(rows / self.horizon_rows) if rows < 30 * self.horizon_rows else 1e13
        self._total += rows * self._scale
        if highest > self._floor:
            keep = values > self._floor
            fresh = values[keep]
            heavy = np.full(len(fresh), self._scale) if weights is None else weights[keep] * self._scale
            self._values = np.concatenate((self._values, fresh))
            self._weights = np.concatenate((self._weights, heavy))
            order = np.argsort(-self._values, kind="stable")
            self._values, self._weights = self._values[order], self._weights[order]
            if len(self._values) > MOST_KEPT:
                self._thin()
        if self._scale > RESCALE_AT:
            self._weights = self._weights / self._scale
            self._total /= self._scale
            self._scale = 1.0

    def _thin(self) -> None:
        ranks = np.cumsum(self._weights)
        reached = int(np.searchsorted(ranks, self.reach * self._total)) + 1
        if reached < len(ranks):
            self._floor = float(self._values[reached - 1])
            self._values, self._weights, ranks = self._values[:reached], self._weights[:reached], ranks[:reached]
        else:
            self._floor = -math.inf
        if len(ranks) <= MOST_KEPT // 2:
            return
        steps = np.floor(np.log(ranks[FINE:] / ranks[FINE - 1]) / math.log(COARSENING))
        first = np.concatenate((np.arange(FINE), FINE + np.flatnonzero(np.diff(steps, prepend=-1.0))))
        self._weights = np.add.reduceat(self._weights, first)
        self._values = self._values[first]

    def above(self, count: float) -> float:
        """The smallest known value with at most ``count`` remembered rows above it (the maximum below 1)."""
        if not len(self._values):
            return -math.inf
        ranks = np.cumsum(self._weights)
        return float(self._values[min(int(np.searchsorted(ranks, count * self._scale, "right")), len(ranks) - 1)])

    def snapshot(self) -> dict[str, Any]:
        """Everything it remembers, as JSON."""
        return {
            "values": self._values.tolist(),
            "weights": (self._weights / self._scale).tolist(),
            "rows": self.rows,
            "floor": self._floor if math.isfinite(self._floor) else None,
        }

    def resume(self, snapshot: dict[str, Any]) -> None:
        """Go on from a snapshot."""
        self._values = np.asarray(snapshot["values"], dtype=np.float64)
        self._weights = np.asarray(snapshot["weights"], dtype=np.float64)
        self._total, self._scale = float(snapshot["rows"]), 1.0
        self._floor = -math.inf if snapshot["floor"] is None else float(snapshot["floor"])
