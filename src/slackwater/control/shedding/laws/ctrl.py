"""CTRL: the law of Tu 2006, feedback with placed poles."""

from __future__ import annotations

from typing import Any, ClassVar

from slackwater.control.shedding.design import PAPER_A, PAPER_POLES, design
from slackwater.control.shedding.protocol import Status
from slackwater.control.shedding.registry import register


@register
class Ctrl:
    """Brings the delay to its target within a few periods, without oscillation.

    While the delay rises towards the target, a few rows are shed although the target is not reached. With a = −0.8 a
    constant error in the measured rates leaves a small constant offset from the target; ``ctrl-integrating`` has none.
    The law reacts one period late: the rows of the first period of a burst are admitted. Costs a few multiplications
    per period.
    """

    name: ClassVar[str] = "ctrl"

    def __init__(self, poles: tuple[complex, complex] = PAPER_POLES, a: float = PAPER_A) -> None:
        self.gains = design(poles, a)
        self._error_s: float | None = None
        self._u_per_s = 0.0
        self._v_per_s: float | None = None
        self._backlog = 0.0

    def admit_per_s(self, status: Status) -> float:
        """v = u + f_out, with u from the errors of this period and the last one."""
        error_s = status.target_s - status.delay_s
        previous_error_s = error_s if self._error_s is None else self._error_s
        u_before = self._realised_per_s(status)
        gains = self.gains
        # Tu 2006, Eq. (7)
        u_per_s = (
            status.capacity_per_s / status.period_s * (gains.b0 * error_s + gains.b1 * previous_error_s)
            - gains.a * u_before
        )
        # differs: f_out is the capacity, not the rate that was finished. Otherwise an idle query could admit no more
        # rows than it received before.
        v_per_s = u_per_s + status.capacity_per_s
        if error_s >= 0 and status.arrived_per_s <= status.capacity_per_s:
            # differs: no row is shed below capacity and below the target, as the promise says
            v_per_s = max(v_per_s, status.capacity_per_s)
        self._error_s, self._u_per_s, self._v_per_s, self._backlog = error_s, u_per_s, v_per_s, status.backlog
        return v_per_s

    def _realised_per_s(self, status: Status) -> float:
        """u(k−1), corrected towards the real growth of the backlog if v could not be realised (anti-windup)."""
        if self._v_per_s is None or 0.0 <= self._v_per_s <= status.arrived_per_s:
            return self._u_per_s
        grown_per_s = (status.backlog - self._backlog) / status.period_s
        # the correction is one-sided: a decision that took effect late must not look like a growing queue was wanted
        if self._v_per_s > 0.0:
            return min(self._u_per_s, grown_per_s)
        return min(max(self._u_per_s, grown_per_s), 0.0)

    def snapshot(self) -> dict[str, Any]:
        """The error, u, v and backlog of the last period, as JSON."""
        return {
            "error_s": self._error_s,
            "u_per_s": self._u_per_s,
            "v_per_s": self._v_per_s,
            "backlog": self._backlog,
        }

    def resume(self, snapshot: dict[str, Any]) -> None:
        """Restore the state from a snapshot."""
        self._error_s = snapshot["error_s"]
        self._u_per_s = snapshot["u_per_s"]
        self._v_per_s = snapshot["v_per_s"]
        self._backlog = snapshot["backlog"]
