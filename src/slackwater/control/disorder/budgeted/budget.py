"""The budget of late rows: every row earns D, every late row spends 1."""

from __future__ import annotations

import math
from typing import Any

MOST_SPENT = 6.0
"""The target rate is never more than this multiple of the promised ratio."""
LEAST_SPENT = 0.02
"""The target rate is never less than this multiple of the promised ratio, however large the deficit."""
CLUSTER_MEMORY = 0.85
"""The weight of past clusters is multiplied by this at every cluster."""
WAIT_MEMORY = 0.98
"""The weight of past row counts per wait is multiplied by this at every wait."""
FIRST_SHARE = 0.25
"""Before the first cluster, one cluster is assumed to be this share of the rows of one wait."""


class Budget:
    """Tracks the balance D · rows − late and derives the share of rows that may be late from now on.

    Rows are not late one by one but in clusters, so the balance fluctuates by about √(D · rows · cluster). That amount
    is the reserve. The rate is the promised ratio when the balance equals the reserve, and proportional to the balance
    around it: integral action on the late rows that were counted, with bounded authority.

    The cluster size is learned from the rows that the plain quantile would have made late, whether they were late or
    not. The next cluster may be larger than that: it is estimated as the same share of the rows within one wait.
    """

    def __init__(self, drop_ratio: float) -> None:
        self.drop_ratio = drop_ratio
        self.rows = 0
        self.late = 0
        self._lost = 0.0
        self._sizes = 0.0
        self._shares = 0.0
        self._arrived = 0.0
        self._squares = 0.0
        self._open_lost = 0.0
        self._open_rows = 0.0
        self._since = -math.inf

    def count(self, rows: int, late: int) -> None:
        """Count the rows and the late rows of a batch."""
        self.rows += rows
        self.late += late

    def see_cluster(self, rows_lost: float, rows: int, now: float, wait: float) -> None:
        """Count ``rows_lost`` of ``rows`` rows that the plain quantile would have made late until ``now``.

        Losses within one wait form one cluster.
        """
        self._open_lost += rows_lost
        self._open_rows += rows
        if now - self._since < wait:
            return
        if self._open_lost > 0 and math.isfinite(self._since):
            if not self._lost:  # the assumed cluster weighs as much as the first observed one
                self._sizes, self._shares = self._open_lost * self.cluster(), self._open_lost * FIRST_SHARE
                self._lost = self._open_lost
            self._lost = CLUSTER_MEMORY * self._lost + self._open_lost
            self._sizes = CLUSTER_MEMORY * self._sizes + self._open_lost**2
            self._shares = CLUSTER_MEMORY * self._shares + self._open_lost**2 / self._open_rows
        self._arrived = WAIT_MEMORY * self._arrived + self._open_rows
        self._squares = WAIT_MEMORY * self._squares + self._open_rows**2
        self._open_lost, self._open_rows, self._since = 0.0, 0.0, now

    def cluster(self) -> float:
        """The mean cluster size that a lost row belongs to, Σ c² / Σ c, at least 1.

        The variance of the balance is proportional to this mean over rows, not to the mean over clusters.
        """
        return max(1.0, self._sizes / self._lost if self._lost else FIRST_SHARE * self._rows_per_wait())

    def next_cluster(self) -> float:
        """The expected size of the next cluster: the usual share of the rows within one wait, at least 1."""
        return max(1.0, (self._shares / self._lost if self._lost else FIRST_SHARE) * self._rows_per_wait())

    def _rows_per_wait(self) -> float:
        """The mean number of rows within the same wait as a row, averaged over rows."""
        arrived = self._arrived + self._open_rows
        return (self._squares + self._open_rows**2) / arrived if arrived else 1.0

    @property
    def balance(self) -> float:
        """The number of rows that may be late now without breaking the promise."""
        return self.drop_ratio * self.rows - self.late

    def rate(self) -> float:
        """The share of rows that may be late from now on: D · balance / reserve, between D/50 and 6 D.

        If the balance does not cover the next cluster, the rate is reduced in proportion.
        """
        reserve = math.sqrt(max(self.drop_ratio * self.rows * self.cluster(), 1.0))
        affordable = min(max(self.balance / self.next_cluster(), 0.0), 1.0)
        return self.drop_ratio * max(min(self.balance / reserve, MOST_SPENT) * affordable, LEAST_SPENT)

    def snapshot(self) -> dict[str, Any]:
        """The counts and the cluster statistics, as JSON."""
        return {
            "rows": self.rows,
            "late": self.late,
            "clusters": [self._lost, self._sizes, self._shares, self._arrived, self._squares],
            "open": [self._open_lost, self._open_rows],
            "since": self._since if math.isfinite(self._since) else None,
        }

    def resume(self, snapshot: dict[str, Any]) -> None:
        """Restore the state from a snapshot."""
        self.rows, self.late = int(snapshot["rows"]), int(snapshot["late"])
        self._lost, self._sizes, self._shares, self._arrived, self._squares = snapshot["clusters"]
        self._open_lost, self._open_rows = snapshot["open"]
        self._since = -math.inf if snapshot["since"] is None else float(snapshot["since"])
