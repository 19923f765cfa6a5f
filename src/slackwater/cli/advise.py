"""``slackwater advise``: recommend a watermark delay from recorded rows, measured with Spark."""

from __future__ import annotations

import datetime as dt
import json
from pathlib import Path
from typing import TYPE_CHECKING

import click
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from slackwater.cli.packages import package_option
from slackwater.cli.plot_file import require_plot_file
from slackwater.cli.progress import working
from slackwater.errors import InvalidOption
from slackwater.files import common_format, is_remote
from slackwater.spark.command.columns import columns_named, parquet_dataset
from slackwater.spark.command.kafka_address import is_kafka
from slackwater.spark.command.kafka_source import KafkaSource
from slackwater.units import duration_text, percent, ratio

if TYPE_CHECKING:
    from slackwater.spark.command.advise import Advice

SHOWN_SOURCES = 15


@click.command("advise")
@click.argument("data")
@click.option("--event-time", required=True, metavar="COL", help="Column with the event time of each row.")
@click.option("--arrival", required=True, metavar="COL", help="Column with the arrival time of each row.")
@click.option("--source", metavar="COL[,COL…]", help="Columns that identify the source of a row.")
@click.option("--schema", help="Columns of Kafka values, such as 'ts TIMESTAMP, value DOUBLE'.")
@package_option
@click.option("--drop-ratio", default="1%", show_default=True, help="The drop ratio to recommend a wait for.")
@click.option("--json", "as_json", is_flag=True, help="Print the advice as JSON on standard output.")
@click.option(
    "--plot", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE.png", help="Write a plot to this file."
)
def command(
    data: str,
    event_time: str,
    arrival: str,
    source: str | None,
    schema: str | None,
    packages: tuple[str, ...],
    drop_ratio: str,
    as_json: bool,
    plot: Path | None,
) -> None:
    """Measure the wait that each drop ratio needs on DATA: Parquet, CSV with a header, JSON lines, or Kafka topics.

    DATA is a file, a folder with files of one format, a pattern such as 'in/*.json.gz', or kafka://HOST:PORT/TOPIC.

    Runs as a Spark batch job, so the data may be larger than memory. Prints the wait for each drop ratio, how the wait
    changed over time, clocks that look wrong, and a recommendation.

    \b
    Examples:
      slackwater advise events/ --event-time ts --arrival ingested_at
      slackwater advise log.parquet --event-time ts --arrival seen --source host --drop-ratio 0.1% --plot log.png
      slackwater advise kafka://localhost:9092/readings --schema 'ts TIMESTAMP' --event-time ts --arrival timestamp
    """
    sources = source.split(",") if source else []
    promised = ratio(drop_ratio, option="--drop-ratio")
    require_plot_file(plot)
    topics = KafkaSource.parse("DATA", data, schema) if is_kafka(data) else None
    if topics is not None:
        topics.check()
    elif schema is not None:
        raise InvalidOption("option-not-used", "--schema has no effect on files", "leave it out")
    elif not is_remote(data) and common_format(data, "") == "parquet":
        columns_named(parquet_dataset(data).schema.names, [event_time, arrival, *sources])
    from slackwater.spark.command.advise import advise, read_data  # imports pyspark
    from slackwater.spark.command.session import local_session

    console = Console(stderr=as_json)
    with working("starting Spark …") as work, local_session("slackwater-advise", packages) as spark:
        advice = advise(
            read_data(spark, data) if topics is None else topics.read_backlog(spark),
            event_time,
            arrival,
            promised,
            sources,
            lambda stage: work.say(f"measuring: {stage} …"),
        )
    if plot is not None:
        from slackwater.cli.advise_plot import plot_advice

        plot_advice(plot, data, advice)
    if as_json:
        click.echo(json.dumps(advice.as_json(), indent=2))
        return
    _print_advice(console, advice)
    if plot is not None:
        click.echo(f"plot written to {plot}")


def _table(title: str, *columns: str) -> Table:
    table = Table(title=title, title_justify="left", min_width=len(title), box=SIMPLE_HEAD, pad_edge=False)
    table.collapse_padding = True
    for column in columns:
        table.add_column(column, justify="right" if column else "left", no_wrap=True)
    return table


def _print_advice(console: Console, advice: Advice) -> None:
    console.print(f"{advice.rows} rows, {advice.invalid_rows} invalid", highlight=False)
    curve = _table("smallest constant wait", "drop ratio", "wait")
    for drop_ratio, wait_ms in advice.curve:
        style = "bold" if drop_ratio == advice.drop_ratio else None
        curve.add_row(percent(drop_ratio), duration_text(wait_ms), style=style)
    console.print(curve)
    periods = _table(f"over time, for {percent(advice.drop_ratio)}", "arrived from (UTC)", "rows", "wait", "")
    longest_ms = max((period.wait_ms for period in advice.periods), default=0.0)
    for period in advice.periods:
        start = dt.datetime.fromtimestamp(period.start_ms / 1e3, dt.UTC).strftime("%Y-%m-%d %H:%M:%S")
        bar = "█" * round(20 * period.wait_ms / longest_ms) if longest_ms > 0 else ""
        periods.add_row(start, str(period.rows), duration_text(period.wait_ms), bar)
    console.print(periods)
    if advice.sources:
        shown = advice.sources[:SHOWN_SOURCES]
        title = f"by source: the {len(shown)} slowest of {len(advice.sources)}"
        table = _table(title, "source", "rows", "median", "wait", "ahead")
        for source in shown:
            table.add_row(
                source.source,
                str(source.rows),
                duration_text(source.median_ms),
                duration_text(source.wait_ms),
                str(source.ahead_rows),
            )
        console.print(table)
    for suspicion in advice.suspicions:
        console.print(f"suspicious: {suspicion}", highlight=False)
    console.print(f"\n{advice.recommendation}", highlight=False)
