"""``slackwater run``: a query over a stream, from the command line."""

from __future__ import annotations

import json
import time
from pathlib import Path

import click
from rich.console import Console

from slackwater.cli.query_file import read_query_file
from slackwater.cli.watched import watch_options, watched
from slackwater.errors import InvalidOption
from slackwater.language import parse
from slackwater.language.text import located
from slackwater.plan import Plan, explain


@click.command("run")
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option(
    "--source",
    required=True,
    help="json:FOLDER, parquet:FOLDER, csv:FOLDER, generator:ROWS_PER_SECOND, or replay:FILE (Parquet, by arrival).",
)
@click.option("--schema", help="The rows of json and csv, as 'ts TIMESTAMP, value DOUBLE'.")
@click.option("--time", "time_column", help="The time column, where the query names none (WATTR).")
@click.option("--sink", default="console", show_default=True, help="console, parquet:FOLDER or json:FOLDER.")
@click.option("--late-sink", help="The same for late rows or late panes, if they shall go elsewhere.")
@click.option(
    "--checkpoint", type=click.Path(path_type=Path), help="Where Spark keeps its place; else a temporary folder."
)
@click.option(
    "--seconds", type=click.FloatRange(0.1), default=None, help="Stop after so long; else when nothing comes any more."
)
@watch_options
@click.option("--batches", type=click.IntRange(1), default=20, show_default=True, help="Micro-batches of a replay.")
@click.option("--json", "as_json", is_flag=True, help="Results on the console and the report as JSON lines.")
@click.pass_context
def command(
    ctx: click.Context,
    file: Path,
    source: str,
    schema: str | None,
    time_column: str | None,
    sink: str,
    late_sink: str | None,
    checkpoint: Path | None,
    seconds: float | None,
    batches: int,
    watch_port: int | None,
    metrics_port: int | None,
    as_json: bool,
) -> None:
    """Run the query in FILE on a local Spark and report its promise.

    The plan, the progress and the report go to standard error, results on the console to standard output. With --json
    the report is the last line of standard output. Ctrl-C ends a run as its time would. Standing queries (WITHIN)
    are for programs: check and explain take them, run does not.

    \b
    Examples:
      slackwater run peaks.sql --source generator:1000 --seconds 30
      slackwater run peaks.sql --source json:in --schema 'ts TIMESTAMP, value DOUBLE' --sink parquet:out
      slackwater run peaks.sql --source replay:recorded.parquet --watch --metrics-port 9464
      slackwater run peaks.sql --source replay:recorded.parquet --sink parquet:out --late-sink json:late --json
    """
    text = read_query_file(file)
    table = _stream_name(text)
    from slackwater.spark import session  # Spark is loaded only when it is needed
    from slackwater.spark.runner import Run, run_to_the_end
    from slackwater.spark.sinks import Sink
    from slackwater.spark.sources import Source

    run = Run(
        text,
        table,
        Source.of(source, schema, batches),
        Sink.of(sink),
        None if late_sink is None else Sink.of(late_sink, "--late-sink"),
        time_column,
        checkpoint,
        seconds,
    )
    console = Console(stderr=True)
    status = console.status("starting Spark …")
    started = time.monotonic()

    def show(plan: Plan) -> None:
        status.stop()
        console.print(explain(plan), highlight=False, markup=False, soft_wrap=True)
        status.start()

    def emit(line: str) -> None:
        status.stop()
        click.echo(line)
        status.start()

    def tell(rows: int) -> None:
        status.update(f"{rows:,} rows, {time.monotonic() - started:.0f} s")

    with watched(console, watch_port, metrics_port), status, session.local_session("slackwater-run") as spark:
        outcome = run_to_the_end(spark, run, tell, emit, as_json, show)
    if as_json:
        click.echo(json.dumps({**outcome.report.as_json(), "interrupted": outcome.interrupted}))
    else:
        console.print(str(outcome.report), highlight=False, markup=False, soft_wrap=True)
    ctx.exit(0 if outcome.report.kept else 1)


def _stream_name(text: str) -> str:
    query = parse(text)
    if query.precision is not None:
        raise located(
            query.text,
            query.text.upper().rfind("WITHIN"),
            "standing-query",
            "WITHIN needs the key that tells streams apart, maybe a table of weights, and run has options for neither",
            "run it in a program: sw.stream(…, key=…) and sw.sql",
            length=len("WITHIN"),
        )
    windowed = query.windowed()
    if len(windowed) != 1:
        raise InvalidOption("no-window", "the query has no stream with a window", "write FROM name [RANGE 5 minutes]")
    return str(windowed[0][0].name)
