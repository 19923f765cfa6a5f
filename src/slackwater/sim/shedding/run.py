"""Runs a law on the simulated queue and computes the figures of merit of Tu 2006."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from slackwater.control.shedding import SheddingController, make_law
from slackwater.control.shedding.controller import ADMIT_ALL
from slackwater.control.shedding.monitors import CostMonitor, HeadroomMonitor
from slackwater.promises import Timeliness
from slackwater.sim.shedding.plant import Plant

Floats = NDArray[np.float64]

SIGNALS = ("arrived", "admitted", "finished", "backlog", "shed_ratio", "cost_s", "headroom", "expected_delay_s")
"""The signals that a run records, one value per control period."""


@dataclass(frozen=True, slots=True, eq=False)
class Setup:
    """The conditions of a run: the input, the plant, the target and the control period.

    - ``cost_s``: the cost of a row, one value per second.
    - ``targets``: pairs (from second, target delay).
    - ``headroom``: the real headroom of the plant.
    - ``assumed_headroom``: the headroom that the controller uses; None lets it measure the headroom.
    - ``actuator``, ``cost_spread``: see ``Plant``.
    - ``cost_smoothing``: the weight of the newest period in the measured cost.
    - ``decision_lag``: the number of periods by which a decision takes effect late; 0 in the paper.
    """

    arrivals_s: Floats
    cost_s: Floats
    seconds: float
    targets: Sequence[tuple[float, float]] = ((0.0, 2.0),)
    period_s: float = 1.0
    headroom: float = 0.97
    assumed_headroom: float | None = None
    actuator: str = "queue"
    cost_spread: float = 0.0
    cost_smoothing: float = 1.0
    decision_lag: int = 0
    seed: int = 0


@dataclass(frozen=True, slots=True, eq=False)
class Outcome:
    """The delay of every row (NaN if it was shed), and the signals per period."""

    law: str
    arrivals_s: Floats
    delays_s: Floats
    target_of_row_s: Floats
    period_s: float
    signals: Mapping[str, Floats] = field(default_factory=dict)

    @property
    def rows(self) -> int:
        """The number of rows that arrived."""
        return len(self.arrivals_s)

    @property
    def shed(self) -> int:
        """The number of rows that were shed."""
        return int(np.isnan(self.delays_s).sum())

    @property
    def loss_ratio(self) -> float:
        """The share of rows that were shed."""
        return self.shed / self.rows if self.rows else 0.0

    @property
    def accumulated_violation_s(self) -> float:
        """Σ (y − y_d) over the rows whose delay y is above the target y_d."""
        return float(np.nansum(self._excess()))

    @property
    def delayed_rows(self) -> int:
        """The number of rows whose delay is above the target."""
        return int((self._excess() > 0).sum())

    @property
    def max_overshoot_s(self) -> float:
        """The largest excess of a delay over its target."""
        excess = self._excess()
        return float(np.nanmax(excess)) if np.isfinite(excess).any() else 0.0

    def _excess(self) -> Floats:
        return np.maximum(self.delays_s - self.target_of_row_s, 0.0)

    def mean_delay_s(self) -> Floats:
        """y(k): the mean delay of the rows that arrived in each period; NaN if none of them was processed."""
        periods = len(self.signals["backlog"])
        index = np.minimum((self.arrivals_s / self.period_s).astype(np.int64), periods - 1)
        done = np.isfinite(self.delays_s)
        count = np.bincount(index[done], minlength=periods)
        total = np.bincount(index[done], weights=self.delays_s[done], minlength=periods)
        return np.asarray(np.where(count > 0, total / np.maximum(count, 1), np.nan), dtype=np.float64)

    def as_json(self) -> dict[str, Any]:
        """The figures of merit, as a JSON object."""
        return {
            "law": self.law,
            "accumulated_violation_s": self.accumulated_violation_s,
            "delayed_rows": self.delayed_rows,
            "max_overshoot_s": self.max_overshoot_s,
            "loss_ratio": self.loss_ratio,
            "rows": self.rows,
        }


def run(law: str, setup: Setup, **options: Any) -> Outcome:
    """Run a law on the plant. The same setup gives every law the same rows, costs and random numbers.

    ``options`` are options of the law.
    """
    plant = Plant(
        setup.arrivals_s,
        setup.cost_s,
        headroom=setup.headroom,
        actuator=setup.actuator,
        cost_spread=setup.cost_spread,
        seed=setup.seed,
    )
    assumed = setup.assumed_headroom
    controller = SheddingController(
        Timeliness(setup.targets[0][1]),
        make_law(law, **options),
        cost=CostMonitor(setup.cost_smoothing),
        headroom=HeadroomMonitor() if assumed is None else HeadroomMonitor(assumed, fixed=True),
    )
    signals = _run_periods(plant, controller, setup)
    plant.drain()
    target_of_second_s = np.array([_target_at(setup.targets, second) for second in range(int(setup.seconds) + 2)])
    return Outcome(
        law=law,
        arrivals_s=setup.arrivals_s,
        delays_s=plant.finished_s - setup.arrivals_s,
        target_of_row_s=target_of_second_s[setup.arrivals_s.astype(np.int64)],
        period_s=setup.period_s,
        signals=signals,
    )


def _run_periods(plant: Plant, controller: SheddingController, setup: Setup) -> dict[str, Floats]:
    """Run all control periods; returns the signals, one value per period."""
    pending = deque([ADMIT_ALL] * (setup.decision_lag + 1))
    periods = round(setup.seconds / setup.period_s)
    signals = {name: np.zeros(periods) for name in SIGNALS}
    for period in range(periods):
        decision = pending.popleft()
        seen = plant.run_period(period * setup.period_s, (period + 1) * setup.period_s, decision)
        target_s = _target_at(setup.targets, (period + 1) * setup.period_s)
        if target_s != controller.promise.max_delay_s:
            controller.retarget(Timeliness(target_s))
        next_decision = controller.step(seen)
        pending.append(next_decision)
        values = {
            "arrived": seen.arrived,
            "admitted": seen.admitted,
            "finished": seen.finished,
            "backlog": seen.backlog,
            "shed_ratio": decision.shed_ratio,
            "cost_s": controller.cost.cost_s or np.nan,
            "headroom": controller.headroom.headroom,
            "expected_delay_s": next_decision.expected_delay_s,
        }
        for name, value in values.items():
            signals[name][period] = value
    return signals


def _target_at(targets: Sequence[tuple[float, float]], second: float) -> float:
    return next(target for since, target in reversed(targets) if since <= second)
