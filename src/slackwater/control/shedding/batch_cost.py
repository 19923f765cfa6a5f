"""What a micro-batch costs, identified while it runs: D = d0 + c·(rows kept)."""

from __future__ import annotations

import math
from typing import Any

# how far a batch may leave the line, and how fast the line may move, a batch; the cost of a row drifts, the fixed cost
# hardly does, so a batch that takes longer with the same rows is put down to the rows
_NOISE = 0.07
_FIXED_DRIFT = 0.01
_COST_DRIFT = 0.1
_SURE = 1.5


class BatchCostMonitor:
    """c and d0, followed by a Kalman filter: one batch in, a line and its uncertainty out.

    A straight fit through recent batches would take a rise of the cost for a fixed cost, because the loop holds
    the duration while the rows go down. While all batches are alike there is no slope to see; then the line is
    right for such batches and says that it is not sure beyond them.
    """

    def __init__(self) -> None:
        self.cost_s: float | None = None
        """c: seconds a row."""
        self.fixed_s = 0.0
        """d0: seconds a batch takes before its first row."""
        self._fixed_var = self._cost_var = self._covariance = 0.0

    def observe(self, kept: int, duration_s: float) -> None:
        """Learn from a batch that kept at least one row."""
        if kept <= 0 or duration_s <= 0:
            return
        if self.cost_s is None:
            self.fixed_s, self.cost_s = 0.3 * duration_s, 0.7 * duration_s / kept
            # it may as well be all fixed, or all rows
            self._fixed_var, self._cost_var = duration_s**2, (duration_s / kept) ** 2
            return
        fixed_var = self._fixed_var + (_FIXED_DRIFT * duration_s) ** 2
        cost_var = self._cost_var + (_COST_DRIFT * self.cost_s) ** 2
        # the covariances of d0 and of c with the duration of this batch, and its variance
        with_fixed = fixed_var + kept * self._covariance
        with_cost = self._covariance + kept * cost_var
        variance = with_fixed + kept * with_cost + (_NOISE * duration_s) ** 2
        surprise_s = duration_s - self.fixed_s - self.cost_s * kept
        fixed_s = self.fixed_s + with_fixed / variance * surprise_s
        cost_s = self.cost_s + with_cost / variance * surprise_s
        self._fixed_var = fixed_var - with_fixed**2 / variance
        self._cost_var = cost_var - with_cost**2 / variance
        self._covariance -= with_fixed * with_cost / variance
        # neither can be negative, and a row costs something
        self.fixed_s = min(max(fixed_s, 0.0), 0.95 * duration_s)
        self.cost_s = max(cost_s, 0.05 * duration_s / kept)

    def rows_surely_longer_than(self, duration_s: float) -> float:
        """How many rows take longer than that even if the cost is at the low end of what it may be; infinite if none.

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
        """The line and its uncertainty."""
        variances = [self._fixed_var, self._cost_var, self._covariance]
        return {"cost_s": self.cost_s, "fixed_s": self.fixed_s, "variances": variances}

    def resume(self, snapshot: dict[str, Any]) -> None:
        """Go on from there."""
        self.cost_s, self.fixed_s = snapshot["cost_s"], snapshot["fixed_s"]
        self._fixed_var, self._cost_var, self._covariance = snapshot["variances"]
