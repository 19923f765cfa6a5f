"""``slackwater lab shedding``: compare load shedding laws on recorded arrivals."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import click
import numpy as np
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from slackwater import units
from slackwater.cli.plot_file import require_plot_file
from slackwater.cli.progress import unless_interrupted, working
from slackwater.control.shedding import make_law
from slackwater.errors import InvalidOption
from slackwater.promises import Timeliness
from slackwater.sim.shedding.costs import constant_cost
from slackwater.sim.shedding.microbatch import run_micro_batches
from slackwater.sim.shedding.recorded import read_arrivals
from slackwater.sim.shedding.run import Outcome, Setup, run

PAPER_CAPACITY_PER_S = 190.0


@click.command("shedding")
@click.argument("trace", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--target-delay", required=True, help="The delay to keep, such as 2s.")
@click.option("--capacity", type=float, help="Rows per second that the query can process (H/c).  [default: 190]")
@click.option("--cost", help="Processing time per row (c), such as 5.26ms; instead of --capacity.")
@click.option("--headroom", type=float, default=0.97, show_default=True, help="H: share of time left for the query.")
@click.option(
    "--laws", metavar="NAME[,NAME…]", default="none,aurora,baseline,ctrl", show_default=True, help="Laws to compare."
)
@click.option("--period", default="1s", show_default=True, help="T: the control period.")
@click.option(
    "--plant",
    type=click.Choice(["queue", "micro-batch"]),
    default="queue",
    show_default=True,
    help="The paper's queue, or an engine like Spark that triggers once per period (use law ctrl-batch for it).",
)
@click.option("--fixed-cost", default="150ms", show_default=True, help="Fixed cost per micro-batch (micro-batch only).")
@click.option(
    "--actuator",
    type=click.Choice(["entry", "queue"]),
    default="entry",
    show_default=True,
    help="Shed rows as they enter, or from the queue.",
)
@click.option("--arrival", metavar="COL", help="Column with arrival times, for a trace of one row per arrival.")
@click.option("--count", metavar="COL", help="Column with counts, for a trace of one row per second.")
@click.option("--scale", type=float, default=1.0, show_default=True, help="Rows per recorded arrival.")
@click.option("--start", default="0s", show_default=True, help="Skip this much of the trace.")
@click.option("--duration", help="Use at most this much of the trace.")
@click.option("--seed", type=int, default=0, show_default=True, help="Seed of the random draws.")
@click.option("--json", "as_json", is_flag=True, help="Print the figures as JSON on standard output.")
@click.option(
    "--plot",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE.png",
    help="Write a plot of the delay over time to this file.",
)
def command(
    trace: Path,
    target_delay: str,
    capacity: float | None,
    cost: str | None,
    headroom: float,
    laws: str,
    period: str,
    plant: str,
    fixed_cost: str,
    actuator: str,
    arrival: str | None,
    count: str | None,
    scale: float,
    start: str,
    duration: str | None,
    seed: int,
    as_json: bool,
    plot: Path | None,
) -> None:
    """Run load shedding laws on the arrivals in TRACE, against a simulated query.

    TRACE is CSV or Parquet: one row per arrival with a time column, or one row per second with a count column. The
    laws estimate cost and headroom themselves.

    \b
    Examples:
      slackwater lab shedding arrivals.csv --target-delay 2s --capacity 500
      slackwater lab shedding counts.parquet --count count --scale 100 \\
          --target-delay 2s --cost 5.26ms --duration 400s --laws aurora,ctrl --json
    """
    names = [name.strip() for name in laws.split(",") if name.strip()]
    for name in names:
        make_law(name)
    require_plot_file(plot)
    promise = Timeliness.of(target_delay, option="--target-delay")
    cost_s = cost_per_row_s(capacity, cost, headroom)
    period_s = units.duration_ms(period, option="--period") / 1e3
    if period_s <= 0:
        raise InvalidOption("no-period", f"--period {period} is not positive", "write 1s, for example")
    arrivals_s = read_arrivals(
        trace,
        time_column=arrival,
        count_column=count,
        scale=scale,
        start_s=units.duration_ms(start, option="--start") / 1e3,
        seconds=None if duration is None else units.duration_ms(duration, option="--duration") / 1e3,
    )
    seconds = (np.floor(arrivals_s[-1] / period_s) + 1) * period_s
    setup = Setup(
        arrivals_s,
        constant_cost(1, cost_s),
        seconds=float(seconds),
        targets=((0.0, promise.max_delay_s),),
        period_s=period_s,
        headroom=headroom,
        actuator=actuator,
        seed=seed,
    )
    fixed_s = units.duration_ms(fixed_cost, option="--fixed-cost") / 1e3
    run_law = _queue_plant(setup) if plant == "queue" else _micro_batch_plant(setup, promise, fixed_s, cost_s)
    console = Console(stderr=as_json)
    outcomes = []
    with (
        working("reading", spinner=False) as work,
        Progress(console=console, transient=True) as progress,
        unless_interrupted("the laws so far"),
    ):
        for number, name in enumerate(progress.track(names, description="laws"), start=1):
            work.say(f"{name}, {number} of {len(names)} laws")
            outcomes.append(run_law(name))
    if plot is not None:
        _plot(plot, outcomes, promise.max_delay_s)
    if as_json:
        click.echo(json.dumps([outcome.as_json() for outcome in outcomes], indent=2))
        return
    capacity_per_s = headroom / cost_s
    console.print(
        _table(outcomes, f"target {target_delay}, capacity {capacity_per_s:.4g} rows/s ({plant}, {actuator} shedder)")
    )
    load = len(arrivals_s) / seconds
    console.print(
        f"mean load {load:.4g} rows/s = {load / capacity_per_s:.2f}× capacity; "
        f"smallest possible loss in the long run {max(0.0, 1 - capacity_per_s / load):.2%}"
    )


def _queue_plant(setup: Setup) -> Callable[[str], Outcome]:
    return lambda law: run(law, setup)


def _micro_batch_plant(setup: Setup, promise: Timeliness, fixed_s: float, cost_s: float) -> Callable[[str], Outcome]:
    def run_law(law: str) -> Outcome:
        batches = run_micro_batches(
            law,
            setup.arrivals_s,
            target_s=promise.max_delay_s,
            trigger_s=setup.period_s,
            fixed_s=fixed_s,
            cost_s=cost_s / setup.headroom,
            seed=setup.seed,
        )
        return batches.outcome(law, setup.arrivals_s, promise.max_delay_s, setup.period_s)

    return run_law


def cost_per_row_s(capacity: float | None, cost: str | None, headroom: float) -> float:
    """The cost per row (c) in seconds, from ``cost``, or from ``capacity`` = headroom / cost.

    >>> cost_per_row_s(None, "5.26ms", 0.97), cost_per_row_s(194.0, None, 0.97)
    (0.00526, 0.005)
    """
    if not 0 < headroom <= 1:
        raise InvalidOption(
            "invalid-headroom", f"--headroom {headroom:g} is not in (0, 1]", "give the share of time for the query"
        )
    if capacity is not None and cost is not None:
        raise InvalidOption(
            "capacity-and-cost", "--capacity and --cost are two ways to give one number", "give one of them"
        )
    if cost is not None:
        cost_s = units.duration_ms(cost, option="--cost") / 1e3
    else:
        capacity = PAPER_CAPACITY_PER_S if capacity is None else capacity
        cost_s = headroom / capacity if capacity > 0 else 0.0
    if cost_s <= 0:
        problem = f"--cost {cost}" if cost is not None else f"--capacity {capacity}"
        raise InvalidOption("no-cost", f"{problem} is not positive", "give a positive number")
    return cost_s


def _table(outcomes: list[Outcome], title: str) -> Table:
    table = Table(title=title)
    table.add_column("law")
    for column in ("accumulated violation", "delayed rows", "max overshoot", "loss", "rows"):
        table.add_column(column, justify="right")
    for outcome in outcomes:
        table.add_row(
            outcome.law,
            f"{outcome.accumulated_violation_s:,.1f} s",
            f"{outcome.delayed_rows:,}",
            f"{outcome.max_overshoot_s:.3g} s",
            f"{outcome.loss_ratio:.2%}",
            f"{outcome.rows:,}",
        )
    return table


def _plot(path: Path, outcomes: list[Outcome], target_s: float) -> None:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, (above, below) = plt.subplots(2, 1, figsize=(9, 6), sharex=True)
    for outcome in outcomes:
        delay = outcome.mean_delay_s()
        time = np.arange(len(delay)) * outcome.period_s
        above.plot(time, delay, label=outcome.law, linewidth=1)
        below.plot(time, outcome.signals["shed_ratio"], label=outcome.law, linewidth=1)
    above.axhline(target_s, color="black", linestyle="--", linewidth=0.8, label="target")
    above.set_yscale("log")
    above.set_ylabel("delay (s)")
    above.legend()
    below.set_ylabel("shed ratio")
    below.set_xlabel("time (s)")
    figure.tight_layout()
    figure.savefig(path, dpi=120)
    plt.close(figure)
