"""How many rows may still be lost: earned by every row, spent by every late one."""

from __future__ import annotations

import math
from typing import Any

EAGERNESS = 2.0
"""What lies above the reserve is spent over the rows seen so far, divided by this."""
MOST_SPENT = 5.0
"""Never aim at more than so many times the promised ratio."""
CLUSTERS_TO_AFFORD = 2.0
"""Below so many typical clusters in the balance, spend in proportion."""
CLUSTER_MEMORY = 0.85


class Budget:
    """Keeps ``late ≤ D · rows`` in sight at every moment, and says at which rate to lose rows from now on.

    The balance is D · rows − late. Rows are not lost one by one but in clusters, so chance moves the balance by
    about √(D · rows · cluster): that much is held in reserve, and of what lies above it only so much is spent as
    the balance can take in whole clusters. How large a cluster is, is learned from what the quantile alone would
    have lost, whether it was lost or not.
    """

    def __init__(self, drop_ratio: float) -> None:
        self.drop_ratio = drop_ratio
        self.rows = 0
        self.late = 0
        self._lost = 0.0
        self._squares = 0.0
        self._open = 0.0
        self._since = -math.inf

    def count(self, rows: int, late: int) -> None:
        """Enter a judged batch."""
        self.rows += rows
        self.late += late

    def see_cluster(self, rows_lost: float, now: float, wait: float, prior: float) -> None:
        """Enter what the quantile alone would have lost until ``now``: losses within one wait are one cluster."""
        self._open += rows_lost
        if now - self._since < wait:
            return
        if self._open > 0 and math.isfinite(self._since):
            if not self._lost:  # what was assumed counts as much as the first that is seen
                self._lost, self._squares = self._open, self._open * prior
            self._lost = CLUSTER_MEMORY * self._lost + self._open
            self._squares = CLUSTER_MEMORY * self._squares + self._open**2
        self._open, self._since = 0.0, now

    def cluster(self, prior: float) -> float:
        """How many rows are lost together where a row is lost, on average; at least one."""
        return max(1.0, self._squares / self._lost if self._lost else prior)

    @property
    def balance(self) -> float:
        """Rows that may be lost right now without breaking the promise."""
        return self.drop_ratio * self.rows - self.late

    def rate(self, prior: float) -> float:
        """The share of rows to lose from now on; zero or below when none can be afforded."""
        if not self.rows:
            return -1.0
        cluster = self.cluster(prior)
        reserve = math.sqrt(self.drop_ratio * self.rows * cluster)
        rate = self.drop_ratio + EAGERNESS * (self.balance - reserve) / self.rows
        affordable = min(max(self.balance / (CLUSTERS_TO_AFFORD * cluster), 0.0), 1.0)
        return min(rate, MOST_SPENT * self.drop_ratio) * affordable

    def snapshot(self) -> dict[str, Any]:
        """The counts and what is known of clusters."""
        return {
            "rows": self.rows,
            "late": self.late,
            "clusters": [self._lost, self._squares],
            "open": self._open,
            "since": self._since if math.isfinite(self._since) else None,
        }

    def resume(self, snapshot: dict[str, Any]) -> None:
        """Go on from a snapshot."""
        self.rows, self.late = int(snapshot["rows"]), int(snapshot["late"])
        self._lost, self._squares = snapshot["clusters"]
        self._open = float(snapshot["open"])
        self._since = -math.inf if snapshot["since"] is None else float(snapshot["since"])
