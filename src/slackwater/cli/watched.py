"""``--watch`` and ``--metrics-port``: what a verb that runs a query can show of it."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Iterator
from typing import Any

import click
from rich.console import Console

PAGE_PORT = 4141
METRICS_PORT = 9464
_PORT = click.IntRange(0, 65535)


def watch_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """The two options; the verb takes ``watch_port`` and ``metrics_port``."""
    for option in (
        click.option(
            "--metrics-port",
            type=_PORT,
            metavar="PORT",
            help=f"Serve metrics to Prometheus on this port of loopback ({METRICS_PORT} is usual; 0 takes any).",
        ),
        click.option(
            "--watch",
            "watch_port",
            type=_PORT,
            is_flag=False,
            flag_value=PAGE_PORT,
            metavar="[PORT]",
            help=f"Show a live page on loopback, on port {PAGE_PORT} or the one given.",
        ),
    ):
        command = option(command)
    return command


@contextlib.contextmanager
def watched(console: Console, watch_port: int | None, metrics_port: int | None) -> Iterator[None]:
    """Serve what was asked for while the verb runs, and say where."""
    with contextlib.ExitStack() as served:
        if watch_port is not None:
            from slackwater.watching.folders import written_folders
            from slackwater.watching.page_server import PageServer

            quiet_servers()
            page = PageServer(written_folders, port=watch_port)
            served.callback(page.close)
            console.print(f"live page: {page.url}", highlight=False)
        if metrics_port is not None:
            from slackwater.watching.metrics import serve_metrics

            metrics = serve_metrics(metrics_port)
            served.callback(metrics.close)
            console.print(f"metrics:   {metrics.url}", highlight=False)
        yield


def quiet_servers() -> None:
    """What a web server logs is not for a terminal that shows something else."""
    for name in ("bokeh", "tornado"):
        logging.getLogger(name).setLevel(logging.CRITICAL)
