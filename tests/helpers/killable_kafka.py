"""A window query over a topic in a process that a test kills: ``python -m tests.helpers.killable_kafka ROOT BROKER``.

With ``doomed``, its sink writes a micro-batch in which rows were late, creates the file ``hanging``, and waits to be
killed: the results are there, and the micro-batch is not committed.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

from pyspark.sql import DataFrame

import slackwater as sw
from slackwater.spark.command.session import local_session
from tests.helpers.kafka import Broker, connector_settings, stream_of

QUERY = "SELECT COUNT(*) AS n FROM Events [RANGE 10 seconds SLIDE 10 seconds ARRIVAL timestamp DRATIO 1% LATE PANES]"
EACH = 800
"""Messages per micro-batch."""


def main(root: Path, address: str, doomed: bool) -> None:
    def write(result: DataFrame, batch: int) -> None:
        result.persist()
        result.write.mode("overwrite").parquet(str(root / "out" / f"batch={batch}"))
        if doomed and not result.where("late").isEmpty():
            (root / "hanging").touch()
            time.sleep(600)
        result.unpersist()

    with local_session("killable", **connector_settings()) as spark:
        broker = Broker(root, port=int(address.rpartition(":")[2]))
        sw.stream("Events", stream_of(spark, broker, "events", maxOffsetsPerTrigger=EACH), event_time="ts")
        result = sw.sql(spark, QUERY, name="events", location=str(root / "slackwater"))
        writer = result.writeStream.foreachBatch(write).option("checkpointLocation", str(root / "checkpoint"))
        query = writer.trigger(availableNow=True).start()
        query.awaitTermination()
        (root / "report.json").write_text(json.dumps(sw.report(query).as_json()))


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], sys.argv[3:] == ["doomed"])
