"""``--watch`` and ``--metrics-port``: the live page and the metrics of a verb that runs a query."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Iterator
from typing import Any

import click
from rich.console import Console

from slackwater.extras import require
from slackwater.watching.ports import DEFAULT_METRICS_PORT, DEFAULT_PAGE_PORT

_PORT = click.IntRange(0, 65535)


def watch_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Decorator that adds the two options; the verb receives ``watch_port`` and ``metrics_port``."""
    for option in (
        click.option(
            "--metrics-port",
            type=_PORT,
            metavar="PORT",
            help=f"Serve Prometheus metrics on this loopback port (usually {DEFAULT_METRICS_PORT}; 0 takes any).",
        ),
        click.option(
            "--watch",
            "watch_port",
            type=_PORT,
            is_flag=False,
            flag_value=DEFAULT_PAGE_PORT,
            metavar="[PORT]",
            help=f"Serve the live page on loopback, on port {DEFAULT_PAGE_PORT} (or a free one) or the one given.",
        ),
    ):
        command = option(command)
    return command


@contextlib.contextmanager
def watched(console: Console, watch_port: int | None, metrics_port: int | None) -> Iterator[None]:
    """Serve the page and the metrics that were asked for while the verb runs, and print their addresses."""
    with contextlib.ExitStack() as served:
        if watch_port is not None:
            require("bokeh", "tornado", purpose="--watch")
            from slackwater.watching.folders import registered_folders
            from slackwater.watching.page_server import PageServer

            quiet_servers()
            page = PageServer(registered_folders, port=None if watch_port == DEFAULT_PAGE_PORT else watch_port)
            served.callback(page.close)
            console.print(f"live page: {page.url}", highlight=False)
        if metrics_port is not None:
            from slackwater.watching.metrics import serve_metrics

            metrics = serve_metrics(metrics_port)
            served.callback(metrics.close)
            console.print(f"metrics:   {metrics.url}", highlight=False)
        yield


def quiet_servers() -> None:
    """Silence the web servers' logs: the terminal shows the verb's own output."""
    for name in ("bokeh", "tornado"):
        logging.getLogger(name).setLevel(logging.CRITICAL)
