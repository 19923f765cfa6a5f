"""What differs in a session of Spark Connect, where there is neither Py4J nor a SparkContext."""

from __future__ import annotations

import tempfile
import uuid
from pathlib import Path
from weakref import WeakKeyDictionary

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from slackwater.errors import MissingRequirement

_PARALLELISM: WeakKeyDictionary[SparkSession, int] = WeakKeyDictionary()


def is_connect(spark: SparkSession) -> bool:
    """Whether the session is a client of Spark Connect."""
    return type(spark).__module__.startswith("pyspark.sql.connect")


def parallelism(spark: SparkSession) -> int:
    """The number of tasks that Spark runs at a time, by default."""
    if not is_connect(spark):
        return int(spark.sparkContext.defaultParallelism)
    if spark not in _PARALLELISM:
        # Spark splits a range into as many parts; Connect has no other way to ask.
        parts = spark.range(1 << 16).select(F.spark_partition_id().alias("part")).distinct()
        _PARALLELISM[spark] = parts.count()
    return _PARALLELISM[spark]


def require_shared_folder(spark: SparkSession, folder: Path) -> None:
    """Refuse a folder that the server's executors do not see: the client and they exchange control rows through it."""
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile("w", dir=folder, prefix="seen-by-server-") as probe:
        token = uuid.uuid4().hex
        probe.write(token)
        probe.flush()
        Path(probe.name).chmod(0o644)
        try:
            seen = [row.value for row in spark.read.text(Path(probe.name).as_uri()).collect()]
        except PySparkException:
            seen = []
    if seen != [token]:
        raise MissingRequirement(
            "no-shared-location",
            f"the server of this Spark Connect session does not see the folder {folder} of this client",
            "set spark.slackwater.location (or pass location=) to a folder that is mounted at the same path for the "
            "client, the server and its executors, or run the driver itself in a classic session",
        )
