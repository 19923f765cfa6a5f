"""``slackwater lab disorder``: compare disorder control methods on one recorded or generated stream."""

from __future__ import annotations

import json
from pathlib import Path

import click
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from slackwater.cli.plot_file import require_plot_file
from slackwater.cli.progress import unless_interrupted, working
from slackwater.control.disorder import method_names
from slackwater.errors import InvalidOption, UnknownName
from slackwater.sim.compare import NEEDS_PUNCTUATIONS, Cell, compare, methods_for
from slackwater.sim.driver import Batches
from slackwater.sim.recorded import Recording, read_recording
from slackwater.sim.spark_batches import SparkBatches, Trigger
from slackwater.sim.streams import make_stream
from slackwater.units import duration_ms, duration_text, percent, ratio


@click.command("disorder")
@click.argument("trace", type=click.Path(path_type=Path), required=False)
@click.option("--event-time", metavar="COL", help="Column that orders the stream: a timestamp, or any number.")
@click.option("--arrival", metavar="COL", help="Column with the arrival time. Without it, rows arrive in file order.")
@click.option("--source", metavar="COL[,COL…]", help="Columns that identify the source of a row.")
@click.option("--heartbeat", metavar="COL", help="Column with the stream's own heartbeats, for source-heartbeat.")
@click.option("--generated", metavar="NAME[:SEED]", help="A generated stream instead of a file.")
@click.option(
    "--drop-ratio", metavar="RATIO[,RATIO…]", default="5%,1%,0.1%", show_default=True, help="Drop ratios to promise."
)
@click.option("--methods", metavar="NAME[,NAME…]", help="Compare only these methods.  [default: all]")
@click.option("--every", type=click.IntRange(min=1), metavar="ROWS", help="Rows per batch.")
@click.option("--period", metavar="DURATION", help="Arrival time per batch, such as '1 second'.")
@click.option("--trigger", metavar="DURATION", help="Run as on Spark, with this trigger interval; 0: back to back.")
@click.option(
    "--batch-cost", metavar="COST", default="0.3s+2us/row", show_default=True, help="With --trigger: time per batch."
)
@click.option("--json", "as_json", is_flag=True, help="Print the comparison as JSON on standard output.")
@click.option(
    "--plot", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE.png", help="Write a plot to this file."
)
def command(
    trace: Path | None,
    event_time: str | None,
    arrival: str | None,
    source: str | None,
    heartbeat: str | None,
    generated: str | None,
    drop_ratio: str,
    methods: str | None,
    every: int | None,
    period: str | None,
    trigger: str | None,
    batch_cost: str,
    as_json: bool,
    plot: Path | None,
) -> None:
    """Compare methods on TRACE (Parquet or CSV) with the clairvoyant constant wait: drops, waits, buffer size.

    Rows are taken in arrival order, and every row counts, including the first. A method sets one heartbeat per batch.
    Without --every or --period the stream is cut into at most 50 000 batches of equal size. Larger batches drop more
    rows and wait longer. With --trigger the heartbeat is chosen when a micro-batch is planned and judges the next one,
    as on Spark, and is compared with the best constant delay for withWatermark in the same micro-batches.

    A wait is arrival clock − heartbeat. For a number, or without --arrival, it is the distance behind the highest value
    seen, in the column's own unit.

    \b
    Examples:
      slackwater lab disorder trips.parquet --event-time start_ts --arrival end_ts
      slackwater lab disorder log.csv --event-time ts --arrival seen --source host,channel --plot log.png
      slackwater lab disorder orders.csv --event-time order_id --methods mean-distance,fixed-slack --json
      slackwater lab disorder --generated kim2012-changing:7
      slackwater lab disorder phones.parquet --event-time ts --arrival seen --trigger '2 seconds' --json
    """
    require_plot_file(plot)
    console = Console(stderr=as_json)
    recording = _recording(trace, event_time, arrival, source, heartbeat, generated)
    for note in recording.notes:
        click.echo(f"note: {note}", err=True)
    ratios = [ratio(text, option="--drop-ratio") for text in drop_ratio.split(",")]
    chosen = _methods(methods, recording)
    batches = _batches(recording, every, period) if trigger is None else _micro_batches(recording, trigger, batch_cost)
    if trigger is not None and (every is not None or period is not None):
        raise InvalidOption("two-batch-sizes", "--trigger contradicts --every and --period", "give one of them")
    cells = _compare_all(console, recording, chosen, ratios, batches)
    if plot is not None:
        from slackwater.sim.comparison_plot import plot_comparison

        plot_comparison(plot, recording.trace.name, cells, recording.unit, recording.per_unit)
    if as_json:
        click.echo(json.dumps([cell.as_json(recording.unit, recording.per_unit) for cell in cells], indent=2))
        return
    behind = "" if recording.unit == "s" else "; waits are measured behind the highest value seen"
    unit = "" if recording.per_unit == 1e3 else ", in the column's own unit"
    console.print(f"{recording.trace.name}: {recording.trace.rows} rows{behind}{unit}", highlight=False)
    for table in _tables(cells, recording):
        console.print(table)
    if plot is not None:
        click.echo(f"plot written to {plot}")


def _compare_all(
    console: Console,
    recording: Recording,
    methods: list[str],
    ratios: list[float],
    batches: Batches | SparkBatches,
) -> list[Cell]:
    """Compare every method at every drop ratio, with a progress bar."""
    cells: list[Cell] = []
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    wanted = [(method, drop_ratio) for drop_ratio in ratios for method in methods]
    with (
        working("reading", spinner=False) as work,
        Progress(*columns, console=console, transient=True) as progress,
        unless_interrupted("the cells so far"),
    ):
        task = progress.add_task("", total=len(wanted))
        for number, (method, drop_ratio) in enumerate(wanted, start=1):
            what = f"{method} at {percent(drop_ratio)}"
            progress.update(task, description=what)
            work.say(f"{what}, {number} of {len(wanted)}")
            cells += compare(recording.trace, [method], [drop_ratio], batches)
            progress.advance(task)
    return cells


def _recording(
    trace: Path | None,
    event_time: str | None,
    arrival: str | None,
    source: str | None,
    heartbeat: str | None,
    generated: str | None,
) -> Recording:
    if (trace is None) == (generated is None):
        raise InvalidOption("no-trace", "expected either a file or --generated", "give one of them; see --help")
    if generated is not None:
        name, _, seed = generated.partition(":")
        if seed and not seed.isdigit():
            raise InvalidOption(
                "invalid-seed", f"--generated {generated}: the seed {seed!r} is not a whole number", f"write {name}:7"
            )
        return Recording(make_stream(name, int(seed or 0)), "s", 1e3, 0, ())
    assert trace is not None
    if event_time is None:
        raise InvalidOption("no-event-time", f"{trace} needs --event-time", "name the column that orders the stream")
    return read_recording(trace, event_time, arrival, source.split(",") if source else (), heartbeat)


def _methods(methods: str | None, recording: Recording) -> list[str]:
    if methods is None:
        return methods_for(recording.trace)
    chosen = [name.strip() for name in methods.split(",")]
    for name in chosen:
        if name not in method_names():
            raise UnknownName("unknown-method", f"unknown method {name!r}", f"use one of: {', '.join(method_names())}")
    if NEEDS_PUNCTUATIONS in chosen and recording.trace.punctuations is None:
        raise InvalidOption(
            "no-punctuations",
            f"{NEEDS_PUNCTUATIONS} needs heartbeats in the stream",
            "name their column with --heartbeat",
        )
    return chosen


def _batches(recording: Recording, every: int | None, period: str | None) -> Batches:
    if period is None:
        return Batches.every(recording.trace, every)
    if every is not None:
        raise InvalidOption("two-batch-sizes", "--every and --period contradict each other", "give one of them")
    if recording.trace.arrivals is None:
        raise InvalidOption(
            "no-clock", f"--period {period} needs arrival times", "give --arrival, or --every with a number of rows"
        )
    period_ms = duration_ms(period, option="--period")
    if period_ms <= 0:
        raise InvalidOption("invalid-duration", f"--period {period} is not positive", "write '1 second', for example")
    return Batches.each(recording.trace, period_ms)


def _micro_batches(recording: Recording, trigger: str, batch_cost: str) -> SparkBatches:
    if recording.trace.arrivals is None:
        raise InvalidOption("no-clock", f"--trigger {trigger} needs arrival times", "give --arrival")
    fixed, _, per_row = batch_cost.partition("+")
    if per_row and not per_row.endswith("/row"):
        raise InvalidOption("invalid-cost", f"--batch-cost {batch_cost} is not a cost", "write '0.3s+2us/row'")
    interval_ms = 0.0 if trigger.strip() == "0" else duration_ms(trigger, option="--trigger")
    fixed_ms = duration_ms(fixed, option="--batch-cost")
    row_ms = duration_ms(per_row.removesuffix("/row"), option="--batch-cost") if per_row else 0.0
    if fixed_ms <= 0:
        raise InvalidOption("invalid-cost", f"--batch-cost {batch_cost}: a batch takes time", "write '0.3s+2us/row'")
    return SparkBatches.of(recording.trace, Trigger(interval_ms, fixed_ms, row_ms))


def _tables(cells: list[Cell], recording: Recording) -> list[Table]:
    """One table per promised drop ratio."""

    def wait_text(wait: float) -> str:
        return duration_text(wait) if recording.per_unit == 1e3 else f"{wait:.4g}"

    tables: dict[float, Table] = {}
    for cell in cells:
        if cell.target_drop_ratio not in tables:
            title = f"promised {percent(cell.target_drop_ratio)}; clairvoyant wait {wait_text(cell.clairvoyant_wait)}"
            table = Table(title=title, title_justify="left", box=SIMPLE_HEAD, collapse_padding=True, pad_edge=False)
            table.add_column("method", no_wrap=True)
            last = "×clairv." if cell.best_constant_wait is None else "×constant"
            for column in ("dropped", "kept", "mean wait", "p99 wait", "buffer", last):
                table.add_column(column, justify="right", no_wrap=True)
            tables[cell.target_drop_ratio] = table
        tables[cell.target_drop_ratio].add_row(
            cell.method,
            percent(cell.drop_ratio),
            "yes" if cell.kept else "[red]NO[/red]",
            wait_text(cell.mean_wait),
            wait_text(cell.p99_wait),
            f"{cell.mean_buffer_rows:.1f}",
            "–" if cell.wait_ratio is None else f"{cell.wait_ratio:.2f}",
        )
    return list(tables.values())
