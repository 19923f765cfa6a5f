"""Two promised queries in a process that a test kills: ``python -m tests.helpers.killable_promise ROOT [doomed]``.

``ROOT/setup.json`` has the Spark settings and where the checkpoints are. ``panes`` publishes windows and late panes,
``marked`` every row with the reason why it is late. With ``doomed`` each query stops in one micro-batch, after it has
written its result and before the commit, creates a file in ``hanging``, and waits to be killed.
"""

from __future__ import annotations

import json
import os
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

import slackwater as sw
from slackwater.control.disorder import register
from slackwater.spark.command.session import local_session
from slackwater.spark.runtime.listener import wait_for_batch
from tests.helpers.controllers import Trailing
from tests.helpers.harness import FileStream, heartbeat_read_ms, settle
from tests.helpers.storages import wait_for_storages

PANES = """SELECT sensor, COUNT(*) AS n, SUM(value) AS total
FROM Sensors [RANGE 6 seconds SLIDE 2 seconds ARRIVAL arrived LATE PANES] GROUP BY sensor"""
NAMES = ("panes", "marked")
FIRST_DOOMED = 5
"""From this micro-batch on a heartbeat is in force: the first two are needed to learn the clock."""


def queries(spark: SparkSession, root: Path) -> dict[str, DataFrame]:
    register(Trailing)
    trailing = sw.Method(Trailing.name, wait_ms=2000)
    events = FileStream(spark, root / "in").read_stream()
    sw.stream("Sensors", events, event_time="ts")
    marked = sw.with_drop_ratio(
        events, "ts", 0, arrival="arrived", name="marked", late="problem", invalid="keep", method=trailing
    )
    return {"panes": sw.sql(spark, PANES, name="panes", method=trailing), "marked": marked}


@dataclass
class Sink:
    """Writes the result of each micro-batch into its own folder, so that a repeated one overwrites its own result."""

    spark: SparkSession
    name: str
    root: Path
    doomed: bool
    batches: int = 0

    def write(self, result: DataFrame, batch: int) -> None:
        (query_id,) = (str(query.id) for query in self.spark.streams.active if query.name == self.name)
        if self.batches:  # a micro-batch that is not yet reported would be missing from the ledger after the kill
            wait_for_batch(query_id, batch - 1, timeout_s=60)
            wait_for_storages()
        self.batches += 1
        result.write.mode("overwrite").parquet(str(self.root / "out" / self.name / f"batch={batch}"))
        if self.doomed and batch >= FIRST_DOOMED:
            (self.root / "hanging" / self.name).touch()
            time.sleep(3600)


def main(root: Path, doomed: bool) -> None:
    setup = json.loads((root / "setup.json").read_text())
    conf = {"spark.sql.streaming.noDataProgressEventInterval": "1h", "spark.sql.shuffle.partitions": "1"}
    with local_session("killable", **conf, **setup["conf"]) as spark:
        running = {}
        for name, result in queries(spark, root).items():
            writer = result.writeStream.queryName(name).foreachBatch(Sink(spark, name, root, doomed).write)
            running[name] = writer.option("checkpointLocation", f"{setup['checkpoints']}/{name}").start()
            if not doomed:
                settle(running[name])
        if doomed:
            running["panes"].awaitTermination()
            print(running["panes"].exception(), file=sys.stderr, flush=True)
            os._exit(1)
        reports = {
            name: {**sw.report(query).as_json(), "heartbeat_ms": heartbeat_read_ms(query.lastProgress)}
            for name, query in running.items()
        }
        (root / "reports.json").write_text(json.dumps(reports))
        for query in running.values():
            query.stop()


if __name__ == "__main__":
    main(Path(sys.argv[1]), doomed="doomed" in sys.argv[2:])
