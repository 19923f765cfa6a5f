"""No shedding, as a baseline for comparisons."""

from __future__ import annotations

from typing import ClassVar

from slackwater.control.shedding.laws.stateless import Stateless
from slackwater.control.shedding.protocol import UNLIMITED, Status
from slackwater.control.shedding.registry import register


@register
class NoShedding(Stateless):
    """Admits every row. Under overload the delay grows without bound."""

    name: ClassVar[str] = "none"

    def admit_per_s(self, status: Status) -> float:
        """v is unlimited."""
        return UNLIMITED
