"""The controller around a law: monitors measure its inputs, and its answer becomes a shed ratio."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from slackwater.control.shedding.monitors import CostMonitor, HeadroomMonitor
from slackwater.control.shedding.protocol import UNLIMITED, Observation, SheddingLaw, Status
from slackwater.promises import Timeliness


@dataclass(frozen=True, slots=True)
class Decision:
    """The decision for the next period.

    ``shed_ratio`` is the share of the arriving rows to shed. ``queue_shed_ratio`` is the share of the waiting rows to
    shed in addition, for a shedder that can remove rows from the queue. ``warning`` is set at most once per target.
    """

    shed_ratio: float
    admit_per_s: float
    queue_shed_ratio: float
    expected_delay_s: float
    warning: str | None = None


ADMIT_ALL = Decision(shed_ratio=0.0, admit_per_s=UNLIMITED, queue_shed_ratio=0.0, expected_delay_s=0.0)


class SheddingController:
    """Keeps one timeliness promise: takes an observation per period and returns a shed ratio in [0, 1].

    It predicts the arrivals of the next period from the last one, so it reacts one period late to the start and the
    end of a burst. No row is shed before the cost of a row is known. Costs a few microseconds per period.
    """

    def __init__(
        self,
        promise: Timeliness,
        law: SheddingLaw,
        *,
        cost: CostMonitor | None = None,
        headroom: HeadroomMonitor | None = None,
    ) -> None:
        self.promise = promise
        self.law = law
        self.cost = CostMonitor() if cost is None else cost
        self.headroom = HeadroomMonitor() if headroom is None else headroom
        self._warned = False

    def retarget(self, promise: Timeliness) -> None:
        """Change the target from the next period on."""
        self.promise = promise
        self._warned = False

    def step(self, seen: Observation) -> Decision:
        """Learn from the period that ended and decide for the next one."""
        self.cost.observe(seen)
        self.headroom.observe(seen)
        if self.cost.cost_s is None:
            return ADMIT_ALL
        status = Status(
            period_s=seen.period_s,
            target_s=self.promise.max_delay_s,
            arrived_per_s=seen.arrived / seen.period_s,
            finished_per_s=seen.finished / seen.period_s,
            backlog=seen.backlog,
            cost_s=self.cost.cost_s,
            headroom=self.headroom.headroom,
        )
        admit_per_s = self.law.admit_per_s(status)
        return Decision(
            shed_ratio=shed_ratio(admit_per_s, status.arrived_per_s),
            admit_per_s=admit_per_s,
            queue_shed_ratio=queue_shed_ratio(admit_per_s, status),
            expected_delay_s=status.delay_s,
            warning=self._warning(status),
        )

    def _warning(self, status: Status) -> str | None:
        row_s = status.cost_s / status.headroom
        if self._warned or row_s <= status.target_s:
            return None
        self._warned = True
        return (
            f"[unattainable-delay] one row takes {row_s:.3g} s, but the target is {status.target_s:.3g} s; "
            "raise the target: until then the delay is kept as low as possible"
        )

    def snapshot(self) -> dict[str, Any]:
        """The state of the law and the monitors, as JSON."""
        return {
            "law": self.law.name,
            "state": self.law.snapshot(),
            "cost": self.cost.snapshot(),
            "headroom": self.headroom.snapshot(),
        }

    def resume(self, snapshot: dict[str, Any]) -> None:
        """Restore a snapshot. From a snapshot of another law only the state of the monitors is taken."""
        if snapshot["law"] == self.law.name:
            self.law.resume(snapshot["state"])
        self.cost.resume(snapshot["cost"])
        self.headroom.resume(snapshot["headroom"])


def shed_ratio(admit_per_s: float, arriving_per_s: float) -> float:
    """α: the share of the arriving rows to shed at the entry.

    >>> shed_ratio(190.0, 380.0), shed_ratio(190.0, 100.0), shed_ratio(-5.0, 100.0), shed_ratio(10.0, 0.0)
    (0.5, 0.0, 1.0, 0.0)
    """
    if arriving_per_s <= max(admit_per_s, 0.0):
        return 0.0
    ratio = 1.0 - admit_per_s / arriving_per_s  # Tu 2006, Eq. (10)
    # a rounding error must not shed a load that is exactly at capacity
    return 0.0 if ratio < 1e-9 else min(ratio, 1.0)


def queue_shed_ratio(admit_per_s: float, status: Status) -> float:
    """The share of the waiting rows to shed because shedding all arriving rows is not enough."""
    # differs: L_s = L_i − L_a. The printed L_q + L_i − L_a counts the queue twice, since v already accounts for it.
    # Arriving rows are shed first, so that no row is shed at the end of its wait.
    excess = -admit_per_s * status.period_s  # Tu 2006, §4.5.2: L_s − L_i
    return min(excess / status.backlog, 1.0) if excess > 0 and status.backlog > 0 else 0.0
