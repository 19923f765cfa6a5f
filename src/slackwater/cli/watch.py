"""``slackwater watch``: a live page over running queries, in a process of its own."""

from __future__ import annotations

import contextlib
import json
import time
from pathlib import Path

import click
from rich.console import Console
from rich.table import Table

from slackwater.cli.watched import METRICS_PORT, PAGE_PORT, quiet_servers
from slackwater.watching.folders import Folders, temporary_folders
from slackwater.watching.report_text import series_json
from slackwater.watching.series import Series
from slackwater.watching.verdict import clock_text, verdict


@click.command("watch")
@click.argument("locations", nargs=-1, type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option(
    "--port", type=click.IntRange(0, 65535), default=PAGE_PORT, show_default=True, help="Of the page; 0: any."
)
@click.option("--host", default="127.0.0.1", show_default=True, help="Off loopback the page demands a token.")
@click.option("--token", help="The token to demand; off loopback one is made if none is given.")
@click.option(
    "--metrics-port",
    type=click.IntRange(0, 65535),
    metavar="PORT",
    help=f"Serve metrics to Prometheus too ({METRICS_PORT} is usual).",
)
@click.option("--once", is_flag=True, help="Print how the promises stand, and end: 1 if one is broken.")
@click.option("--json", "as_json", is_flag=True, help="With --once: as JSON on standard output.")
@click.pass_context
def command(
    ctx: click.Context,
    locations: tuple[Path, ...],
    port: int,
    host: str,
    token: str | None,
    metrics_port: int | None,
    once: bool,
    as_json: bool,
) -> None:
    """Watch running queries: is each promise kept, by how much, since when?

    LOCATIONS are the folders where promises are kept: what was given as location= or spark.slackwater.location, or a
    checkpoint. Without one, the queries of this machine that have no location of their own. The page updates by
    itself; Ctrl-C ends it, and no query minds.

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
        seen = Folders(folders).look()
        _print(seen, as_json)
        ctx.exit(1 if any(series.kept is False for series in seen) else 0)
    from slackwater.watching.metrics import MetricsServer
    from slackwater.watching.page_server import PageServer

    quiet_servers()
    console = Console(stderr=True)
    with contextlib.ExitStack() as served:
        page = PageServer(folders, port=port, host=host, token=token)
        served.callback(page.close)
        console.print(f"live page: {page.url}  (Ctrl-C ends it)", highlight=False, soft_wrap=True)
        if metrics_port is not None:
            metrics = MetricsServer(Folders(folders).look, metrics_port, host)
            served.callback(metrics.close)
            console.print(f"metrics:   {metrics.url}", highlight=False)
        with contextlib.suppress(KeyboardInterrupt):
            while True:
                time.sleep(3600)


def _print(seen: list[Series], as_json: bool) -> None:
    if as_json:
        click.echo(
            json.dumps(
                [
                    {
                        "query": s.about.query,
                        "promise": s.about.promise,
                        "kept": s.kept,
                        "ended": s.ended,
                        "ledger": s.ledger.as_json(),
                        "recent": series_json(s),
                    }
                    for s in seen
                ],
                indent=2,
            )
        )
        return
    if not seen:
        click.echo("No promise has been heard of yet. Start one with: slackwater demo", err=True)
        return
    table = Table()
    for name in ("query", "promise", "", "realised", "last 5 min", "since", "state"):
        table.add_column(name)
    for series in seen:
        stands = verdict(series)
        since = "" if stands.since_ms is None else clock_text(stands.since_ms)
        recently = stands.recently.removesuffix(" in the last 5 min")
        told = (stands.promised, stands.word, stands.realised, recently, since, series.ended or "running")
        table.add_row(series.about.query, *told)
    Console().print(table)
