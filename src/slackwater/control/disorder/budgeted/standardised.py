"""A tail whose location and scale adapt within about a hundred rows, separately from its shape."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from slackwater.control.disorder.budgeted.tail import Tail
from slackwater.control.disorder.protocol import Floats, Ints

LOCATED_ROWS = 100.0
"""Location and scale are averaged over about this many rows."""
OUTLIER = 10.0
"""For the location and scale, a row is clipped to this many scales above the location: it belongs to the tail."""
LEAST_SCALE = 0.01
"""The scale is at least this share of the location; a smaller one would amplify rounding errors."""


class StandardisedTail:
    """The upper tail of the scores (value − location) / scale. It converts a rank to location + scale × score.

    A quantile of one row in a thousand takes thousands of rows to learn and to forget. The location and scale of the
    bulk take only a hundred. So location and scale are learned fast, and the shape of the tail slowly. No shape is
    assumed. The score of a row uses the location and scale before that row, so the scores include their estimation
    errors (normalised split conformal prediction).

    It is wrong while the shape itself changes. The method therefore compares it with other tails by their loss.
    """

    def __init__(self, reach: float) -> None:
        self._scores = Tail(reach)
        self._location = 0.0
        self._scale = 0.0
        self._seen = 0

    @property
    def rows(self) -> float:
        """The number of rows it remembers, after forgetting."""
        return self._scores.rows

    def add(self, values: Floats, weights: Ints | None, rows: int, highest: float, forget: float) -> None:
        """Multiply the weight of old rows by exp(−``forget``), then add a batch; ``highest`` is its largest value."""
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
        """The smallest value with at most ``count`` remembered rows above it, under the present location and scale."""
        return self._location + self._spread() * self._scores.above(count)

    def highest(self) -> float:
        """The largest plausible value, under the present location and scale; see ``Tail.highest``."""
        return self._location + self._spread() * self._scores.highest()

    def snapshot(self) -> dict[str, Any]:
        """The state of the tail, as JSON."""
        return {"scores": self._scores.snapshot(), "bulk": [self._location, self._scale, self._seen]}

    def resume(self, snapshot: dict[str, Any]) -> None:
        """Restore the state from a snapshot."""
        self._scores.resume(snapshot["scores"])
        self._location, self._scale, self._seen = snapshot["bulk"]


def _mean(values: Floats, weights: Ints | None, rows: int) -> float:
    return float(values.sum() if weights is None else values @ weights) / rows
