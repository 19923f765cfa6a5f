"""Tests whether increments are normal, as the model assumes: Shapiro–Wilk, a few streams at a time."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.stats import shapiro

from slackwater.control.deferral.estimation import MIN_ITEMS, StreamEstimator

NORMAL_LEVEL = 0.05
"""A lower p-value counts as not normal. One in twenty normal streams has one."""


class NormalityWatch:
    """The latest Shapiro–Wilk p-value of every stream (NaN while untested), as in Zhu 2004, §3.

    One test costs a fraction of a millisecond, so each step tests one stream in turn. With many streams a p-value can
    be old. It is only reported: the calibration loop does not need normal increments.
    """

    def __init__(self, streams: int) -> None:
        self.p_values = np.full(streams, np.nan)
        self._turn = 0

    def grow(self, streams: int) -> None:
        """Make room for more streams."""
        self.p_values = np.concatenate([self.p_values, np.full(max(streams - len(self.p_values), 0), np.nan)])

    def step(self, estimator: StreamEstimator, tests: int = 1) -> list[int]:
        """Test the next ``tests`` streams in turn, and return those that had enough rows."""
        tested = []
        for _ in range(min(tests, estimator.streams)):
            stream = self._turn % estimator.streams
            self._turn += 1
            if estimator.items[stream] >= MIN_ITEMS:
                sample = estimator.increments(stream)
                self.p_values[stream] = shapiro(sample).pvalue if np.ptp(sample) > 0.0 else 0.0
                tested.append(stream)
        return tested

    def normal(self, level: float = NORMAL_LEVEL) -> NDArray[np.bool_]:
        """Streams whose increments do not differ significantly from normal ones. False while untested."""
        return self.p_values >= level

    def snapshot(self) -> dict[str, NDArray[np.float64]]:
        """The whole state as arrays by name."""
        return {"p_values": self.p_values, "turn": np.array([float(self._turn)])}

    def resume(self, snapshot: dict[str, NDArray[np.float64]]) -> None:
        """Continue from a snapshot."""
        self.p_values, self._turn = np.array(snapshot["p_values"]), int(snapshot["turn"][0])
