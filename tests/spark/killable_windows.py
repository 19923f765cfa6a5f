"""Windows in a process of their own, to be killed: ``-m tests.spark.killable_windows ROOT KIND [HANG_AT_BATCH]``.

As in ``killable``: a batch's result goes into a folder of its own, and at HANG_AT_BATCH the process waits to be killed
between writing and committing it.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

import slackwater as sw
from slackwater.spark.session import local_session
from tests.spark.harness import FileStream, settle

QUERIES = {
    "native": "SELECT sensor, COUNT(*) AS n, SUM(value) AS total FROM Sensors "
    "[RANGE 6 seconds SLIDE 2 seconds ARRIVAL arrived DRATIO 5% LATE PANES] GROUP BY sensor",
    "ordered": "SELECT sensor, COUNT(*) AS n, SUM(value) AS total FROM Sensors "
    "[RANGE 6 seconds ARRIVAL arrived SLACK 5 seconds] GROUP BY sensor",
}


def main(root: Path, kind: str, hang_at: int | None) -> None:
    conf = {"spark.slackwater.location": str(root / "slackwater"), "spark.sql.shuffle.partitions": "1"}
    with local_session("killable", **conf) as spark:
        run(spark, root, kind, hang_at)


def run(spark: SparkSession, root: Path, kind: str, hang_at: int | None) -> None:
    def write(result: DataFrame, batch: int) -> None:
        result.write.mode("overwrite").parquet(str(root / "out" / f"batch={batch}"))
        if batch == hang_at:
            (root / "hanging").touch()
            time.sleep(600)

    sw.stream("Sensors", FileStream(spark, root / "in").read_stream(), time="ts")
    query = (
        sw.sql(spark, QUERIES[kind], name="killed", shards=1)
        .writeStream.foreachBatch(write)
        .option("checkpointLocation", str(root / "checkpoint"))
        .start()
    )
    settle(query)
    report = sw.report(query).as_json()
    (root / "report.json").write_text(json.dumps(report))
    query.stop()


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]) if len(sys.argv) > 3 else None)
