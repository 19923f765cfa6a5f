"""Plots of the shedding benchmark."""

from __future__ import annotations

from pathlib import Path

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
from numpy.typing import NDArray

from shedding_query import CostRise, FinishedRun, Plant


def plot_runs(
    path: Path,
    runs: dict[str, FinishedRun],
    rates: NDArray[np.float64],
    plant: Plant,
    rise: CostRise,
    overload: float,
    target_s: float,
) -> None:
    """Delay, share of kept rows and load over time: one column per law, all with the same input."""
    figure, axes = plt.subplots(3, len(runs), figsize=(3.6 * len(runs), 7), sharex=True, squeeze=False)
    seconds = np.arange(len(rates))
    capacity = plant.capacity_per_s(target_s) / rise.factors(seconds.astype(np.float64))
    for column, (law, run) in enumerate(runs.items()):
        above, middle, below = axes[:, column]
        starts = np.array([r.batch.started_s - run.start_s for r in run.history])
        durations = np.array([r.batch.duration_s for r in run.history])
        read = np.cumsum([r.batch.rows for r in run.history])
        oldest = np.concatenate([[0.0], run.arrivals_s[np.minimum(read[:-1], len(run.arrivals_s) - 1)]])
        newest = run.arrivals_s[np.minimum(read, len(run.arrivals_s)) - 1]
        commits = starts + durations
        # a micro-batch is a slanted line: its oldest row waited longest
        for commit, first, last in zip(commits, oldest, newest, strict=True):
            above.plot([first, last], [commit - first, commit - last], color="tab:blue", linewidth=1)
        above.axhline(target_s, color="black", linestyle="--", linewidth=0.8)
        above.set_title(f"{law} at {overload:g}×")
        middle.step(starts, [r.batch.kept / r.batch.rows for r in run.history], where="post", color="tab:red")
        middle.set_ylim(-0.02, 1.02)
        below.step(seconds, rates, where="post", color="grey", label="load")
        below.step(seconds, capacity, where="post", color="black", linestyle="--", linewidth=0.8, label="capacity")
        below.set_xlabel("arrival (s)")
        below.set_xlim(0, len(rates))
    top = max(2.5 * target_s, *(ax.get_ylim()[1] for ax, law in zip(axes[0], runs, strict=True) if law != "none"), 0.0)
    for ax in axes[0]:
        ax.set_ylim(0, top)
    for row, label in enumerate(("delay of rows (s)", "share kept", "rows/s")):
        axes[row, 0].set_ylabel(label)
    axes[2, 0].legend(fontsize=8)
    figure.tight_layout()
    figure.savefig(path, dpi=110)
    plt.close(figure)


def plot_response(path: Path, runs: dict[float, FinishedRun], plant: Plant, step_at_s: int) -> None:
    """Left: batch durations after a step. Right: each duration by the time in which the rows of its batch arrived."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4.2))
    for colour, (load, run) in zip(("tab:blue", "tab:green", "tab:orange", "tab:red"), runs.items(), strict=False):
        batches = [r.batch for r in run.history]
        starts = np.array([b.started_s - run.start_s for b in batches])
        durations = np.array([b.duration_s for b in batches])
        modelled = plant.fixed_s + plant.cost_s * np.array([b.rows for b in batches])
        left.plot(starts, durations, ".-", color=colour, label=f"load {load:.2f}/c")
        left.plot(starts, modelled, "x", color=colour)
        widths = np.diff(starts)
        loaded = starts[:-1] >= step_at_s
        right.plot(widths[loaded], durations[1:][loaded], ".", color=colour)
        line = np.array([0.5, max(6.0, float(widths[loaded].max(initial=0.0)))])
        right.plot(line, plant.fixed_s + load * line, color=colour, linewidth=0.8)
    right.plot([0, 6], [0, 6], "--", color="black", linewidth=0.8)
    left.axvline(step_at_s, color="black", linewidth=0.5)
    left.set_xlabel("batch start (s)")
    left.set_ylabel("duration of a batch (s); × d0 + c·rows")
    left.legend(fontsize=8)
    right.set_xlim(0, 6)
    right.set_ylim(0, 8)
    right.set_xlabel("time between batch starts W(k) (s)")
    right.set_ylabel("D(k+1) (s); lines d0 + c·λ·W(k)")
    figure.tight_layout()
    figure.savefig(path, dpi=110)
    plt.close(figure)
