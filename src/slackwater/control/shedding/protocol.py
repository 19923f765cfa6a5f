"""What every law of load shedding sees and answers, once a control period."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol


@dataclass(frozen=True, slots=True)
class Observation:
    """One control period as it was counted: nothing in it is estimated.

    ``arrived`` rows were offered, ``admitted`` of them let in, ``finished`` left the query, ``backlog`` are in and
    not finished at the end of the period. ``work_s`` is the processing time that the finished rows took.
    """

    period_s: float
    arrived: int
    admitted: int
    finished: int
    backlog: int
    work_s: float


@dataclass(frozen=True, slots=True)
class Status:
    """What a law decides by: rates of the last period, the backlog q, the cost c, the headroom H, the target y_d.

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
        """H/c: the rows a second that the query can finish."""
        return self.headroom / self.cost_s

    @property
    def delay_s(self) -> float:
        """The delay that a row arriving now will have, estimated since it cannot be measured yet."""
        return self.backlog * self.cost_s / self.headroom  # Tu 2006, Eq. (8)


class SheddingLaw(Protocol):
    """Decides how many rows a second to let in during the next period.

    A law answers whatever its formula says: below zero it asks for less than nothing (the queue shedder can
    oblige, the entry shedder sheds everything), above the arrival rate nothing is shed.
    """

    name: ClassVar[str]

    def admit_per_s(self, status: Status) -> float:
        """v(k): the rows a second to admit in the next period."""

    def snapshot(self) -> dict[str, Any]:
        """Everything it remembers, as JSON."""

    def resume(self, snapshot: dict[str, Any]) -> None:
        """Go on from a snapshot of the same law."""


UNLIMITED = math.inf
