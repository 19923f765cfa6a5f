"""CTRL for micro-batches: the paper's controller in logarithms, where a micro-batch engine is linear."""

from __future__ import annotations

import math
from typing import Any, ClassVar

from slackwater.control.shedding.design import PAPER_A, PAPER_POLES, design
from slackwater.control.shedding.protocol import Status
from slackwater.control.shedding.registry import register

_MOST = 5.0


@register
class CtrlBatch:
    """Brings the duration of a micro-batch to its target in a few batches, however far off it is.

    If batches run back to back and v = (H/c)·e^w rows a second are kept, then ln D(k+1) = ln D(k) + w: an integrator of
    gain one, whatever c, H and the duration are, so poles placed on it stay where they are. The paper's law, fed
    with durations, has a gain that depends on the last period; after a very long batch it overreacts. Where the target
    is shorter than the trigger interval there is nothing to integrate, and w is the logarithm of what is missing.
    On a queue (the paper's plant) use ``ctrl``.
    """

    name: ClassVar[str] = "ctrl-batch"

    def __init__(self, poles: tuple[complex, complex] = PAPER_POLES, a: float = PAPER_A) -> None:
        self.gains = design(poles, a)
        self._error: float | None = None
        self._w = 0.0
        self._v_per_s: float | None = None
        self._period_s = 0.0

    def admit_per_s(self, status: Status) -> float:
        """v = (H/c)·e^w."""
        error = math.log(max(status.target_s, 1e-6) / status.period_s)
        if status.delay_s < status.period_s and status.target_s < status.period_s:
            w = error
        else:
            before = error if self._error is None else self._error
            # Tu 2006, Eq. (7), with the logarithm of the period in the place of the delay
            w = self.gains.b0 * error + self.gains.b1 * before - self.gains.a * self._realised(status)
        w = min(max(w, -_MOST), _MOST)
        v_per_s = status.capacity_per_s * math.exp(w)
        if status.delay_s <= status.target_s and status.arrived_per_s <= status.capacity_per_s:
            # differs: below capacity and below the target nothing is shed, as the promise says
            v_per_s = max(v_per_s, status.capacity_per_s)
        self._error, self._w, self._v_per_s, self._period_s = error, w, v_per_s, status.period_s
        return v_per_s

    def _realised(self, status: Status) -> float:
        """w(k−1); where nothing needed shedding, no more than the period really grew (anti-windup)."""
        if self._v_per_s is None or self._v_per_s <= status.arrived_per_s:
            return self._w
        return min(self._w, math.log(status.period_s / self._period_s))

    def snapshot(self) -> dict[str, Any]:
        """The last error, w, v and period."""
        return {"error": self._error, "w": self._w, "v_per_s": self._v_per_s, "period_s": self._period_s}

    def resume(self, snapshot: dict[str, Any]) -> None:
        """Go on as if never stopped."""
        self._error, self._w = snapshot["error"], snapshot["w"]
        self._v_per_s, self._period_s = snapshot["v_per_s"], snapshot["period_s"]
