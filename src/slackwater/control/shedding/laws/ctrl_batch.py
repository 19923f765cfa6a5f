"""CTRL for micro-batches: keep the rows that make the next micro-batch as long as its target."""

from __future__ import annotations

import math
from typing import ClassVar

from slackwater.control.shedding.laws.stateless import Stateless
from slackwater.control.shedding.protocol import Status
from slackwater.control.shedding.registry import register
from slackwater.errors import InvalidOption


@register
class CtrlBatch(Stateless):
    """Brings the duration of a micro-batch to its target; ``pole`` is the share of the deviation left after a batch.

    The duration is d0 + c·(rows kept), whatever earlier batches did. Unlike a queue it has no memory, so no integration
    is needed and the pole can be 0. Deviations are ratios: duration/target is raised to the power of ``pole``. The
    cost monitor smooths the noise in c and d0. For a queue (the plant of Tu 2006) use ``ctrl``.
    """

    name: ClassVar[str] = "ctrl-batch"

    def __init__(self, pole: float = 0.0) -> None:
        if not 0.0 <= pole < 1.0:
            raise InvalidOption(
                "unstable-pole",
                f"pole={pole!r} is not in [0, 1)",
                "give 0 for the fastest response, or a number below 1",
            )
        self._pole = pole

    def admit_per_s(self, status: Status) -> float:
        """v = (D − d0)/(c·W), where D approaches the target and H = 1 − d0/W."""
        # a batch that ended before the next trigger does not determine how long rows arrive for the next batch
        back_to_back = status.delay_s >= status.period_s
        excess = status.delay_s / max(status.target_s, 1e-6) if back_to_back else 1.0
        duration_s = status.target_s * math.pow(excess, self._pole)
        fixed_s = (1.0 - status.headroom) * status.period_s
        v_per_s = (duration_s - fixed_s) / status.cost_s / status.period_s
        if status.delay_s <= status.target_s and status.arrived_per_s <= status.capacity_per_s:
            # differs: no row is shed below capacity and below the target, as the promise says
            v_per_s = max(v_per_s, status.capacity_per_s)
        return v_per_s
