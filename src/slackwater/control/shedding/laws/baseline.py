"""BASELINE: bring the queue to its target length within one period."""

from __future__ import annotations

from typing import ClassVar

from slackwater.control.shedding.laws.stateless import Stateless
from slackwater.control.shedding.protocol import Status
from slackwater.control.shedding.registry import register


@register
class Baseline(Stateless):
    """Admits the rows that bring the backlog to its target within the next period (deadbeat feedback).

    It is the fastest feedback, and the most sensitive: every error in the cost or in the expected arrivals affects the
    delay without damping.
    """

    name: ClassVar[str] = "baseline"

    def admit_per_s(self, status: Status) -> float:
        """v = (y_d·H/c − q)/T + H/c. The paper's u is in rows per period, hence the division by T."""
        room = status.target_s * status.capacity_per_s - status.backlog  # Tu 2006, §5
        return room / status.period_s + status.capacity_per_s
