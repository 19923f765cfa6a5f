"""``slackwater run``: run a query on a local Spark."""

from __future__ import annotations

import json
from pathlib import Path

import click
from rich.console import Console

from slackwater.cli.progress import working
from slackwater.cli.query_file import read_query_file
from slackwater.cli.stream_table import stream_table
from slackwater.cli.watched import watch_options, watched
from slackwater.language import parse


@click.command("run")
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option(
    "--source",
    required=True,
    help="json:FOLDER, parquet:FOLDER or csv:FOLDER (or a pattern, such as 'parquet:in/day=*'); "
    "generator:ROWS_PER_SECOND; or replay:FILE, recorded rows in the order of arrival ('replay:FILE?every=10s' cuts "
    "them by time, 'replay:FILE?speed=60x' plays them at that speed).",
)
@click.option("--schema", help="Columns of json and csv files, such as 'ts TIMESTAMP, value DOUBLE'.")
@click.option("--event-time", metavar="COL", help="Event-time column; needed if the query has no WATTR.")
@click.option("--key", metavar="COL", help="Stream key of a standing query; needed if the query joins no weights.")
@click.option("--value", metavar="COL", help="Value column of a standing query, if its text does not determine it.")
@click.option(
    "--table",
    "tables",
    multiple=True,
    metavar="NAME=FORMAT:PATH",
    help="Static table that the query joins: parquet, json, or csv with a header. Spark infers the types, or write "
    "'NAME(column TYPE, …)=csv:PATH'. Repeatable.",
)
@click.option("--method", metavar="NAME", help="Method of disorder control.  [default: budgeted-quantile]")
@click.option("--law", metavar="NAME", help="Law of load shedding, for DELAY.  [default: ctrl-batch]")
@click.option("--sink", default="console", show_default=True, help="console, parquet:FOLDER or json:FOLDER.")
@click.option("--late-sink", help="Separate sink for late rows or late panes.")
@click.option(
    "--checkpoint", type=click.Path(path_type=Path), help="Folder of Spark's checkpoint.  [default: a temporary folder]"
)
@click.option(
    "--seconds", type=click.FloatRange(0.1), help="Stop after this time.  [default: when the source has no more rows]"
)
@watch_options
@click.option("--batches", type=click.IntRange(1), help="Micro-batches of a replay.  [default: 20]")
@click.option(
    "--flush/--no-flush",
    default=None,
    help="Close the windows that are open when the source has no more rows.  [default: flush, but not a folder that is "
    "read with --checkpoint or --seconds]",
)
@click.option("--json", "as_json", is_flag=True, help="Print results and report as JSON lines.")
@click.pass_context
def command(
    ctx: click.Context,
    file: Path,
    source: str,
    schema: str | None,
    event_time: str | None,
    key: str | None,
    value: str | None,
    tables: tuple[str, ...],
    method: str | None,
    law: str | None,
    sink: str,
    late_sink: str | None,
    checkpoint: Path | None,
    seconds: float | None,
    batches: int | None,
    watch_port: int | None,
    metrics_port: int | None,
    flush: bool | None,
    as_json: bool,
) -> None:
    """Run the query in FILE on a local Spark and report its promise.

    Plan, progress and report go to standard error; results for the console go to standard output. With --json the
    report is the last line of standard output. Ctrl-C ends the run early and still prints the report. In a standing
    query (WITHIN) without a window, the stream is the table that --table does not provide; its clock runs only with
    --seconds.

    \b
    Examples:
      slackwater run peaks.sql --source generator:1000 --seconds 30
      slackwater run peaks.sql --source json:in --schema 'ts TIMESTAMP, value DOUBLE' --sink parquet:out
      slackwater run peaks.sql --source replay:recorded.parquet --watch --metrics-port 9464
      slackwater run peaks.sql --source replay:recorded.parquet --sink parquet:out --late-sink json:late --json
      slackwater run places.sql --source parquet:in --table 'Places(sensor STRING, place STRING)=csv:places.csv'
      slackwater run counts.sql --source generator:100000 --seconds 60 --law baseline
      slackwater run peaks.sql --source replay:recorded.parquet --method adaptive-max-delay
      slackwater run worth.sql --source replay:prices.parquet --table Holdings=parquet:holdings --value price
    """
    query = parse(read_query_file(file))
    from slackwater.spark.command.run_spec import RunSpec
    from slackwater.spark.command.sinks import Sink
    from slackwater.spark.command.sources import Source
    from slackwater.spark.command.tables import static_tables

    static = static_tables(tables)
    spec = RunSpec(
        query,
        stream_table(query, [table.name for table in static]),
        Source.parse(source, schema, batches),
        Sink.parse(sink),
        late_sink=None if late_sink is None else Sink.parse(late_sink, "--late-sink"),
        tables=static,
        event_time=event_time,
        key=key,
        value=value,
        method=method,
        law=law,
        checkpoint=checkpoint,
        limit_s=seconds,
        flush=flush,
    )
    spec.check()
    from slackwater.spark.command import session
    from slackwater.spark.command.runner import run_until_done  # imports pyspark, so only when everything is right

    console = Console(stderr=True)
    with (
        spec.claimed(),
        watched(console, watch_port, metrics_port),
        working("starting Spark …") as work,
        session.local_session("slackwater-run") as spark,
    ):

        def print_plan(plan: str) -> None:
            with work.pause():
                console.print(plan, highlight=False, markup=False, soft_wrap=True)

        def emit(line: str) -> None:
            with work.pause():
                click.echo(line)

        work.say("starting the query …")
        outcome = run_until_done(spark, spec, emit=emit, on_plan=print_plan, on_progress=work.say, as_json=as_json)
    if as_json:
        click.echo(json.dumps({**outcome.report.as_json(), "interrupted": outcome.interrupted}))
    else:
        console.print(str(outcome.report), highlight=False, markup=False, soft_wrap=True)
    ctx.exit(0 if outcome.report.kept else 1)
