"""``slackwater run``: a query over a stream, from the command line."""

from __future__ import annotations

import json
import time
from pathlib import Path

import click
from rich.console import Console

from slackwater.cli.watched import watch_options, watched
from slackwater.errors import InvalidOption
from slackwater.language import parse
from slackwater.plan import explain
from slackwater.units import duration_ms


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
@click.option(
    "--checkpoint", type=click.Path(path_type=Path), help="Where Spark keeps its place; else a temporary folder."
)
@click.option(
    "--for", "duration", default=None, help="Stop after this time ('60 s'); else when nothing comes any more."
)
@watch_options
@click.option("--json", "as_json", is_flag=True, help="The report as JSON on standard output.")
@click.pass_context
def command(
    ctx: click.Context,
    file: Path,
    source: str,
    schema: str | None,
    time_column: str | None,
    sink: str,
    checkpoint: Path | None,
    duration: str | None,
    watch_port: int | None,
    metrics_port: int | None,
    as_json: bool,
) -> None:
    """Run the query in FILE on a local Spark and report its promise.

    \b
    Examples:
      slackwater run peaks.sql --source generator:1000 --for '30 s'
      slackwater run peaks.sql --source json:in --schema 'ts TIMESTAMP, value DOUBLE' --sink parquet:out
      slackwater run peaks.sql --source replay:recorded.parquet --watch --metrics-port 9464
    """
    from slackwater.spark.runner import Sink, Source, run_text  # Spark is loaded only when it is needed
    from slackwater.spark.session import local_session

    text = file.read_text(encoding="utf-8")
    table = _stream_name(text)
    limit_s = None if duration is None else duration_ms(duration, option="--for") / 1000
    came_from, goes_to = Source.of(source, schema), Sink.of(sink)
    console = Console(stderr=True)
    started = time.monotonic()
    with (
        watched(console, watch_port, metrics_port),
        console.status("starting Spark …") as status,
        local_session("slackwater-run") as spark,
    ):
        outcome = run_text(
            spark,
            text,
            table=table,
            source=came_from,
            time=time_column,
            sink=goes_to,
            checkpoint=checkpoint,
            limit_s=limit_s,
            tell=lambda rows: status.update(f"{rows:,} rows, {time.monotonic() - started:.0f} s"),
        )
    if as_json:
        click.echo(json.dumps(outcome.report.as_json(), indent=2))
    else:
        console.print(explain(outcome.plan), highlight=False, markup=False)
        console.print(str(outcome.report), highlight=False, markup=False)
    ctx.exit(0 if outcome.report.kept else 1)


def _stream_name(text: str) -> str:
    windowed = parse(text).windowed()
    if len(windowed) != 1:
        raise InvalidOption("no-window", "the query has no stream with a window", "write FROM name [RANGE 5 minutes]")
    return str(windowed[0][0].name)
