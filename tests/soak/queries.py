"""The queries under test: one for each kind of promise and of window."""

from __future__ import annotations

from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.readwriter import DataStreamWriter

import slackwater as sw
from slackwater.control import shedding
from tests.helpers.controllers import Scripted
from tests.helpers.killable_cluster import overwriting
from tests.helpers.standing import updates
from tests.soak.stream import SCHEMA

_VALUES = "COUNT(*) AS n, SUM(value) AS total"
PANES = f"""SELECT sensor, {_VALUES}
FROM Rows [RANGE 6 seconds SLIDE 2 seconds ARRIVAL arrived DRATIO 5% LATE PANES] GROUP BY sensor"""
PER_ROW = f"""SELECT sensor, {_VALUES}
FROM Rows [RANGE 6 seconds ARRIVAL arrived DRATIO 5% LATE ROWS] GROUP BY sensor"""
KINDS = ("native", "panes", "per_row", "shed", "standing")
IN_FOREACH_BATCH = ("panes", "shed")
"""Their sink is ``foreachBatch``; that of the others is Spark's file sink."""
MAX_FILES = 3
"""A backlog after a restart is read in micro-batches of several files."""


def result(kind: str, spark: SparkSession, root: Path) -> DataFrame:
    """The query of a kind, over the files in ``root``."""
    if kind == "standing":
        standing: DataFrame = updates(spark, root / "standing", name=kind, _limited=False)
        return standing
    read = spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", MAX_FILES)
    events = read.json(str(root / "in"))
    if kind == "native":
        under = sw.with_drop_ratio(events, "ts", "5%", name=kind)
        aggregates = F.count("*").alias("n"), F.sum("value").alias("total")
        return under.groupBy(F.window("ts", "5 seconds"), "sensor").agg(*aggregates)
    if kind == "shed":
        half = sw.Law(Scripted.name, ratios=(0.5,))
        return sw.with_max_delay(events, "1 second", law=half, name=kind)
    sw.stream("Rows", events, event_time="ts")
    return sw.sql(spark, {"panes": PANES, "per_row": PER_ROW}[kind], name=kind)


def writer(kind: str, spark: SparkSession, root: Path) -> DataStreamWriter:
    """The query with its sink and its checkpoint, ready to be started."""
    made = result(kind, spark, root).writeStream.queryName(kind)
    made = made.option("checkpointLocation", str(root / "checkpoints" / kind))
    if kind in IN_FOREACH_BATCH:
        return made.foreachBatch(overwriting(root / "out" / kind))
    return made.format("parquet").option("path", str(root / "out" / kind))


def register() -> None:
    """Make the law of ``shed`` known."""
    shedding.register(Scripted)
