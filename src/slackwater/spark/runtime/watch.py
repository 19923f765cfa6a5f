"""``watch``: a page that shows how the promises of this process are kept, as it happens."""

from __future__ import annotations

from pathlib import Path

from pyspark.sql import SparkSession

from slackwater.spark.runtime.location import location_of
from slackwater.watching.folders import written_folders
from slackwater.watching.page_server import DEFAULT_PORT, PageServer


def watch(
    spark: SparkSession, *, port: int = DEFAULT_PORT, host: str = "127.0.0.1", token: str | None = None
) -> PageServer:
    """Open a live page over the promises of this process; ``.url`` says where, ``.close()`` ends it.

    It runs in a thread of its own and reads what the session writes beside its checkpoints, earlier runs included.
    It listens on loopback; on any other ``host`` it demands a ``token``, which is made if none is given and is part of
    the ``url``. Nothing is loaded from elsewhere, and nothing is sent elsewhere. ``port=0`` takes any free port.
    """
    location = location_of(spark)
    kept = [] if location is None else [location]

    def folders() -> list[Path]:
        return list(dict.fromkeys([*kept, *(f for f in written_folders() if not any(k in f.parents for k in kept))]))

    return PageServer(folders, port=port, host=host, token=token)
