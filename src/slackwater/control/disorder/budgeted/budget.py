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
WAIT_MEMORY = 0.98
"""What came within one wait is forgotten by so much with every wait."""
FIRST_SHARE = 0.25
"""Until clusters are known, the share of the rows of one wait that is taken to be lost at a time."""


class Budget:
    """Keeps ``late ≤ D · rows`` in sight at every moment, and says at which rate to lose rows from now on.

    The balance is D · rows − late. Rows are not lost one by one but in clusters, so chance moves the balance by
    about √(D · rows · cluster): that much is held in reserve, and of what lies above it only so much is spent as
    the balance can take in whole clusters. How large a cluster is, is learned from what the quantile alone would
    have lost, whether it was lost or not. The next one may be larger: rows that come in lumps are lost in lumps, so
    it is taken to be the same share of the rows that come within one wait.
    """

    def __init__(self, drop_ratio: float) -> None:
        self.drop_ratio = drop_ratio
        self.rows = 0
        self.late = 0
        self._lost = 0.0
        self._sizes = 0.0
        self._shares = 0.0
        self._came = 0.0
        self._squares = 0.0
        self._open_lost = 0.0
        self._open_rows = 0.0
        self._since = -math.inf

    def count(self, rows: int, late: int) -> None:
        """Enter a judged batch."""
        self.rows += rows
        self.late += late

    def see_cluster(self, rows_lost: float, rows: int, now: float, wait: float) -> None:
        """Enter what the quantile alone would have lost until ``now``: losses within one wait are one cluster."""
        self._open_lost += rows_lost
        self._open_rows += rows
        if now - self._since < wait:
            return
        if self._open_lost > 0 and math.isfinite(self._since):
            if not self._lost:  # what was assumed counts as much as the first that is seen
                self._sizes, self._shares = self._open_lost * self.cluster(), self._open_lost * FIRST_SHARE
                self._lost = self._open_lost
            self._lost = CLUSTER_MEMORY * self._lost + self._open_lost
            self._sizes = CLUSTER_MEMORY * self._sizes + self._open_lost**2
            self._shares = CLUSTER_MEMORY * self._shares + self._open_lost**2 / self._open_rows
        self._came = WAIT_MEMORY * self._came + self._open_rows
        self._squares = WAIT_MEMORY * self._squares + self._open_rows**2
        self._open_lost, self._open_rows, self._since = 0.0, 0.0, now

    def cluster(self) -> float:
        """How many rows are lost together where a row is lost, on average; at least one.

        It is what a row finds around it, Σ c² / Σ c, which is what the variance of the balance needs.
        """
        return max(1.0, self._sizes / self._lost if self._lost else FIRST_SHARE * self._around())

    def next_cluster(self) -> float:
        """How many the next cluster may take: the usual share of the rows that come together."""
        return max(1.0, (self._shares / self._lost if self._lost else FIRST_SHARE) * self._around())

    def _around(self) -> float:
        """How many rows came within the same wait as a row, on average over the rows."""
        came = self._came + self._open_rows
        return (self._squares + self._open_rows**2) / came if came else 1.0

    @property
    def balance(self) -> float:
        """Rows that may be lost right now without breaking the promise."""
        return self.drop_ratio * self.rows - self.late

    def rate(self) -> float:
        """The share of rows to lose from now on; zero or below when none can be afforded."""
        if not self.rows:
            return -1.0
        reserve = math.sqrt(self.drop_ratio * self.rows * self.cluster())
        rate = self.drop_ratio + EAGERNESS * (self.balance - reserve) / self.rows
        affordable = min(max(self.balance / (CLUSTERS_TO_AFFORD * self.next_cluster()), 0.0), 1.0)
        return min(rate, MOST_SPENT * self.drop_ratio) * affordable

    def snapshot(self) -> dict[str, Any]:
        """The counts and what is known of clusters."""
        return {
            "rows": self.rows,
            "late": self.late,
            "clusters": [self._lost, self._sizes, self._shares, self._came, self._squares],
            "open": [self._open_lost, self._open_rows],
            "since": self._since if math.isfinite(self._since) else None,
        }

    def resume(self, snapshot: dict[str, Any]) -> None:
        """Go on from a snapshot."""
        self.rows, self.late = int(snapshot["rows"]), int(snapshot["late"])
        self._lost, self._sizes, self._shares, self._came, self._squares = snapshot["clusters"]
        self._open_lost, self._open_rows = snapshot["open"]
        self._since = -math.inf if snapshot["since"] is None else float(snapshot["since"])
