"""How many rows may still be lost: earned by every row, spent by every late one."""

from __future__ import annotations

import math
from typing import Any


class Budget:
    """Keeps ``late ≤ D · rows`` in sight at every moment, and says at which rate to lose from now on.

    The balance is D · rows − late. A steady stream leaves it to chance with a standard deviation that grows
    like its square root, so a reserve of that size is held back; what lies above the reserve is spent, and what
    is missing below it is earned back, over the rows seen so far divided by ``eagerness``.
    """

    def __init__(self, drop_ratio: float, eagerness: float = 2.0, caution: float = 1.0) -> None:
        self.drop_ratio = drop_ratio
        self.eagerness = eagerness
        self.caution = caution
        self.rows = 0
        self.late = 0

    def count(self, rows: int, late: int) -> None:
        """Enter a judged batch."""
        self.rows += rows
        self.late += late

    @property
    def balance(self) -> float:
        """Rows that may be lost right now without breaking the promise."""
        return self.drop_ratio * self.rows - self.late

    @property
    def rate(self) -> float:
        """The share of rows to lose from now on; below zero when even that is more than can be afforded."""
        if not self.rows:
            return -1.0
        reserve = self.caution * math.sqrt(self.drop_ratio * self.rows)
        return self.drop_ratio + self.eagerness * (self.balance - reserve) / self.rows

    def snapshot(self) -> dict[str, Any]:
        """The two counts."""
        return {"rows": self.rows, "late": self.late}

    def resume(self, snapshot: dict[str, Any]) -> None:
        """Go on from a snapshot."""
        self.rows, self.late = int(snapshot["rows"]), int(snapshot["late"])
