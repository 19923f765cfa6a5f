"""The folder in which a promise keeps its files."""

from __future__ import annotations

import re
import tempfile
from pathlib import Path
from urllib.parse import urlsplit
from weakref import WeakKeyDictionary

from pyspark.sql import SparkSession

from slackwater.errors import InvalidOption, MissingRequirement
from slackwater.spark.runtime.settings import Setting, setting
from slackwater.spark.worker.mailbox import Mailbox

_CHECKPOINTS = "spark.sql.streaming.checkpointLocation"
_TEMPORARY: WeakKeyDictionary[SparkSession, tempfile.TemporaryDirectory[str]] = WeakKeyDictionary()


def mailbox_for(spark: SparkSession, name: str, location: str | None) -> Mailbox:
    """The folder of a promise: below ``location``, the session's location, or the checkpoints' folder.

    The driver and all executors must see it. On ``local[*]`` a temporary folder is enough: heartbeat and ledger survive
    a restart in Spark's checkpoint, and only what the controller had learned is lost.
    """
    chosen = location_of(spark) if location is None else _local_path(location)
    if chosen is None and not (spark.conf.get("spark.master", None) or "local").startswith("local"):
        raise MissingRequirement(
            "no-shared-location",
            "a promise on a cluster needs a folder that the executors see, and none is given",
            f"set {Setting.LOCATION.value} (or pass location=) to a folder that the driver and all executors see, "
            "such as the one that holds the checkpoints",
        )
    return Mailbox(driver_folder(spark, name, location))


def driver_folder(spark: SparkSession, name: str, location: str | None) -> Path:
    """The folder of a promise that only the driver uses; temporary if neither argument nor session names one."""
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
    """The folder of all promises of the session, from its settings; None if they name none."""
    chosen = setting(spark, Setting.LOCATION)
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
