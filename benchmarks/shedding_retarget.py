"""Tu 2006, Fig. 18 on Spark: the target of an overloaded query changes while it runs, by default from 1 to 3 to 5 s.

    python benchmarks/shedding_retarget.py
    python benchmarks/shedding_retarget.py --law ctrl-batch --overload 4 --phase 60 --json
    python benchmarks/shedding_retarget.py --law aurora --keep delays.json --plot retarget.png

Every law gets the same constant load. A phase is the time under one target. The table has the mean delay of the rows
that arrived in the second half of each phase, and the time from the change until the delay of a micro-batch was first
within 15 % of the new target. Use an idle machine. With --keep the delays go into a file, and the plot has all laws of
that file, so that laws may run one by one.
"""

from __future__ import annotations

import json
import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path

import click
import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
from rich.console import Console
from rich.table import Table

from shedding_query import FinishedRun, identify, run_law, warm_up
from slackwater.spark.command.session import local_session

TARGETS_S = (1.0, 3.0, 5.0)
LAWS = ("ctrl-batch", "ctrl", "baseline", "aurora")
TRIGGER = "100 milliseconds"
WITHIN = 0.15
LEAD_S = 10
"""Seconds at half the capacity, before the load rises."""


@dataclass
class Phase:
    """One law under one target. Delays are means over kept rows, from arrival to commit."""

    law: str
    target_s: float
    mean_delay_s: float
    settled_after_s: float | None
    loss_ratio: float
    batches: int


def phases(law: str, run: FinishedRun, targets_s: tuple[float, ...], phase_s: float) -> list[Phase]:
    """The figures of each phase. A micro-batch belongs to the phase in which it began."""
    starts = np.array([r.batch.started_s - run.start_s - LEAD_S for r in run.history])
    ends = starts + np.array([r.batch.duration_s for r in run.history])
    delays = np.array([r.decision.delay_s if r.decision.delay_s is not None else np.nan for r in run.history])
    kept, rows = (np.array([getattr(r.batch, name) for r in run.history]) for name in ("kept", "rows"))
    found = []
    for number, target_s in enumerate(targets_s):
        first_s, last_s = number * phase_s, (number + 1) * phase_s
        inside = (starts >= first_s) & (starts < last_s)
        late = (starts >= first_s + phase_s / 2) & (starts < last_s) & ~np.isnan(delays)
        near = inside & (np.abs(delays / target_s - 1.0) <= WITHIN)
        found.append(
            Phase(
                law,
                target_s,
                float((delays * kept)[late].sum() / kept[late].sum()),
                float(ends[near][0] - first_s) if near.any() else None,
                float(1.0 - kept[late].sum() / rows[late].sum()),
                int(inside.sum()),
            )
        )
    return found


Delays = list[tuple[float, float | None]]


def delays_of(run: FinishedRun) -> Delays:
    """The end and the delay of each micro-batch."""
    return [(r.batch.started_s + r.batch.duration_s - run.start_s - LEAD_S, r.decision.delay_s) for r in run.history]


def plot(path: Path, laws: dict[str, Delays], targets_s: tuple[float, ...], phase_s: float, overload: float) -> None:
    """The delay of each micro-batch, one panel per law."""
    figure, axes = plt.subplots(1, len(laws), figsize=(3.4 * len(laws), 3.2), sharey=True, squeeze=False)
    for ax, (law, delays) in zip(axes[0], laws.items(), strict=True):
        ax.plot([end_s for end_s, _ in delays], [delay_s for _, delay_s in delays], ".-", linewidth=1, markersize=3)
        steps = [number * phase_s for number in range(len(targets_s) + 1)]
        ax.step(steps, [*targets_s, targets_s[-1]], where="post", color="black", linestyle="--", linewidth=0.8)
        ax.set_title(f"{law} at {overload:g}×")
        ax.set_xlabel("seconds")
        ax.set_xlim(-LEAD_S, len(targets_s) * phase_s)
        ax.set_ylim(0, 2 * targets_s[-1])
    axes[0, 0].set_ylabel("delay of a micro-batch (s)")
    figure.tight_layout()
    figure.savefig(path, dpi=110)
    plt.close(figure)


@click.command()
@click.option("--law", "laws", multiple=True, default=LAWS, show_default=True, help="Law to run (repeatable).")
@click.option(
    "--target",
    "targets_s",
    multiple=True,
    type=float,
    default=TARGETS_S,
    show_default=True,
    help="Target (repeatable).",
)
@click.option(
    "--overload", default=2.0, show_default=True, help="Load as a multiple of the capacity at the second target."
)
@click.option("--phase", "phase_s", default=40, show_default=True, help="Seconds under each target.")
@click.option("--work", default=2000, show_default=True, help="Sines per row; with 0 a row waits 2 ms.")
@click.option("--warm-up", "warm_up_s", default=60.0, show_default=True, help="Length of the warm-up in seconds.")
@click.option("--keep", type=click.Path(path_type=Path), help="Add the delays to this file, and plot all of it.")
@click.option("--plot", "plot_path", type=click.Path(path_type=Path), help="Draw the delays into this file.")
@click.option("--json", "as_json", is_flag=True, help="Print the figures as JSON.")
def main(
    laws: tuple[str, ...],
    targets_s: tuple[float, ...],
    overload: float,
    phase_s: int,
    work: int,
    warm_up_s: float,
    keep: Path | None,
    plot_path: Path | None,
    as_json: bool,
) -> None:
    """Change the target of an overloaded query on Spark while it runs, under each law."""
    runs: dict[str, FinishedRun] = {}
    with local_session("slackwater-bench-retarget") as spark, tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        rows = warm_up(spark, work, warm_up_s, folder)
        plant = identify(spark, work, rows, folder)
        capacity_per_s = plant.capacity_per_s(targets_s[len(targets_s) // 2])
        rates = np.full(LEAD_S + len(targets_s) * phase_s, overload * capacity_per_s)
        rates[:LEAD_S] = 0.5 * capacity_per_s
        changes = {LEAD_S + number * float(phase_s): target_s for number, target_s in enumerate(targets_s)}
        for law in laws:
            runs[law] = run_law(spark, law, rates, targets_s[0], work, folder / law, trigger=TRIGGER, targets_s=changes)
    figures = [phase for law, run in runs.items() for phase in phases(law, run, targets_s, float(phase_s))]
    delays = json.loads(keep.read_text()) if keep is not None and keep.exists() else {}
    delays.update((law, delays_of(run)) for law, run in runs.items())
    if keep is not None:
        keep.write_text(json.dumps(delays))
    if plot_path is not None:
        plot(plot_path, delays, targets_s, float(phase_s), overload)
    if as_json:
        report = {"plant": asdict(plant), "overload": overload, "phases": [asdict(phase) for phase in figures]}
        click.echo(json.dumps(report, indent=2))
        return
    table = Table(title=f"changing targets at {overload:g}× the capacity")
    for column in ("law", "target", "mean delay", "within 15 % after", "loss", "micro-batches"):
        table.add_column(column, justify="right")
    for phase in figures:
        settled = "never" if phase.settled_after_s is None else f"{phase.settled_after_s:.1f} s"
        cells = (f"{phase.target_s:g} s", f"{phase.mean_delay_s:.2f} s", settled, f"{phase.loss_ratio:.1%}")
        table.add_row(phase.law, *cells, str(phase.batches))
    Console().print(table)


if __name__ == "__main__":
    main()
