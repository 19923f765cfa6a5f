"""A query in a process of its own, to be killed: ``python -m tests.spark.killable ROOT [HANG_AT_BATCH]``.

Each micro-batch's result goes into a folder named after the batch, so that a batch that runs again overwrites its own
result and no other. At HANG_AT_BATCH the process writes its result, says so, and waits to be killed before it commits.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import slackwater as sw
from slackwater.spark.session import local_session
from tests.spark.harness import FileStream, settle


def main(root: Path, hang_at: int | None) -> None:
    conf = {"spark.slackwater.location": str(root / "slackwater"), "spark.sql.shuffle.partitions": "1"}
    with local_session("killable", **conf) as spark:
        run(spark, root, hang_at)


def run(spark: SparkSession, root: Path, hang_at: int | None) -> None:
    def write(result: DataFrame, batch: int) -> None:
        result.write.mode("overwrite").parquet(str(root / "out" / f"batch={batch}"))
        if batch == hang_at:
            (root / "hanging").touch()
            time.sleep(600)

    events = sw.with_drop_ratio(
        FileStream(spark, root / "in").read_stream(), "ts", "5%", arrival="arrived", name="killed", min_wait="1 second"
    )
    query = (
        events.groupBy(F.window("ts", "5 seconds"), "sensor")
        .agg(F.count("*").alias("n"), F.sum("value").alias("sum"))
        .writeStream.foreachBatch(write)
        .option("checkpointLocation", str(root / "checkpoint"))
        .start()
    )
    settle(query)
    report = sw.report(query).as_json()
    marks = [p["eventTime"].get("watermark") for p in query.recentProgress]
    (root / "report.json").write_text(json.dumps({**report, "watermarks": marks}))
    query.stop()


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else None)
