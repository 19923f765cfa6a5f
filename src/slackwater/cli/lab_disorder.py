"""``slackwater lab disorder``: every method of disorder control on one recorded or generated stream."""

from __future__ import annotations

import json
from pathlib import Path

import click
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from slackwater.control.disorder import method_names
from slackwater.errors import InvalidOption, UnknownName
from slackwater.sim.compare import NEEDS_PUNCTUATIONS, Cell, compare, methods_for
from slackwater.sim.comparison_plot import plot_comparison
from slackwater.sim.driver import Batches
from slackwater.sim.recorded import Recording, read_recording
from slackwater.sim.streams import make_stream
from slackwater.units import duration_ms, duration_text, percent, ratio


@click.command("disorder")
@click.argument("trace", type=click.Path(path_type=Path), required=False)
@click.option("--event-time", metavar="COL", help="The windowing attribute: a timestamp, or any number.")
@click.option("--arrival", metavar="COL", help="When each row arrived. Without it, the file's order is the order.")
@click.option("--source", metavar="COL[,COL…]", help="Columns that tell sources apart.")
@click.option("--heartbeat", metavar="COL", help="Punctuations that the stream carries, for source-heartbeat.")
@click.option("--generated", metavar="NAME[:SEED]", help="A generated stream instead of a file.")
@click.option("--drop-ratio", default="5%,1%,0.1%", show_default=True, help="The promises to try.")
@click.option("--methods", metavar="NAME[,NAME…]", help="Only these methods.  [default: all]")
@click.option("--every", type=click.IntRange(min=1), metavar="ROWS", help="A new heartbeat every so many rows.")
@click.option("--period", metavar="DURATION", help="A new heartbeat every so much arrival time ('1 second').")
@click.option("--json", "as_json", is_flag=True, help="The comparison as JSON on standard output.")
@click.option("--plot", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE.png", help="Draw it.")
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
    as_json: bool,
    plot: Path | None,
) -> None:
    """Compare methods on TRACE (Parquet or CSV): drops, waits and buffer against the clairvoyant constant wait.

    Rows are taken in arrival order and all of them count, the first ones too. Without --every or --period the stream
    falls into at most 50 000 batches of equal size (12 500 above a million rows), of a single row each if it is shorter
    than that: as fine as seconds per method allow. A coarser heartbeat drops and waits more. Waits are arrival clock −
    heartbeat; for a number, or without --arrival, they are measured behind the highest value seen, in its own unit.

    \b
    Examples:
      slackwater lab disorder trips.parquet --event-time start_ts --arrival end_ts
      slackwater lab disorder log.csv --event-time ts --arrival seen --source host,channel --plot log.png
      slackwater lab disorder orders.csv --event-time order_id --methods mean-distance,fixed-slack --json
      slackwater lab disorder --generated kim2012-changing:7
    """
    console = Console(stderr=as_json)
    recording = _recording(trace, event_time, arrival, source, heartbeat, generated)
    for note in recording.notes:
        click.echo(f"note: {note}", err=True)
    ratios = [ratio(text, option="--drop-ratio") for text in drop_ratio.split(",")]
    chosen = _methods(methods, recording)
    batches = _batches(recording, every, period)
    cells: list[Cell] = []
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task("", total=len(ratios) * len(chosen))
        for one in ratios:
            for name in chosen:
                progress.update(task, description=f"{name} at {percent(one)}")
                cells += compare(recording.trace, [name], [one], batches)
                progress.advance(task)
    if plot is not None:
        plot_comparison(plot, recording.trace.name, cells, recording.unit, recording.per_unit)
    if as_json:
        click.echo(json.dumps([cell.as_json(recording.unit, recording.per_unit) for cell in cells], indent=2))
        return
    behind = "" if recording.unit == "s" else "; waits are measured behind the front"
    unit = "" if recording.per_unit == 1e3 else ", in the attribute's own unit"
    console.print(f"{recording.trace.name}: {recording.trace.rows} rows{behind}{unit}", highlight=False)
    for table in _tables(cells, recording):
        console.print(table)
    if plot is not None:
        click.echo(f"picture written to {plot}")


def _recording(
    trace: Path | None,
    event_time: str | None,
    arrival: str | None,
    source: str | None,
    heartbeat: str | None,
    generated: str | None,
) -> Recording:
    if (trace is None) == (generated is None):
        raise InvalidOption("no-trace", "give either a file or --generated, and not both", "see --help for examples")
    if generated is not None:
        name, _, seed = generated.partition(":")
        if seed and not seed.isdigit():
            raise InvalidOption(
                "invalid-seed", f"--generated={generated!r} has no whole number after the colon", "NAME:7"
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
            raise UnknownName(
                "unknown-method", f"there is no method {name!r}", f"use one of: {', '.join(method_names())}"
            )
    if NEEDS_PUNCTUATIONS in chosen and recording.trace.punctuations is None:
        raise InvalidOption(
            "no-punctuations",
            f"{NEEDS_PUNCTUATIONS} needs punctuations in the stream",
            "name their column: --heartbeat",
        )
    return chosen


def _batches(recording: Recording, every: int | None, period: str | None) -> Batches:
    if period is None:
        return Batches.every(recording.trace, every)
    if every is not None:
        raise InvalidOption("two-batch-sizes", "--every and --period contradict each other", "give one of them")
    if recording.trace.arrivals is None:
        raise InvalidOption(
            "no-clock", f"--period={period!r} needs an arrival clock", "use --every with a number of rows"
        )
    period_ms = duration_ms(period, option="--period")
    if period_ms <= 0:
        raise InvalidOption("invalid-duration", f"--period={period!r} is not positive", "give '1 second' or the like")
    return Batches.each(recording.trace, period_ms)


def _tables(cells: list[Cell], recording: Recording) -> list[Table]:
    """A table for each promised ratio."""

    def shown(wait: float) -> str:
        return duration_text(wait) if recording.per_unit == 1e3 else f"{wait:.4g}"

    tables: dict[float, Table] = {}
    for cell in cells:
        if cell.target_drop_ratio not in tables:
            title = f"promised {percent(cell.target_drop_ratio)}; clairvoyant wait {shown(cell.clairvoyant_wait)}"
            table = Table(title=title, title_justify="left", box=SIMPLE_HEAD, collapse_padding=True, pad_edge=False)
            table.add_column("method", no_wrap=True)
            for column in ("dropped", "kept", "mean wait", "p99 wait", "buffer", "×clairv."):
                table.add_column(column, justify="right", no_wrap=True)
            tables[cell.target_drop_ratio] = table
        tables[cell.target_drop_ratio].add_row(
            cell.method,
            percent(cell.drop_ratio),
            "yes" if cell.kept else "[red]NO[/red]",
            shown(cell.mean_wait),
            shown(cell.p99_wait),
            f"{cell.mean_buffer_rows:.1f}",
            "–" if cell.wait_ratio is None else f"{cell.wait_ratio:.2f}",
        )
    return list(tables.values())
