"""BASELINE: fill the queue to its target in one period."""

from __future__ import annotations

from typing import ClassVar

from slackwater.control.shedding.laws.stateless import Stateless
from slackwater.control.shedding.protocol import Status
from slackwater.control.shedding.registry import register


@register
class Baseline(Stateless):
    """Admits what brings the backlog to the target within the next period: deadbeat feedback.

    As fast as feedback can be, and as nervous: every error in the cost or in the expected arrivals goes to the
    delay undamped.
    """

    name: ClassVar[str] = "baseline"

    def admit_per_s(self, status: Status) -> float:
        """v = (y_d·H/c − q)/T + H/c; the paper's u counts rows a period, so it is divided by T."""
        room = status.target_s * status.capacity_per_s - status.backlog  # Tu 2006, §5
        return room / status.period_s + status.capacity_per_s
