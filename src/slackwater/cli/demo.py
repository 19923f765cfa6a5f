"""``slackwater demo``: one Spark query keeps a drop ratio, the same query under guessed watermarks does not."""

from __future__ import annotations

import contextlib
import json
import math
import signal
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.status import Status
from rich.table import Table
from rich.text import Text

from slackwater.cli.demo_view import Comparison, headline, notes, phase_at, progress_line, table
from slackwater.cli.watched import watch_options, watched
from slackwater.control.disorder import DEFAULT_METHOD
from slackwater.control.ledger import Ledger
from slackwater.errors import InvalidOption
from slackwater.promises import Completeness
from slackwater.spark.command.comparison import PROMISED
from slackwater.units import duration_ms, percent, ratio

if TYPE_CHECKING:
    from slackwater.spark.command.demo import SideBySide
    from slackwater.spark.completeness.report import CompletenessReport

_MAX_GUESSES = 3
_PATIENCE_S = 15.0
"""After every row has been read, a query may take this long to publish its last windows."""
_POLL_S = 0.1
_REFRESH_S = 1.0
_PROGRESS_LINE_S = 10.0


@click.command("demo")
@click.option("--seconds", type=click.FloatRange(6), default=120.0, show_default=True, help="Length of the stream.")
@click.option("--drop-ratio", default="1%", show_default=True, help="The drop ratio to promise.")
@click.option("--rate", type=click.IntRange(1), default=10_000, show_default=True, help="Rows per second.")
@click.option(
    "--guess",
    "guesses",
    multiple=True,
    default=("1 second", "20 seconds"),
    show_default=True,
    help="Delay of a guessed watermark; may be repeated.",
)
@click.option("--method", default=DEFAULT_METHOD, show_default=True, help="Disorder control method.")
@click.option("--seed", default=0, show_default=True, help="Seed of the generated stream.")
@watch_options
@click.option("--json", "as_json", is_flag=True, help="Print the outcome as JSON on standard output.")
def command(
    seconds: float,
    drop_ratio: str,
    rate: int,
    guesses: tuple[str, ...],
    method: str,
    seed: int,
    watch_port: int | None,
    metrics_port: int | None,
    as_json: bool,
) -> None:
    """Watch a real Spark query keep a drop ratio where guesses fail.

    A generated stream runs through three Spark queries at once: one under the promise, two under guessed watermarks.
    Its lateness is steady, then drifts, then comes in bursts. A table shows what each query lost and how old its
    results were. The demo ends by itself; Ctrl-C ends it earlier.

    \b
    Examples:
      slackwater demo
      slackwater demo --drop-ratio 0.5% --seconds 60
      slackwater demo --guess '5 seconds'
      slackwater demo --watch
      slackwater demo --json | jq .kept
    """
    promised = Completeness(ratio(drop_ratio, option="--drop-ratio"))
    delays_ms = _delays_ms(guesses)
    from slackwater.spark.command.demo import SESSION, SideBySide, demo_readings  # imports pyspark
    from slackwater.spark.command.session import local_session

    console = Console(stderr=as_json)
    with (
        watched(console, watch_port, metrics_port),
        console.status("starting Spark …") as status,
        local_session("slackwater-demo", **SESSION) as spark,
    ):
        status.update("starting the queries …")
        readings = demo_readings(rate, seconds, max(delays_ms.values()) / 1e3, seed)
        queries = SideBySide(spark, readings, promised.drop_ratio, tuple(delays_ms), method)
        try:
            outcome, promise, interrupted = _compare(console, status, queries, promised)
        finally:
            queries.stop()
    if as_json:
        click.echo(json.dumps(_as_json(outcome, promise.as_json(), interrupted), indent=2))
    else:
        console.print(_screen(outcome), no_wrap=True, crop=False, overflow="ignore")
    sys.exit(0 if outcome.kept else 1)


def _compare(
    console: Console, status: Status, queries: SideBySide, promised: Completeness
) -> tuple[Comparison, CompletenessReport, bool]:
    """Run the queries to their end; the outcome, the promise's report, and whether Ctrl-C ended it."""
    with _interruption() as interrupted:
        _warm_up(queries, status, interrupted)
        _show_until_done(console, queries, promised, interrupted)
    with console.status("counting the rows of every window with a batch job …"):
        failure, promise = queries.failure(), queries.promise()
        if failure or promise is None:
            raise click.ClickException(failure or "the query reported no micro-batch; try a longer --seconds")
        queries.halt()
        outcome = _comparison(queries, promised, promise, queries.batch_counts(), ended=True)
    return outcome, promise, interrupted.is_set()


def _delays_ms(guesses: tuple[str, ...]) -> dict[str, float]:
    """The delay of every guess, each guess once."""
    if not 0 < len(set(guesses)) <= _MAX_GUESSES:
        raise InvalidOption(
            "too-many-guesses", f"--guess was given {len(guesses)} times", f"give it at most {_MAX_GUESSES} times"
        )
    return {guess: duration_ms(guess, option="--guess") for guess in guesses}


def _warm_up(queries: SideBySide, status: Status, interrupted: threading.Event) -> None:
    """Let the first rows arrive, and the first phase begin once every query is as fast as it will be."""
    status.update("running the first micro-batches …")
    queries.feed.start()
    while not queries.ready and queries.failure() is None and not interrupted.wait(_POLL_S):
        pass
    queries.feed.begin()
    status.stop()


def _show_until_done(
    console: Console, queries: SideBySide, promised: Completeness, interrupted: threading.Event
) -> None:
    """Show the queries until all have published every window, or Ctrl-C."""
    states = _states(queries, promised, interrupted)
    if not console.is_terminal:
        _print_progress(console, queries, states)
        return
    with Live(console=console, auto_refresh=False, transient=True) as live:
        for shown in states:
            live.update(_screen(shown, _progress(queries, promised)), refresh=True)


@contextlib.contextmanager
def _interruption() -> Iterator[threading.Event]:
    """An event that Ctrl-C sets. PySpark's own handler would cancel the micro-batches that are running."""
    interrupted = threading.Event()
    before = signal.signal(signal.SIGINT, lambda *_: interrupted.set())
    try:
        yield interrupted
    finally:
        signal.signal(signal.SIGINT, before)


def _print_progress(console: Console, queries: SideBySide, states: Iterator[Comparison]) -> None:
    """Print a line now and then, for an output that is not a terminal."""
    next_s = _PROGRESS_LINE_S
    for shown in states:
        if queries.elapsed_s >= next_s:
            console.print(progress_line(shown, queries.elapsed_s), highlight=False, soft_wrap=True)
            next_s += _PROGRESS_LINE_S


def _states(queries: SideBySide, promised: Completeness, interrupted: threading.Event) -> Iterator[Comparison]:
    """The state about once a second, until a query fails or all windows have been published.

    Windows that are still open some seconds after the last row was read stay open.
    """
    patient_until = math.inf
    while (
        not interrupted.is_set()
        and queries.failure() is None
        and queries.waiting_for()
        and time.monotonic() < patient_until
    ):
        if queries.all_read:
            patient_until = min(patient_until, time.monotonic() + _PATIENCE_S)
        yield _comparison(queries, promised, queries.promise(), queries.feed.counts, ended=False)
        interrupted.wait(_REFRESH_S)


def _comparison(
    queries: SideBySide,
    promised: Completeness,
    promise: CompletenessReport | None,
    counts: Mapping[int, int],
    ended: bool,
) -> Comparison:
    courses = {_label(name, promised): course for name, course in queries.courses(counts).items()}
    ledger = Ledger() if promise is None else promise.ledger
    return Comparison(promised, ledger, queries.spans, courses, queries.median_batch_s, ended)


def _label(name: str, promised: Completeness) -> str:
    """A query as a user would write it."""
    return f"DRATIO {percent(promised.drop_ratio)}" if name == PROMISED else f"withWatermark('ts', '{name}')"


def _progress(queries: SideBySide, promised: Completeness) -> RenderableType:
    """The phase, a bar and the seconds; at the end, whom the demo waits for."""
    elapsed_s, length_s = queries.elapsed_s, queries.length_s
    if elapsed_s >= length_s:
        names = queries.waiting_for()
        left = f"{len(names)} queries" if len(names) > 1 else "".join(_label(name, promised) for name in names)
        return Text(f"waiting for the last windows of {left}")
    line = Table.grid(padding=(0, 1))
    bar = ProgressBar(total=length_s, completed=elapsed_s, width=50)
    line.add_row(Text(f"{phase_at(queries.spans, elapsed_s):<8}", "bold"), bar, f"{elapsed_s:.0f} of {length_s:.0f} s")
    return line


def _screen(shown: Comparison, progress: RenderableType | None = None) -> RenderableType:
    """The whole screen: 80 columns, fewer than 24 lines."""
    return Group(headline(shown), progress or "", *table(shown), *notes(shown))


def _as_json(outcome: Comparison, promise: dict[str, Any], interrupted: bool) -> dict[str, Any]:
    return {
        "kept": outcome.kept,
        "interrupted": interrupted,
        "promise": promise,
        "median_batch_s": outcome.median_batch_s,
        "phases": [asdict(span) for span in outcome.spans],
        "queries": [
            {
                "query": name,
                "verdict": outcome.verdict(name),
                "failed": not outcome.kept if course is outcome.promised else outcome.failed(course),
                "phases": {phase: result.as_json() for phase, result in course.phases.items()},
                "whole_run": course.total.as_json(),
            }
            for name, course in outcome.courses.items()
        ],
    }
