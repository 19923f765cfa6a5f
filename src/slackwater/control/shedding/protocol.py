"""The interface between the shedding controller and its laws. A law is called once per control period."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol


@dataclass(frozen=True, slots=True)
class Observation:
    """The counts of one control period; none of them is estimated.

    ``arrived`` rows were offered and ``admitted`` of them were not shed. ``finished`` rows left the query. ``backlog``
    rows are admitted but not finished at the end of the period. ``work_s`` is the processing time of the finished rows.
    """

    period_s: float
    arrived: int
    admitted: int
    finished: int
    backlog: int
    work_s: float


@dataclass(frozen=True, slots=True)
class Status:
    """The inputs of a law: the rates of the last period, the backlog q, the cost c, the headroom H, the target y_d.

    >>> Status(1.0, 2.0, 200.0, 190.0, backlog=400, cost_s=0.005, headroom=1.0).delay_s
    2.0
    """

    period_s: float
    target_s: float
    arrived_per_s: float
    finished_per_s: float
    backlog: float
    cost_s: float
    headroom: float

    @property
    def capacity_per_s(self) -> float:
        """H/c: the rows per second that the query can finish."""
        return self.headroom / self.cost_s

    @property
    def delay_s(self) -> float:
        """The expected delay of a row that arrives now. It cannot be measured before the row has finished."""
        return self.backlog * self.cost_s / self.headroom  # Tu 2006, Eq. (8)


class SheddingLaw(Protocol):
    """Decides how many rows per second to admit in the next period.

    A law returns whatever its formula says. Above the arrival rate, no row is shed. Below zero, all arriving rows are
    shed, and a shedder that can remove rows from the queue removes waiting rows as well.
    """

    name: ClassVar[str]

    def admit_per_s(self, status: Status) -> float:
        """v(k): the rows per second to admit in the next period."""

    def snapshot(self) -> dict[str, Any]:
        """The state of the law, as JSON."""

    def resume(self, snapshot: dict[str, Any]) -> None:
        """Restore the state from a snapshot of the same law."""


UNLIMITED = math.inf
"""The rate that admits every row."""
