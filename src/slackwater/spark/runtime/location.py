"""Where a promise keeps its files."""

from __future__ import annotations

import hashlib
import re
import tempfile
from pathlib import Path
from urllib.parse import urlsplit
from weakref import WeakKeyDictionary

from pyspark.sql import SparkSession

from slackwater.errors import InvalidOption, MissingRequirement
from slackwater.spark.runtime.connect import is_connect, require_shared_folder
from slackwater.spark.runtime.driver_lines import asks_driver
from slackwater.spark.runtime.hadoop_storage import hadoop_storage
from slackwater.spark.runtime.settings import Setting, setting
from slackwater.spark.worker.mailbox import Mailbox
from slackwater.spark.worker.storage import LocalStorage, Storage

_CHECKPOINTS = "spark.sql.streaming.checkpointLocation"
_TEMPORARY: WeakKeyDictionary[SparkSession, tempfile.TemporaryDirectory[str]] = WeakKeyDictionary()


def mailbox_for(spark: SparkSession, name: str, location: str | None) -> Mailbox:
    """The files of a promise whose plan has a control row.

    What must survive is kept below ``location``, the session's location, or the checkpoints' folder, on any file system
    that Spark can open; without one, in a temporary folder: heartbeat and ledger survive a restart in Spark's
    checkpoint, and what the controller had learned is lost. Executors see none of it, unless micro-batches cannot ask
    the driver: then they read a file, and the folder must be mounted wherever they run.
    """
    if asks_driver(spark):
        return driver_mailbox(spark, name, location)
    chosen = _chosen(spark, name, location)
    if chosen is None:
        if not is_connect(spark):
            _refuse_cluster(spark)
        return _shared(spark, Mailbox(_temporary_folder(spark) / name))
    folder = _mounted_path(chosen)
    if folder is None:
        raise MissingRequirement(
            "no-shared-location",
            f"micro-batches of this session read the control row from a file, and {chosen!r} is not a mounted folder",
            f"pass location= (or set {Setting.LOCATION.value}) as a folder that client, driver and all executors see",
        )
    return _shared(spark, Mailbox(folder / name))


def _shared(spark: SparkSession, mailbox: Mailbox) -> Mailbox:
    if is_connect(spark):
        require_shared_folder(spark, mailbox.folder)
    return mailbox


def driver_mailbox(spark: SparkSession, name: str, location: str | None) -> Mailbox:
    """The files of a promise of which the executors see none."""
    chosen = _chosen(spark, name, location)
    if chosen is None:
        return Mailbox(_temporary_folder(spark) / name)
    if is_connect(spark) and _mounted_path(chosen) is None:
        raise MissingRequirement(
            "no-shared-location",
            f"a client of Spark Connect cannot open {chosen!r}: only the server has its credentials",
            f"pass location= (or set {Setting.LOCATION.value}) as a folder that is mounted here",
        )
    exchange = _temporary_folder(spark) / hashlib.sha256(chosen.encode()).hexdigest()[:8] / name
    return Mailbox(exchange, _storage(spark, chosen, name))


def weights_folder(spark: SparkSession, name: str, location: str | None) -> str:
    """A folder for weights, which the shards of a standing query read with Python; on a cluster they must see it."""
    chosen = _chosen(spark, name, location)
    if chosen is None:
        _refuse_cluster(spark)
        return str(_temporary_folder(spark) / name / "weights")
    folder = _mounted_path(chosen)
    return f"{chosen.rstrip('/')}/{name}/weights" if folder is None else str(folder / name / "weights")


def location_of(spark: SparkSession) -> str | None:
    """The folder of all promises of the session, from its settings; None if they name none."""
    chosen = setting(spark, Setting.LOCATION)
    if chosen is None:
        checkpoints = spark.conf.get(_CHECKPOINTS, None)
        chosen = None if checkpoints is None else checkpoints.rstrip("/") + "/_slackwater"
    return chosen


def mounted_location(spark: SparkSession) -> Path | None:
    """``location_of``, if it is a folder on this machine's file systems."""
    chosen = location_of(spark)
    return None if chosen is None else _mounted_path(chosen)


def _chosen(spark: SparkSession, name: str, location: str | None) -> str | None:
    """The location of a promise; refuses a name or a location that cannot be one."""
    if not re.fullmatch(r"[\w.:-]{1,100}", name):
        raise InvalidOption(
            "invalid-name", f"name={name!r} cannot be a folder's name", "use letters, digits, and any of . : _ -"
        )
    chosen = location_of(spark) if location is None else location
    if chosen is not None and not urlsplit(chosen).scheme and not chosen.startswith("/"):
        raise InvalidOption(
            "invalid-location",
            f"location={chosen!r} is not an absolute path",
            "use an absolute path, or a URI that Spark can open, such as s3a://bucket/folder",
        )
    return chosen


def _storage(spark: SparkSession, location: str, name: str) -> Storage:
    folder = _mounted_path(location)
    if folder is not None:
        return LocalStorage(folder / name)
    return hadoop_storage(spark, f"{location.rstrip('/')}/{name}")


def _mounted_path(location: str) -> Path | None:
    parts = urlsplit(location)
    return Path(parts.path) if parts.scheme in ("", "file") else None


def _refuse_cluster(spark: SparkSession) -> None:
    if not (spark.conf.get("spark.master", None) or "local").startswith("local"):
        raise MissingRequirement(
            "no-shared-location",
            "the executors of this cluster must read a file of the promise, and no folder is given that they see",
            f"set {Setting.LOCATION.value} (or pass location=) to a folder that client, driver and all executors see",
        )


def _temporary_folder(spark: SparkSession) -> Path:
    if spark not in _TEMPORARY:
        _TEMPORARY[spark] = tempfile.TemporaryDirectory(prefix="slackwater-", ignore_cleanup_errors=True)
    return Path(_TEMPORARY[spark].name)
