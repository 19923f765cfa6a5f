"""What the shedding benchmark shows: a column a law, and Spark's answer to a step."""

from __future__ import annotations

from pathlib import Path

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
from numpy.typing import NDArray

from shedding_query import Plant, Ran, Terrace


def plot_runs(
    path: Path,
    rans: dict[str, Ran],
    rates: NDArray[np.float64],
    plant: Plant,
    terrace: Terrace,
    overload: float,
    target_s: float,
) -> None:
    """Delay and shed ratio over time, a column a law, all under the same input."""
    figure, axes = plt.subplots(3, len(rans), figsize=(3.6 * len(rans), 7), sharex=True, squeeze=False)
    seconds = np.arange(len(rates))
    capacity = plant.capacity_per_s(target_s) / terrace.factors(seconds.astype(np.float64))
    for column, (law, ran) in enumerate(rans.items()):
        above, middle, below = axes[:, column]
        starts = np.array([r.batch.started_s - ran.start_s for r in ran.history])
        durations = np.array([r.batch.duration_s for r in ran.history])
        read = np.cumsum([r.batch.rows for r in ran.history])
        oldest = np.concatenate([[0.0], ran.arrivals_s[np.minimum(read[:-1], len(ran.arrivals_s) - 1)]])
        newest = ran.arrivals_s[np.minimum(read, len(ran.arrivals_s)) - 1]
        commits = starts + durations
        # a batch is a slanted stroke: its oldest row waited longest
        for commit, first, last in zip(commits, oldest, newest, strict=True):
            above.plot([first, last], [commit - first, commit - last], color="tab:blue", linewidth=1)
        above.axhline(target_s, color="black", linestyle="--", linewidth=0.8)
        above.set_title(f"{law} at {overload:g}×")
        middle.step(starts, [r.batch.kept / r.batch.rows for r in ran.history], where="post", color="tab:red")
        middle.set_ylim(-0.02, 1.02)
        below.step(seconds, rates, where="post", color="grey", label="load")
        below.step(seconds, capacity, where="post", color="black", linestyle="--", linewidth=0.8, label="capacity")
        below.set_xlabel("arrival (s)")
        below.set_xlim(0, len(rates))
    top = max(2.5 * target_s, *(ax.get_ylim()[1] for ax, law in zip(axes[0], rans, strict=True) if law != "none"), 0.0)
    for ax in axes[0]:
        ax.set_ylim(0, top)
    for row, label in enumerate(("delay of rows (s)", "share kept", "rows/s")):
        axes[row, 0].set_ylabel(label)
    axes[2, 0].legend(fontsize=8)
    figure.tight_layout()
    figure.savefig(path, dpi=110)
    plt.close(figure)


def plot_response(path: Path, runs: dict[float, Ran], plant: Plant, step_at_s: int) -> None:
    """Batch durations after a step, and each duration over the time for which its rows had come."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4.2))
    for colour, (load, ran) in zip(("tab:blue", "tab:green", "tab:orange", "tab:red"), runs.items(), strict=False):
        batches = [r.batch for r in ran.history]
        starts = np.array([b.started_s - ran.start_s for b in batches])
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
