"""AURORA: shed the load above capacity, without feedback from the delay."""

from __future__ import annotations

from typing import ClassVar

from slackwater.control.shedding.laws.stateless import Stateless
from slackwater.control.shedding.protocol import Status
from slackwater.control.shedding.registry import register


@register
class Aurora(Stateless):
    """Admits the capacity of the last period (open loop).

    It does not use the target. A backlog from a burst or from a rise of the cost is never reduced, and a load slightly
    above capacity is shed although the queue is empty.
    """

    name: ClassVar[str] = "aurora"

    def admit_per_s(self, status: Status) -> float:
        """L_0 = H/c(k−1)."""
        return status.capacity_per_s  # Tu 2006, Fig. 1 and §5
