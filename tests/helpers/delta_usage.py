"""A promise over a Delta table and into Delta tables: ``python -m tests.helpers.delta_usage ROOT JAR…``.

A process of its own, since Delta is loaded when Spark starts. It runs the job twice, and checks both tables.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.query import StreamingQuery

import slackwater as sw
from slackwater.control.ledger import Ledger
from slackwater.spark.command.session import local_session
from tests.helpers.controllers import registered
from tests.helpers.harness import FileStream, batches, promise_of, same_rows, settle
from tests.helpers.judged import counts_of_closed_windows, late_ids

MADE = batches(seed=11, count=6)
ROWS = sum(map(len, MADE))
DELTA = {
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
}


def counted(stream: FileStream, name: str) -> DataFrame:
    method = sw.Method("test-trailing", wait_ms=3000.0)
    events = sw.with_drop_ratio(stream.read_stream(), "ts", "5%", arrival="arrived", name=name, method=method)
    return events.groupBy(F.window("ts", "5 seconds"), "sensor").count()


def merging(spark: SparkSession, table: str) -> Any:
    """A sink that merges each micro-batch into a table, so that a repeated one changes nothing."""
    from delta.tables import DeltaTable  # type: ignore[import-not-found, unused-ignore]  # only there for its own test

    def merge(batch: DataFrame, _: int) -> None:
        same = "old.window = new.window AND old.sensor = new.sensor"
        into = DeltaTable.forPath(spark, table).alias("old").merge(batch.alias("new"), same)
        into.whenMatchedUpdateAll().whenNotMatchedInsertAll().execute()

    return merge


def start(spark: SparkSession, stream: FileStream, root: Path, name: str) -> StreamingQuery:
    writer = counted(stream, name).writeStream.option("checkpointLocation", str(root / "checkpoints" / name))
    if name == "merged":
        return writer.foreachBatch(merging(spark, str(root / name))).start()
    return writer.format("delta").start(str(root / name))


def main(root: Path, jars: list[str]) -> None:
    with registered(), local_session("delta", jars, **DELTA) as spark:
        stream = FileStream(spark, root / "in")
        empty = "window struct<start timestamp, end timestamp>, sensor string, count long"
        spark.createDataFrame([], empty).write.format("delta").save(str(root / "merged"))
        progress: dict[str, list[Any]] = {"appended": [], "merged": []}
        for half in (MADE[:3], MADE[3:]):
            running = {}
            for name in progress:
                running[name] = start(spark, stream, root, name)
                settle(running[name])
            for batch in half:
                stream.put(batch)
                for query in running.values():
                    settle(query)
            ledgers = {name: promise_of(query).ledger for name, query in running.items()}
            for name, query in running.items():
                progress[name] += query.recentProgress
                query.stop()
        for name in progress:
            late = len(late_ids(progress[name], MADE))
            assert late and ledgers[name] == Ledger(on_time=ROWS - late, late=late), (name, ledgers[name])
            found = spark.read.format("delta").load(str(root / name))
            exact = counts_of_closed_windows(progress[name], MADE, stream.read_batch())
            assert found.count() > 10
            same_rows(found.select(*exact.columns), exact)
            print(name, found.count(), ledgers[name], flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
