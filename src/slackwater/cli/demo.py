"""``slackwater demo``: a real Spark query keeps a drop ratio, beside the same query under a fixed watermark."""

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
from slackwater.spark.command.demo import Duel, Missing, Side, new_readings
from slackwater.spark.command.session import local_session
from slackwater.spark.report import CompletenessReport
from slackwater.units import duration_text, percent, ratio

_SIDE_BY_SIDE = 98
_LINES = 3
_WINDOWS = 5


@click.command("demo")
@click.option(
    "--seconds", type=click.FloatRange(5), default=120.0, show_default=True, help="How long the stream lasts."
)
@click.option("--drop-ratio", default="1%", show_default=True, help="The promise.")
@click.option("--rate", type=click.IntRange(1), default=50_000, show_default=True, help="Rows per second.")
@click.option("--fixed", default="10 seconds", show_default=True, help="The fixed watermark to compare with.")
@click.option("--method", default=DEFAULT_METHOD, show_default=True, help="How the wait is found.")
@click.option("--seed", default=0, show_default=True, help="Another seed, another stream.")
@watch_options
@click.option("--json", "as_json", is_flag=True, help="The outcome as JSON on standard output.")
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
    """See a real Spark query keep a drop ratio.

    A generated stream, whose lateness is steady, then drifts, then comes in bursts, runs through two Spark queries
    side by side: one under the promise, one under a fixed watermark. Ends by itself; Ctrl-C ends it earlier.

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
        duel = Duel(spark, new_readings(rate, seconds, seed), promised, fixed, method)
        status.stop()
        try:
            interrupted = _watch(console, duel, fixed, seconds)
            with console.status("comparing with a batch job over the same rows …"):
                failure = duel.failure()
                promise = duel.promise()
                outcome = {name: duel.missing(name) for name in ("promised", "fixed")} if promise else {}
                sides = {"promised": duel.promised_side(), "fixed": duel.fixed_side()}
        finally:
            duel.stop()
    if failure or promise is None:
        raise click.ClickException(failure or "the query never reported; try a longer --seconds")
    if as_json:
        click.echo(json.dumps(_as_json(promise, sides, outcome, fixed, interrupted), indent=2))
    else:
        _print_outcome(console, promise, sides, outcome, fixed)
    sys.exit(0 if promise.kept else 1)


def _watch(console: Console, duel: Duel, fixed: str, seconds: float) -> bool:
    began = time.monotonic()
    try:
        with Live(console=console, refresh_per_second=4, transient=True) as live:
            while not duel.done:
                live.update(_view(duel, fixed, time.monotonic() - began, seconds, console.width))
                duel.promised.awaitTermination(1)
    except KeyboardInterrupt:
        return True
    return False


def _view(duel: Duel, fixed: str, elapsed_s: float, seconds: float, width: int) -> RenderableType:
    promise = duel.promise()
    left = _side_panel("under the promise", duel.promised_side(), _promise_lines(promise))
    right = _side_panel(f"under withWatermark('ts', '{fixed}')", duel.fixed_side(), [])
    bar = Table.grid(padding=(0, 1))
    done = ProgressBar(total=seconds, completed=min(elapsed_s, seconds), width=min(width, 100) - 18)
    bar.add_row(done, f"{min(elapsed_s, seconds):.0f} of {seconds:.0f} s")
    if width < _SIDE_BY_SIDE:
        return Group(bar, left, right)
    sides = Table.grid(expand=False)
    sides.add_row(left, right)
    return Group(bar, sides)


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


def _side_panel(title: str, side: Side, lines: list[tuple[str, RenderableType]]) -> Panel:
    facts = Table.grid(padding=(0, 2))
    facts.add_row("rows", f"{side.rows:,}")
    facts.add_row("wait", "–" if side.wait_ms is None else duration_text(side.wait_ms))
    for name, text in lines:
        facts.add_row(name, text)
    for _ in range(_LINES - len(lines)):
        facts.add_row("", "")
    closed = Table(box=SIMPLE_HEAD, padding=(0, 1))
    for name in ("latest windows", "rows", "peak"):
        closed.add_column(name, justify="left" if name == "latest windows" else "right", style="dim")
    for window, rows, peak in side.latest[:_WINDOWS]:
        closed.add_row(window, f"{rows:,}", f"{peak:.2f}")
    for _ in range(_WINDOWS - len(side.latest)):
        closed.add_row("", "", "")
    return Panel(Group(facts, f"windows closed: {side.windows:,}", closed), title=title, width=49)


def _print_outcome(
    console: Console, promise: CompletenessReport, sides: dict[str, Side], outcome: dict[str, Missing], fixed: str
) -> None:
    console.print(str(promise))
    table = Table(title="closed windows, compared with a batch job over the same rows", title_justify="left")
    for name in ("", "mean wait", "windows closed", "rows in them", "missing"):
        table.add_column(name, justify="left" if not name else "right")
    for key, name in (("promised", f"DRATIO {percent(promise.promise.drop_ratio)}"), ("fixed", f"fixed, {fixed}")):
        wait, lost = sides[key].mean_wait_ms, outcome[key]
        table.add_row(
            name,
            "–" if wait is None else duration_text(wait),
            f"{lost.windows:,}",
            f"{lost.rows:,}",
            f"{lost.missing:,} ({percent(lost.ratio)})",
        )
    console.print(table)
    console.print(_verdict(promise, sides, fixed), style="bold green" if promise.kept else "bold red")


def _verdict(promise: CompletenessReport, sides: dict[str, Side], fixed: str) -> str:
    ledger = promise.ledger
    word = "kept" if promise.kept else "BROKEN"
    wait = promise.mean_wait_ms
    return (
        f"{word}: {percent(ledger.drop_ratio)} of {ledger.on_time + ledger.late:,} rows late, "
        f"promised {percent(promise.promise.drop_ratio)}; waited {'–' if wait is None else duration_text(wait)} "
        f"on average instead of {duration_text(sides['fixed'].mean_wait_ms or float('nan'))}"
    )


def _as_json(
    promise: CompletenessReport, sides: dict[str, Side], outcome: dict[str, Missing], fixed: str, interrupted: bool
) -> dict[str, Any]:
    def side(key: str) -> dict[str, Any]:
        lost = outcome[key]
        return {
            "mean_wait_ms": sides[key].mean_wait_ms,
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
