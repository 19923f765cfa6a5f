"""CTRL with an integrating controller, which has no steady offset from the target."""

from __future__ import annotations

from typing import ClassVar

from slackwater.control.shedding.design import INTEGRATING_A, PAPER_POLES
from slackwater.control.shedding.laws.ctrl import Ctrl
from slackwater.control.shedding.registry import register


@register
class CtrlIntegrating(Ctrl):
    """CTRL with a = −1: a constant error in the measured rates is integrated away.

    The same poles need larger gains (b0 = 0.6, b1 = −0.51), so it amplifies noise in the backlog more than ``ctrl``.
    """

    name: ClassVar[str] = "ctrl-integrating"

    def __init__(self, poles: tuple[complex, complex] = PAPER_POLES) -> None:
        super().__init__(poles, INTEGRATING_A)
