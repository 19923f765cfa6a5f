"""CTRL for micro-batches: keep as many rows as make the next micro-batch last as long as it may."""

from __future__ import annotations

import math
from typing import ClassVar

from slackwater.control.shedding.laws.stateless import Stateless
from slackwater.control.shedding.protocol import Status
from slackwater.control.shedding.registry import register
from slackwater.errors import InvalidOption


@register
class CtrlBatch(Stateless):
    """Brings the duration of a micro-batch to its target: the excess of one batch is ``pole`` times that in the next.

    The duration of a batch is d0 + c·(its rows kept), whatever the batches before it did: unlike a queue it has no
    memory, so nothing needs to be integrated and the pole may be zero. Noise in c and d0 is damped by their monitor.
    On a queue (the paper's plant) use ``ctrl``.
    """

    name: ClassVar[str] = "ctrl-batch"

    def __init__(self, pole: float = 0.0) -> None:
        if not 0.0 <= pole < 1.0:
            raise InvalidOption("unstable-pole", f"pole={pole!r}", "give a number from 0 (at once) to below 1")
        self._pole = pole

    def admit_per_s(self, status: Status) -> float:
        """v = (D − d0)/(c·W), D on its way to the target; H = 1 − d0/W."""
        # a batch that was over before the next trigger says nothing about how long rows arrive for that one
        back_to_back = status.delay_s >= status.period_s
        excess = status.delay_s / max(status.target_s, 1e-6) if back_to_back else 1.0
        duration_s = status.target_s * math.pow(excess, self._pole)
        fixed_s = (1.0 - status.headroom) * status.period_s
        v_per_s = (duration_s - fixed_s) / status.cost_s / status.period_s
        if status.delay_s <= status.target_s and status.arrived_per_s <= status.capacity_per_s:
            # differs: below capacity and below the target nothing is shed, as the promise says
            v_per_s = max(v_per_s, status.capacity_per_s)
        return v_per_s
