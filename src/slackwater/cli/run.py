"""``slackwater run``: a query over a stream, from the command line."""

from __future__ import annotations

import json
import time
from pathlib import Path

import click
from rich.console import Console

from slackwater.cli.query_file import read_query_file
from slackwater.cli.stream_table import stream_table
from slackwater.cli.watched import watch_options, watched
from slackwater.language import parse


@click.command("run")
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option(
    "--source",
    required=True,
    help="json:FOLDER, parquet:FOLDER, csv:FOLDER, generator:ROWS_PER_SECOND, or replay:FILE (Parquet, by arrival).",
)
@click.option("--schema", help="The rows of json and csv, as 'ts TIMESTAMP, value DOUBLE'.")
@click.option("--time", "time_column", help="The time column, where the query names none (WATTR).")
@click.option("--key", help="The column that tells the streams of a standing query apart, where it joins no weights.")
@click.option("--value", help="The column whose values a standing query aggregates, where its text leaves that open.")
@click.option(
    "--table",
    "tables",
    multiple=True,
    metavar="NAME=FORMAT:PATH",
    help="A static table that the query joins: parquet, json, or csv with a header. Types are inferred, or said as in "
    "'NAME(column TYPE, …)=csv:PATH'. May be given several times.",
)
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
    key: str | None,
    value: str | None,
    tables: tuple[str, ...],
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
    the report is the last line of standard output. Ctrl-C ends a run as its time would. Of a standing query (WITHIN)
    without a window the stream is the table that --table does not bring; its clock goes on only with --seconds.

    \b
    Examples:
      slackwater run peaks.sql --source generator:1000 --seconds 30
      slackwater run peaks.sql --source json:in --schema 'ts TIMESTAMP, value DOUBLE' --sink parquet:out
      slackwater run peaks.sql --source replay:recorded.parquet --watch --metrics-port 9464
      slackwater run peaks.sql --source replay:recorded.parquet --sink parquet:out --late-sink json:late --json
      slackwater run places.sql --source parquet:in --table 'DueMask(sensor STRING, place STRING)=csv:places.csv'
      slackwater run worth.sql --source replay:prices.parquet --table Holdings=parquet:holdings --value price
    """
    query = parse(read_query_file(file))
    from slackwater.spark.command import session  # Spark is loaded only when it is needed
    from slackwater.spark.command.run_spec import Run
    from slackwater.spark.command.runner import run_to_the_end
    from slackwater.spark.command.sinks import Sink
    from slackwater.spark.command.sources import Source
    from slackwater.spark.command.tables import static_tables

    static = static_tables(tables)
    run = Run(
        query,
        stream_table(query, [table.name for table in static]),
        Source.of(source, schema, batches),
        Sink.of(sink),
        late_sink=None if late_sink is None else Sink.of(late_sink, "--late-sink"),
        tables=static,
        time=time_column,
        key=key,
        value=value,
        checkpoint=checkpoint,
        limit_s=seconds,
    )
    run.check()
    console = Console(stderr=True)
    status = console.status("starting Spark …")
    started = time.monotonic()

    def show(plan: str) -> None:
        status.stop()
        console.print(plan, highlight=False, markup=False, soft_wrap=True)
        status.start()

    def emit(line: str) -> None:
        status.stop()
        click.echo(line)
        status.start()

    def tell(so_far: str) -> None:
        status.update(f"{so_far}, {time.monotonic() - started:.0f} s")

    with watched(console, watch_port, metrics_port), status, session.local_session("slackwater-run") as spark:
        outcome = run_to_the_end(spark, run, tell, emit, as_json, show)
    if as_json:
        click.echo(json.dumps({**outcome.report.as_json(), "interrupted": outcome.interrupted}))
    else:
        console.print(str(outcome.report), highlight=False, markup=False, soft_wrap=True)
    ctx.exit(0 if outcome.report.kept else 1)
