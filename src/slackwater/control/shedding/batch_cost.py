"""The cost of a micro-batch, D = d0 + c·(rows kept), estimated while the query runs."""

from __future__ import annotations

import math
from typing import Any

_NOISE = 0.07
"""Standard deviation of the duration of a batch around the line, relative to the duration."""
_FIXED_DRIFT = 0.01
"""Standard deviation of the change of d0 per batch, relative to the duration."""
_COST_DRIFT = 0.1
"""Standard deviation of the change of c per batch, relative to c. c drifts far more than d0, so a batch that takes
longer with the same number of rows raises c."""
_SURE = 1.5
"""The low end of c is this many standard deviations below its estimate."""


class BatchCostMonitor:
    """Estimates c and d0 and their uncertainty with a Kalman filter, one step per batch.

    A regression over recent batches would mistake a rise of c for a rise of d0, because the control loop keeps the
    duration constant while it reduces the rows. While all batches have the same size, the slope is not observable: the
    line is then right for batches of that size, and its uncertainty grows with the distance from it.
    """

    def __init__(self) -> None:
        self.cost_s: float | None = None
        """c: seconds per row; None before the first batch."""
        self.fixed_s = 0.0
        """d0: seconds per batch, independent of its rows."""
        self._fixed_var = self._cost_var = self._covariance = 0.0

    def observe(self, kept: int, duration_s: float) -> None:
        """Learn from a batch; a batch without kept rows is ignored."""
        if kept <= 0 or duration_s <= 0:
            return
        if self.cost_s is None:
            self.fixed_s, self.cost_s = 0.3 * duration_s, 0.7 * duration_s / kept
            # the split is a guess: everything may be fixed cost, or everything cost of rows
            self._fixed_var, self._cost_var = duration_s**2, (duration_s / kept) ** 2
            return
        fixed_var = self._fixed_var + (_FIXED_DRIFT * duration_s) ** 2
        cost_var = self._cost_var + (_COST_DRIFT * self.cost_s) ** 2
        # covariances of d0 and c with the duration of this batch, and the variance of that duration
        with_fixed = fixed_var + kept * self._covariance
        with_cost = self._covariance + kept * cost_var
        variance = with_fixed + kept * with_cost + (_NOISE * duration_s) ** 2
        residual_s = duration_s - self.fixed_s - self.cost_s * kept
        fixed_s = self.fixed_s + with_fixed / variance * residual_s
        cost_s = self.cost_s + with_cost / variance * residual_s
        self._fixed_var = fixed_var - with_fixed**2 / variance
        self._cost_var = cost_var - with_cost**2 / variance
        self._covariance -= with_fixed * with_cost / variance
        # d0 cannot be negative, and c must be positive
        self.fixed_s = min(max(fixed_s, 0.0), 0.95 * duration_s)
        self.cost_s = max(cost_s, 0.05 * duration_s / kept)

    def rows_surely_longer_than(self, duration_s: float) -> float:
        """The number of rows that exceed ``duration_s`` even at the low end of c; infinite if c is unknown.

        >>> monitor = BatchCostMonitor()
        >>> monitor.observe(100, 0.5)
        >>> monitor.rows_surely_longer_than(2.0)
        inf
        """
        if self.cost_s is None:
            return math.inf
        least_cost_s = self.cost_s - _SURE * math.sqrt(max(self._cost_var, 0.0))
        room_s = max(duration_s - self.fixed_s, 0.0)
        return room_s / least_cost_s if least_cost_s > 0 else math.inf

    def snapshot(self) -> dict[str, Any]:
        """The estimates and their covariance, as JSON."""
        variances = [self._fixed_var, self._cost_var, self._covariance]
        return {"cost_s": self.cost_s, "fixed_s": self.fixed_s, "variances": variances}

    def resume(self, snapshot: dict[str, Any]) -> None:
        """Restore the state from a snapshot."""
        self.cost_s, self.fixed_s = snapshot["cost_s"], snapshot["fixed_s"]
        self._fixed_var, self._cost_var, self._covariance = snapshot["variances"]
