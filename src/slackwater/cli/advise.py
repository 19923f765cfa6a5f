"""``slackwater advise``: what to write in ``withWatermark``, from recorded rows, measured on Spark."""

from __future__ import annotations

import datetime as dt
import json
from pathlib import Path

import click
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from slackwater.cli.advise_plot import plot_advice
from slackwater.spark.command.advise import Advice, advise, read_data
from slackwater.spark.command.session import local_session
from slackwater.units import duration_text, percent, ratio

SHOWN_SOURCES = 15


@click.command("advise")
@click.argument("data")
@click.option("--event-time", required=True, metavar="COL", help="When each row happened.")
@click.option("--arrival", required=True, metavar="COL", help="When each row arrived.")
@click.option("--source", metavar="COL[,COL…]", help="Columns that tell sources apart.")
@click.option("--drop-ratio", default="1%", show_default=True, help="The ratio to advise for.")
@click.option("--json", "as_json", is_flag=True, help="The advice as JSON on standard output.")
@click.option("--plot", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE.png", help="Draw it.")
def command(
    data: str, event_time: str, arrival: str, source: str | None, drop_ratio: str, as_json: bool, plot: Path | None
) -> None:
    """Say what wait each drop ratio takes on DATA (Parquet file or directory, CSV, JSON lines).

    Runs as a Spark batch job, so the data may be larger than memory. Prints the curve from drop ratio to wait, how the
    wait changed over time, clocks that look wrong, and a recommendation.

    \b
    Examples:
      slackwater advise events/ --event-time ts --arrival ingested_at
      slackwater advise log.parquet --event-time ts --arrival seen --source host --drop-ratio 0.1% --plot log.png
    """
    promised = ratio(drop_ratio, option="--drop-ratio")
    console = Console(stderr=as_json)
    sources = source.split(",") if source else []
    with console.status("starting Spark …") as status, local_session("slackwater-advise") as spark:
        advice = advise(
            read_data(spark, data),
            event_time,
            arrival,
            promised,
            sources,
            lambda what: status.update(f"measuring: {what} …"),
        )
    if plot is not None:
        plot_advice(plot, data, advice)
    if as_json:
        click.echo(json.dumps(advice.as_json(), indent=2))
        return
    _show(console, advice)
    if plot is not None:
        click.echo(f"picture written to {plot}")


def _table(title: str, *columns: str) -> Table:
    table = Table(title=title, title_justify="left", box=SIMPLE_HEAD, collapse_padding=True, pad_edge=False)
    for column in columns:
        table.add_column(column, justify="right" if column else "left", no_wrap=True)
    return table


def _show(console: Console, advice: Advice) -> None:
    console.print(f"{advice.rows} rows, {advice.invalid_rows} invalid", highlight=False)
    curve = _table("smallest constant wait", "drop ratio", "wait")
    for one, wait in advice.curve:
        mark = "bold" if one == advice.drop_ratio else None
        curve.add_row(percent(one), duration_text(wait), style=mark)
    console.print(curve)
    periods = _table(f"over time, for {percent(advice.drop_ratio)}", "arrived from (UTC)", "rows", "wait", "")
    most = max((period.wait_ms for period in advice.periods), default=0.0)
    for period in advice.periods:
        start = dt.datetime.fromtimestamp(period.start_ms / 1e3, dt.UTC).strftime("%Y-%m-%d %H:%M:%S")
        bar = "█" * round(20 * period.wait_ms / most) if most > 0 else ""
        periods.add_row(start, str(period.rows), duration_text(period.wait_ms), bar)
    console.print(periods)
    if advice.sources:
        shown = advice.sources[:SHOWN_SOURCES]
        title = f"by source: the {len(shown)} slowest of {len(advice.sources)}"
        table = _table(title, "source", "rows", "median", "wait", "ahead")
        for one_source in shown:
            table.add_row(
                one_source.source,
                str(one_source.rows),
                duration_text(one_source.median_ms),
                duration_text(one_source.wait_ms),
                str(one_source.ahead_rows),
            )
        console.print(table)
    for suspicion in advice.suspicions:
        console.print(f"suspicious: {suspicion}", highlight=False)
    console.print(f"\n{advice.recommendation}", highlight=False)
