"""Where a promise keeps its files."""

from __future__ import annotations

import re
import tempfile
from pathlib import Path
from urllib.parse import urlsplit
from weakref import WeakKeyDictionary

from pyspark.sql import SparkSession

from slackwater.errors import InvalidOption, MissingRequirement
from slackwater.spark.worker.mailbox import Mailbox

LOCATION = "spark.slackwater.location"
_CHECKPOINTS = "spark.sql.streaming.checkpointLocation"
_TEMPORARY: WeakKeyDictionary[SparkSession, tempfile.TemporaryDirectory[str]] = WeakKeyDictionary()


def mailbox_for(spark: SparkSession, name: str, location: str | None) -> Mailbox:
    """The folder of a promise: below ``location``, the session's location, or where checkpoints go.

    It must be on a file system that the driver and all executors see, as a checkpoint is. On ``local[*]`` a temporary
    folder will do: the heartbeat and the ledger then survive a restart in Spark's checkpoint, what the
    controller had learned does not.
    """
    chosen = location_of(spark) if location is None else _local_path(location)
    if chosen is None and not (spark.conf.get("spark.master", None) or "local").startswith("local"):
        raise MissingRequirement(
            "no-shared-location",
            "the executors of this cluster must see the folder where the promise keeps its files, and none is given",
            f"set {LOCATION} (or pass location=) to a folder that the driver and all executors see, "
            "such as the one that holds the checkpoints",
        )
    return Mailbox(driver_folder(spark, name, location))


def driver_folder(spark: SparkSession, name: str, location: str | None) -> Path:
    """The folder of a promise that the driver alone writes to: a temporary one where nothing else is said."""
    if not re.fullmatch(r"[\w.:-]{1,100}", name):
        raise InvalidOption(
            "invalid-name", f"name={name!r} cannot be a folder's name", "use letters, digits, and any of . : _ -"
        )
    chosen = location_of(spark) if location is None else _local_path(location)
    if chosen is not None:
        return chosen / name
    if spark not in _TEMPORARY:
        _TEMPORARY[spark] = tempfile.TemporaryDirectory(prefix="slackwater-", ignore_cleanup_errors=True)
    return Path(_TEMPORARY[spark].name) / name


def location_of(spark: SparkSession) -> Path | None:
    """Where the session's promises are kept, as far as its settings say."""
    chosen = spark.conf.get(LOCATION, None)
    if chosen is None:
        checkpoints = spark.conf.get(_CHECKPOINTS, None)
        chosen = None if checkpoints is None else checkpoints.rstrip("/") + "/_slackwater"
    return None if chosen is None else _local_path(chosen)


def _local_path(location: str) -> Path:
    parts = urlsplit(location)
    if parts.scheme not in ("", "file") or not parts.path.startswith("/"):
        raise InvalidOption(
            "invalid-location",
            f"location={location!r} is not a folder on a mounted file system",
            "use an absolute path or file:///… that the driver and all executors see",
        )
    return Path(parts.path)
