"""``slackwater watch``: the live page over running queries, in its own process."""

from __future__ import annotations

import contextlib
import json
import time
from pathlib import Path

import click
from rich.console import Console
from rich.table import Table

from slackwater.cli.mounted_folder import MountedFolder
from slackwater.cli.watched import quiet_servers
from slackwater.extras import require
from slackwater.watching.folders import SeriesFinder, temporary_folders
from slackwater.watching.ports import DEFAULT_METRICS_PORT, DEFAULT_PAGE_PORT
from slackwater.watching.report_text import series_json
from slackwater.watching.series import Series
from slackwater.watching.verdict import clock_text, verdict


@click.command("watch")
@click.argument("locations", nargs=-1, type=MountedFolder())
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    help=f"Port of the page; 0 takes any free one.  [default: {DEFAULT_PAGE_PORT}, or a free one if that is taken]",
)
@click.option(
    "--host", default="127.0.0.1", show_default=True, help="Address to listen on; off loopback a token is required."
)
@click.option("--token", help="The token to require; off loopback one is made if you give none.")
@click.option(
    "--metrics-port",
    type=click.IntRange(0, 65535),
    metavar="PORT",
    help=f"Also serve Prometheus metrics on this port (usually {DEFAULT_METRICS_PORT}).",
)
@click.option(
    "--once",
    is_flag=True,
    help="Print the state of the promises and exit: 1 if one is broken or has published nothing, if its query failed, "
    "or if LOCATIONS hold no promise.",
)
@click.option("--json", "as_json", is_flag=True, help="Like --once, as JSON on standard output.")
@click.pass_context
def command(
    ctx: click.Context,
    locations: tuple[Path, ...],
    port: int | None,
    host: str,
    token: str | None,
    metrics_port: int | None,
    once: bool,
    as_json: bool,
) -> None:
    """Watch running queries: is each promise kept, by how much, since when?

    LOCATIONS are the folders that queries write to: the value of location= or spark.slackwater.location, or a
    checkpoint. Without LOCATIONS, the page shows this machine's queries that were started without a location. The page
    updates itself. Ctrl-C ends it; the queries run on.

    \b
    Examples:
      slackwater watch
      slackwater watch /data/checkpoints --port 8080
      slackwater watch /data/checkpoints --host 0.0.0.0
      slackwater watch --once --json | jq '.[].kept'
    """

    def folders() -> list[Path]:
        return list(locations) or temporary_folders()

    if once or as_json:
        found = SeriesFinder(folders).find()
        _print_series(found, as_json)
        found_nothing = bool(locations) and not found
        ctx.exit(1 if found_nothing or any(_has_failed(series) for series in found) else 0)
    require("bokeh", "tornado", "prometheus_client", purpose="slackwater watch")
    from slackwater.watching.metrics_server import MetricsServer
    from slackwater.watching.page_server import PageServer

    quiet_servers()
    console = Console(stderr=True)
    with contextlib.ExitStack() as served:
        page = PageServer(folders, port=port, host=host, token=token)
        served.callback(page.close)
        console.print(f"live page: {page.url}  (Ctrl-C ends it)", highlight=False, soft_wrap=True)
        if metrics_port is not None:
            metrics = MetricsServer(SeriesFinder(folders).find, metrics_port, host)
            served.callback(metrics.close)
            console.print(f"metrics:   {metrics.url}", highlight=False)
        with contextlib.suppress(KeyboardInterrupt):
            while True:
                time.sleep(3600)


def _has_failed(series: Series) -> bool:
    """Whether a promise is broken, its query failed, or it has published nothing."""
    failed = series.ended is not None and series.ended.startswith("failed")
    return failed or series.kept is False or (series.kept is None and series.published is False)


def _print_series(found: list[Series], as_json: bool) -> None:
    if as_json:
        click.echo(
            json.dumps(
                [
                    {
                        "query": s.about.query,
                        "promise": s.about.promise,
                        "kept": s.kept,
                        "verdict": verdict(s).word.lower(),
                        "ended": s.ended,
                        "ledger": s.ledger.as_json(),
                        "recent": series_json(s),
                    }
                    for s in found
                ],
                indent=2,
            )
        )
        return
    if not found:
        click.echo("No query with a promise was found. Start one with: slackwater demo", err=True)
        return
    table = Table()
    for name in ("query", "promise", "", "realised", "last 5 min", "since", "state"):
        table.add_column(name)
    for series in found:
        state = verdict(series)
        since = "" if state.since_ms is None else clock_text(state.since_ms)
        recently = state.recently.removesuffix(" in the last 5 min")
        cells = (state.promised, state.word, state.realised, recently, since, series.ended or "running")
        table.add_row(series.about.query, *cells)
    Console().print(table)
