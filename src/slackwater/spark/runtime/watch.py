"""``watch``: the live page over the promises of this process."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from pyspark.sql import SparkSession

from slackwater.extras import require
from slackwater.spark.runtime.location import mounted_location
from slackwater.watching.folders import registered_folders

if TYPE_CHECKING:
    from slackwater.watching.page_server import PageServer


def watch(
    spark: SparkSession, *, port: int | None = None, host: str = "127.0.0.1", token: str | None = None
) -> PageServer:
    """Open a live page over the promises of this process; ``.url`` is its address, ``.close()`` ends it.

    The page runs in its own thread. It reads the files that the session writes beside its checkpoints, including those
    of earlier runs. It loads nothing from other servers and sends nothing to them. It needs the extra ``watch``.

    ``host`` is the address to listen on. Off loopback the page requires a ``token``; if you give none, one is made. The
    token is part of ``url``. Without ``port`` it is 4141, or a free one if that is taken; 0 takes any.
    """
    require("bokeh", "tornado", purpose="the live page")
    from slackwater.watching.page_server import PageServer

    location = mounted_location(spark)
    kept = [] if location is None else [location]

    def folders() -> list[Path]:
        return list(dict.fromkeys([*kept, *(f for f in registered_folders() if not any(k in f.parents for k in kept))]))

    return PageServer(folders, port=port, host=host, token=token)
