"""A tail that follows a change within some hundred rows: where lateness lies and how far it spreads, learned apart."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from slackwater.control.disorder.budgeted.tail import Tail
from slackwater.control.disorder.protocol import Floats, Ints

LOCATED_ROWS = 100.0
"""Location and scale are forgotten over so many rows."""
OUTLIER = 10.0
"""A row so many scales above the location counts as if it lay there: it tells of the tail, not of the bulk."""
LEAST_SCALE = 0.01
"""Of the location: below it, rows that hardly differ would make scores of their rounding."""


class StandardisedTail:
    """The upper tail of (value − location) / scale: rank in, location + scale × score out.

    A quantile of one row in a thousand is known only after thousands of rows, and forgotten only after thousands
    more; location and scale of the bulk are known after a hundred. So these two are learned fast and the shape of
    the tail slowly. Nothing is assumed of the shape: a score is what a row had under the location and scale of the
    decision that judged it, so that their errors are in the scores too (split conformal prediction, normalised).

    It is wrong for as long as a change alters the shape itself; who uses it compares it with other tails by loss.
    """

    def __init__(self, reach: float) -> None:
        self._scores = Tail(reach)
        self._location = 0.0
        self._scale = 0.0
        self._seen = 0

    @property
    def rows(self) -> float:
        """How many rows it still remembers."""
        return self._scores.rows

    def add(self, values: Floats, weights: Ints | None, rows: int, highest: float, forget: float) -> None:
        """Let a batch in, after fading the shape by exp(−``forget``); ``highest`` is its largest value."""
        location, scale = self._location, self._spread()
        if self._seen:
            self._scores.add((values - location) / scale, weights, rows, (highest - location) / scale, forget)
            if highest > location + OUTLIER * scale and self._seen > LOCATED_ROWS:
                values = np.minimum(values, location + OUTLIER * scale)
        self._seen += rows
        step = max(1.0 - math.exp(-rows / LOCATED_ROWS), rows / self._seen)
        self._location += (_mean(values, weights, rows) - location) * step
        self._scale += (_mean(np.abs(values - self._location), weights, rows) - self._scale) * step

    def _spread(self) -> float:
        return max(self._scale, LEAST_SCALE * abs(self._location), 1e-9)

    def above(self, count: float) -> float:
        """The smallest value with at most ``count`` remembered rows above it, were they to come now."""
        return self._location + self._spread() * self._scores.above(count)

    def highest(self) -> float:
        """The largest value that still counts and is no broken clock, were it to come now."""
        return self._location + self._spread() * self._scores.highest()

    def snapshot(self) -> dict[str, Any]:
        """Everything it remembers, as JSON."""
        return {"scores": self._scores.snapshot(), "bulk": [self._location, self._scale, self._seen]}

    def resume(self, snapshot: dict[str, Any]) -> None:
        """Go on from a snapshot."""
        self._scores.resume(snapshot["scores"])
        self._location, self._scale, self._seen = snapshot["bulk"]


def _mean(values: Floats, weights: Ints | None, rows: int) -> float:
    return float(values.sum() if weights is None else values @ weights) / rows
