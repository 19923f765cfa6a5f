"""What a managed service of Spark Connect leaves: ``python -m tests.helpers.scheduled_usages ROOT``.

No jar, no ``sparkContext``, no setting of the session, and no trigger but ``AvailableNow``. Each usage is a job that
runs twice over a stream that has grown meanwhile. Prints one line of JSON per usage, as ``connect_usages`` does.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from pyspark.errors import PySparkAttributeError
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.connect.conf import RuntimeConf
from pyspark.sql.connect.streaming.readwriter import DataStreamWriter

import slackwater as sw
from tests.helpers.connect_usages import MADE, ROWS, run_usages, trailing
from tests.helpers.harness import FileStream, collected, values
from tests.helpers.standing import SCHEMA as PRICES
from tests.helpers.standing import micro_batches, put_weights

HALVES = (MADE[:3], MADE[3:])


def restrict(spark: SparkSession) -> None:
    """Take away what such a service does not offer."""
    writer: Any = DataStreamWriter
    start = writer._start_internal

    def start_internal(self: Any, *arguments: Any, **options: Any) -> Any:
        assert self._write_proto.available_now, "there is no trigger but AvailableNow"
        return start(self, *arguments, **options)

    def refuse(*_: object) -> None:
        raise AssertionError("a setting was changed")

    writer._start_internal = start_internal
    conf: Any = RuntimeConf
    conf.set = refuse
    try:
        _ = spark.sparkContext
    except PySparkAttributeError:
        return
    raise AssertionError("there is a sparkContext")


def run(result: DataFrame, root: Path) -> sw.Report:
    writer = result.writeStream.format("parquet").option("path", str(root / "out"))
    query = writer.option("checkpointLocation", str(root / "checkpoint")).trigger(availableNow=True).start()
    query.awaitTermination()
    return sw.report(query)


def windows_under_a_promise(spark: SparkSession, root: Path) -> None:
    stream = FileStream(spark, root / "in")
    for half in HALVES:
        for batch in half:
            stream.put(batch)
        events = sw.with_drop_ratio(
            stream.read_stream(), "ts", "5%", arrival="arrived", name="scheduled-windows", method=trailing()
        )
        report = run(events.groupBy(F.window("ts", "5 seconds"), "sensor").count(), root)
    assert (report.ledger.input, report.ledger.exact) == (ROWS, True)
    found = collected(spark, root)
    assert found.count() == found.select("window", "sensor").distinct().count() > 20
    assert sum(row["count"] for row in found.collect()) <= report.ledger.on_time


def late_panes(spark: SparkSession, root: Path) -> None:
    stream = FileStream(spark, root / "in")
    text = """SELECT sensor, COUNT(*) AS n, SUM(value) AS total FROM Sensors
        [RANGE 6 seconds SLIDE 2 seconds ARRIVAL arrived LATE PANES] GROUP BY sensor"""
    for half in HALVES:
        for batch in half:
            stream.put(batch)
        sw.stream("Sensors", stream.read_stream(), event_time="ts")
        report = run(sw.sql(spark, text, name="scheduled-panes", method=trailing()), root)
    assert (report.ledger.input, report.ledger.exact) == (ROWS, True)
    found = sw.reconcile(collected(spark, root))
    counts = stream.read_batch().groupBy(F.window("ts", "6 seconds", "2 seconds").alias("w"), "sensor")
    exact = counts.agg(F.count("*").alias("n"), F.sum("value").alias("total"))
    last = sw.on_time(collected(spark, root)).agg(F.max("window_end")).collect()[0][0]
    whole = exact.selectExpr("w.start AS window_start", "w.end AS window_end", "sensor", "n", "total")
    until = F.col("window_end") <= F.lit(last)
    assert values(found.where(until)) == values(whole.where(until).select(*found.columns))


def ordered_rows(spark: SparkSession, root: Path) -> None:
    stream = FileStream(spark, root / "in")
    for half in HALVES:
        for batch in half:
            stream.put(batch)
        rows = sw.ordered(
            stream.read_stream(), event_time="ts", drop_ratio="5%", arrival="arrived", name="scheduled-order",
            method=trailing(),
        )  # fmt: skip
        report = run(rows, root)
    assert (report.ledger.input, report.ledger.exact) == (ROWS, True)
    ids = [row.id for row in collected(spark, root).select("id").collect()]
    assert 0 < len(ids) == len(set(ids)) <= report.ledger.on_time


def with_max_delay(spark: SparkSession, root: Path) -> None:
    stream = FileStream(spark, root / "in")
    for half in HALVES:
        for batch in half:
            stream.put(batch)
        report = run(sw.with_max_delay(stream.read_stream(), "1 hour", name="scheduled-delay"), root)
    ledger = report.timeliness[0].ledger
    assert (ledger.input, ledger.shed, ledger.exact) == (ROWS, 0, True)
    assert values(collected(spark, root).select("id")) == values(stream.read_batch().select("id"))


def standing(spark: SparkSession, root: Path) -> None:
    put_weights(root / "weights")
    stream, ticks = FileStream(spark, root / "in", PRICES), micro_batches(26, warm_up=20)
    for half in (ticks[:3], ticks[3:]):
        for batch in half:
            stream.put(batch)
        answers = sw.standing(
            stream.read_stream(), weights=str(root / "weights"), key="symbol", event_time="ts", value="price",
            query="portfolio", within=5.0, confidence=0.9, shards=2, name="scheduled-standing",
        )  # fmt: skip
        report = run(answers, root)
    ledger = report.precision[0].ledger
    assert (ledger.input, ledger.exact) == (sum(map(len, ticks)), True)
    assert collected(spark, root).select("portfolio").distinct().count() == 6


USAGES = {
    check.__name__: check for check in (windows_under_a_promise, late_panes, ordered_rows, with_max_delay, standing)
}

if __name__ == "__main__":
    run_usages(Path(sys.argv[1]), USAGES, sys.argv[2:], restrict)
