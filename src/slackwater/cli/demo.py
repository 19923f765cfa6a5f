"""``slackwater demo``: one Spark query keeps a drop ratio beside the same query under a fixed watermark."""

from __future__ import annotations

import json
import sys
import time
from typing import Any

import click
from rich.box import SIMPLE_HEAD
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.panel import Panel
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from slackwater import units
from slackwater.cli.watched import watch_options, watched
from slackwater.control.disorder import DEFAULT_METHOD
from slackwater.spark.command.demo import MissingRows, QueryState, SideBySide, new_readings
from slackwater.spark.command.session import local_session
from slackwater.spark.completeness.report import CompletenessReport
from slackwater.units import duration_text, percent, ratio

_TWO_PANELS_WIDTH = 98
_PANEL_LINES = 3
_PANEL_WINDOWS = 5


@click.command("demo")
@click.option("--seconds", type=click.FloatRange(5), default=120.0, show_default=True, help="Length of the stream.")
@click.option("--drop-ratio", default="1%", show_default=True, help="The drop ratio to promise.")
@click.option("--rate", type=click.IntRange(1), default=50_000, show_default=True, help="Rows per second.")
@click.option("--fixed", default="10 seconds", show_default=True, help="Delay of the fixed watermark.")
@click.option("--method", default=DEFAULT_METHOD, show_default=True, help="Disorder control method.")
@click.option("--seed", default=0, show_default=True, help="Seed of the generated stream.")
@watch_options
@click.option("--json", "as_json", is_flag=True, help="Print the outcome as JSON on standard output.")
def command(
    seconds: float,
    drop_ratio: str,
    rate: int,
    fixed: str,
    method: str,
    seed: int,
    watch_port: int | None,
    metrics_port: int | None,
    as_json: bool,
) -> None:
    """Watch a real Spark query keep a drop ratio.

    A generated stream runs through two Spark queries side by side: one under the promise, one under a fixed watermark.
    Its lateness is steady, then drifts, then comes in bursts. The demo ends by itself; Ctrl-C ends it earlier.

    \b
    Examples:
      slackwater demo
      slackwater demo --drop-ratio 0.5% --seconds 60
      slackwater demo --watch
      slackwater demo --json | jq .kept
    """
    promised = ratio(drop_ratio, option="--drop-ratio")
    console = Console(stderr=as_json)
    units.duration_ms(fixed, option="--fixed")
    status = console.status("starting Spark …")
    status.start()
    with watched(console, watch_port, metrics_port), local_session("slackwater-demo") as spark:
        queries = SideBySide(spark, new_readings(rate, seconds, seed), promised, fixed, method)
        status.stop()
        try:
            interrupted = _show_until_done(console, queries, fixed, seconds)
            with console.status("comparing with a batch job over the same rows …"):
                failure = queries.failure()
                promise = queries.promise()
                missing = {name: queries.missing(name) for name in ("promised", "fixed")} if promise else {}
                states = {"promised": queries.promised_state(), "fixed": queries.fixed_state()}
        finally:
            queries.stop()
    if failure or promise is None:
        raise click.ClickException(failure or "the query reported no micro-batch; try a longer --seconds")
    if as_json:
        click.echo(json.dumps(_as_json(promise, states, missing, fixed, interrupted), indent=2))
    else:
        _print_outcome(console, promise, states, missing, fixed)
    sys.exit(0 if promise.kept else 1)


def _show_until_done(console: Console, queries: SideBySide, fixed: str, seconds: float) -> bool:
    """Show both queries until they are done; True if Ctrl-C ended it."""
    began = time.monotonic()
    try:
        with Live(console=console, refresh_per_second=4, transient=True) as live:
            while not queries.done:
                live.update(_view(queries, fixed, time.monotonic() - began, seconds, console.width))
                queries.promised.awaitTermination(1)
    except KeyboardInterrupt:
        return True
    return False


def _view(queries: SideBySide, fixed: str, elapsed_s: float, seconds: float, width: int) -> RenderableType:
    promise = queries.promise()
    left = _panel("under the promise", queries.promised_state(), _promise_lines(promise))
    right = _panel(f"under withWatermark('ts', '{fixed}')", queries.fixed_state(), [])
    bar = Table.grid(padding=(0, 1))
    progress = ProgressBar(total=seconds, completed=min(elapsed_s, seconds), width=min(width, 100) - 18)
    bar.add_row(progress, f"{min(elapsed_s, seconds):.0f} of {seconds:.0f} s")
    if width < _TWO_PANELS_WIDTH:
        return Group(bar, left, right)
    panels = Table.grid(expand=False)
    panels.add_row(left, right)
    return Group(bar, panels)


def _promise_lines(promise: CompletenessReport | None) -> list[tuple[str, RenderableType]]:
    if promise is None or promise.heartbeat is None:
        return [("heartbeat", "learning …"), ("drop ratio", "–"), ("decision", "–")]
    verdict = Text("kept", style="bold green") if promise.kept else Text("BROKEN", style="bold red")
    return [
        ("heartbeat", f"{promise.heartbeat:%H:%M:%S.%f}"[:-3]),
        (
            "drop ratio",
            Text.assemble(verdict, f", {percent(promise.ledger.drop_ratio)} of {percent(promise.promise.drop_ratio)}"),
        ),
        ("decision", promise.cause),
    ]


def _panel(title: str, state: QueryState, lines: list[tuple[str, RenderableType]]) -> Panel:
    """One query; both panels are padded to the same height."""
    facts = Table.grid(padding=(0, 2))
    facts.add_row("rows", f"{state.rows:,}")
    facts.add_row("wait", "–" if state.wait_ms is None else duration_text(state.wait_ms))
    for name, text in lines:
        facts.add_row(name, text)
    for _ in range(_PANEL_LINES - len(lines)):
        facts.add_row("", "")
    closed = Table(box=SIMPLE_HEAD, padding=(0, 1))
    for name in ("latest windows", "rows", "peak"):
        closed.add_column(name, justify="left" if name == "latest windows" else "right", style="dim")
    for window, rows, peak in state.latest[:_PANEL_WINDOWS]:
        closed.add_row(window, f"{rows:,}", f"{peak:.2f}")
    for _ in range(_PANEL_WINDOWS - len(state.latest)):
        closed.add_row("", "", "")
    return Panel(Group(facts, f"windows closed: {state.windows:,}", closed), title=title, width=49)


def _print_outcome(
    console: Console,
    promise: CompletenessReport,
    states: dict[str, QueryState],
    missing: dict[str, MissingRows],
    fixed: str,
) -> None:
    console.print(str(promise))
    table = Table(title="closed windows, compared with a batch job over the same rows", title_justify="left")
    for name in ("", "mean wait", "windows closed", "rows in them", "missing"):
        table.add_column(name, justify="left" if not name else "right")
    for key, name in (("promised", f"DRATIO {percent(promise.promise.drop_ratio)}"), ("fixed", f"fixed, {fixed}")):
        wait, lost = states[key].mean_wait_ms, missing[key]
        table.add_row(
            name,
            "–" if wait is None else duration_text(wait),
            f"{lost.windows:,}",
            f"{lost.rows:,}",
            f"{lost.missing:,} ({percent(lost.ratio)})",
        )
    console.print(table)
    console.print(_verdict(promise, states), style="bold green" if promise.kept else "bold red")


def _verdict(promise: CompletenessReport, states: dict[str, QueryState]) -> str:
    ledger = promise.ledger
    word = "kept" if promise.kept else "BROKEN"
    wait = promise.mean_wait_ms
    return (
        f"{word}: {percent(ledger.drop_ratio)} of {ledger.on_time + ledger.late:,} rows late, "
        f"promised {percent(promise.promise.drop_ratio)}; waited {'–' if wait is None else duration_text(wait)} "
        f"on average instead of {duration_text(states['fixed'].mean_wait_ms or float('nan'))}"
    )


def _as_json(
    promise: CompletenessReport,
    states: dict[str, QueryState],
    missing: dict[str, MissingRows],
    fixed: str,
    interrupted: bool,
) -> dict[str, Any]:
    def side(key: str) -> dict[str, Any]:
        lost = missing[key]
        return {
            "mean_wait_ms": states[key].mean_wait_ms,
            "windows_closed": lost.windows,
            "rows_in_closed_windows": lost.rows,
            "missing_rows": lost.missing,
        }

    return {
        "kept": promise.kept,
        "interrupted": interrupted,
        "promise": promise.as_json(),
        "promised": side("promised"),
        "fixed": {"watermark": fixed, **side("fixed")},
    }
