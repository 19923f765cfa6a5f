"""What a micro-batch costs, identified while it runs: D = d0 + c·(rows kept)."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

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
        self._line: Floats | None = None
        self._spread: Floats = np.zeros((2, 2))

    @property
    def cost_s(self) -> float | None:
        """c: seconds a row."""
        return None if self._line is None else float(self._line[1])

    @property
    def fixed_s(self) -> float:
        """d0: seconds a batch takes before its first row."""
        return 0.0 if self._line is None else float(self._line[0])

    def observe(self, kept: int, duration_s: float) -> None:
        """Learn from a batch that kept at least one row."""
        if kept <= 0 or duration_s <= 0:
            return
        if self._line is None:
            self._line = np.array([0.3 * duration_s, 0.7 * duration_s / kept])
            # it may as well be all fixed, or all rows
            self._spread = np.diag([duration_s**2, (duration_s / kept) ** 2])
            return
        drift = np.array([_FIXED_DRIFT * duration_s, _COST_DRIFT * self._line[1]])
        spread = self._spread + np.diag(drift**2)
        batch = np.array([1.0, kept])
        gain = spread @ batch / (batch @ spread @ batch + (_NOISE * duration_s) ** 2)
        line = self._line + gain * (duration_s - batch @ self._line)
        self._spread = spread - np.outer(gain, batch @ spread)
        # neither can be negative, and a row costs something
        fixed_s = min(max(float(line[0]), 0.0), 0.95 * duration_s)
        self._line = np.array([fixed_s, max(float(line[1]), 0.05 * duration_s / kept)])

    def rows_surely_longer_than(self, duration_s: float) -> float:
        """How many rows take longer than that even if the cost is at the low end of what it may be; infinite if none.

        >>> monitor = BatchCostMonitor()
        >>> monitor.observe(100, 0.5)
        >>> monitor.rows_surely_longer_than(2.0)
        inf
        """
        if self._line is None:
            return math.inf
        least_cost_s = float(self._line[1]) - _SURE * math.sqrt(float(self._spread[1, 1]))
        room_s = max(duration_s - self.fixed_s, 0.0)
        return room_s / least_cost_s if least_cost_s > 0 else math.inf

    def snapshot(self) -> dict[str, Any]:
        """The line and its uncertainty."""
        return {"line": None if self._line is None else self._line.tolist(), "spread": self._spread.tolist()}

    def resume(self, snapshot: dict[str, Any]) -> None:
        """Go on from there."""
        self._line = None if snapshot["line"] is None else np.array(snapshot["line"])
        self._spread = np.array(snapshot["spread"])
