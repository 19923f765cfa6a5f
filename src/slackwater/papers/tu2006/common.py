"""The experimental setup of the paper's §5. This module needs matplotlib."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from numpy.typing import NDArray

from slackwater.sim.shedding import Outcome, Setup, eventful_cost, pareto_rates, rows_from_rates, web_rates

Floats = NDArray[np.float64]

SECONDS = 400
HEADROOM = 0.97
CAPACITY_PER_S = 190.0
COST_S = HEADROOM / CAPACITY_PER_S
MEAN_PER_S = 250.0
COST_SPREAD = 0.5
SEEDS = range(5)
LAWS = ("ctrl", "baseline", "aurora")
INPUTS = ("web", "pareto")


@dataclass(frozen=True, slots=True)
class Merit:
    """The paper's four figures of merit over several runs: sums, and the largest overshoot."""

    violation_s: float
    delayed: int
    overshoot_s: float
    loss_ratio: float

    def as_tuple(self) -> tuple[float, float, float, float]:
        """Violation, delayed rows, overshoot, loss."""
        return self.violation_s, float(self.delayed), self.overshoot_s, self.loss_ratio


METRICS = ("accumulated violations", "delayed tuples", "maximal overshoot", "data loss")


def setup_for(kind: str, seed: int, *, beta: float = 1.0, **changes: Any) -> Setup:
    """The paper's experiment: 400 s of web-like or Pareto input, with the cost events of Fig. 14."""
    rng = np.random.default_rng([2006, seed])
    rates = web_rates(rng, SECONDS, MEAN_PER_S) if kind == "web" else pareto_rates(rng, SECONDS, MEAN_PER_S, beta)
    settings: dict[str, Any] = {
        "arrivals_s": rows_from_rates(rates, rng),
        "cost_s": eventful_cost(rng, SECONDS, COST_S),
        "seconds": SECONDS,
        "headroom": HEADROOM,
        "assumed_headroom": HEADROOM,
        "cost_spread": COST_SPREAD,
        "seed": seed,
    }
    return Setup(**(settings | changes))


def merit(outcomes: Iterable[Outcome]) -> Merit:
    """The figures of merit over several runs."""
    runs = list(outcomes)
    return Merit(
        violation_s=sum(run.accumulated_violation_s for run in runs),
        delayed=sum(run.delayed_rows for run in runs),
        overshoot_s=max(run.max_overshoot_s for run in runs),
        loss_ratio=sum(run.shed for run in runs) / sum(run.rows for run in runs),
    )


def ratios(measured: Merit, reference: Merit) -> tuple[float, ...]:
    """Each figure of merit / the reference's."""
    return tuple(
        ours / theirs if theirs > 0 else float("inf") if ours > 0 else 1.0
        for ours, theirs in zip(measured.as_tuple(), reference.as_tuple(), strict=True)
    )


def times(value: float) -> str:
    """A ratio as text.

    >>> times(23.04), times(0.9861)
    ('23×', '0.986×')
    """
    return f"{value:.3g}×"


def plot_lines(
    path: Path,
    title: str,
    lines: Sequence[tuple[str, Floats, Floats]],
    *,
    xlabel: str = "time (s)",
    ylabel: str = "delay (s)",
    target_s: float | None = None,
    log: str = "",
) -> None:
    """Plot lines (label, x, y); ``log`` names the logarithmic axes ("x", "y", "xy")."""
    figure, axes = plt.subplots(figsize=(8, 4))
    for label, x, y in lines:
        axes.plot(x, y, label=label, linewidth=1)
    if target_s is not None:
        axes.axhline(target_s, color="black", linewidth=0.8, linestyle="--", label="target")
    if "x" in log:
        axes.set_xscale("log")
    if "y" in log:
        axes.set_yscale("log")
    axes.set_xlabel(xlabel)
    axes.set_ylabel(ylabel)
    axes.set_title(title)
    axes.legend()
    figure.tight_layout()
    figure.savefig(path, dpi=120)
    plt.close(figure)
