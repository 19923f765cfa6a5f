"""Every public name in Spark Connect, one after the other: ``python -m tests.helpers.connect_usages ROOT``.

Prints one line of JSON per usage: its name, and what went wrong (null: nothing). It starts a server in this process,
which the client reaches through its own protocol on the loopback interface.
"""

from __future__ import annotations

import json
import os
import sys
import traceback
import urllib.request
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.query import StreamingQuery

import slackwater as sw
from slackwater.control.disorder import register
from slackwater.errors import InvalidOption, MissingRequirement
from tests.helpers.controllers import Trailing
from tests.helpers.doc_blocks import ROOT, blocks_of
from tests.helpers.harness import FileStream, batches, collected, settle, start, values
from tests.helpers.judged import late_ids
from tests.helpers.standing import SCHEMA as PRICES
from tests.helpers.standing import micro_batches, put_weights

MADE = batches(seed=3, count=6)
ROWS = sum(map(len, MADE))
USAGES: dict[str, Callable[[SparkSession, Path], None]] = {}


def usage(function: Callable[[SparkSession, Path], None]) -> Callable[[SparkSession, Path], None]:
    USAGES[function.__name__] = function
    return function


def trailing() -> sw.Method:
    assert Trailing.name in sw.method_names()
    return sw.Method(Trailing.name, wait_ms=2000.0)


def put_all(spark: SparkSession, root: Path) -> FileStream:
    stream = FileStream(spark, root / "in")
    for batch in MADE:
        stream.put(batch)
    return stream


def to_the_end(query: StreamingQuery) -> sw.Report:
    settle(query)
    report = sw.report(query)
    query.stop()
    return report


def ledger_of(report: sw.Report) -> tuple[int, int, bool]:
    ledger = report.ledger
    return ledger.input, ledger.late, ledger.as_json()["exact"]


def closed(windows: DataFrame, heartbeat_ms: float) -> DataFrame:
    return windows.where(F.unix_millis("window_end") <= F.lit(int(heartbeat_ms)))


@usage
def with_drop_ratio(spark: SparkSession, root: Path) -> None:
    """Each micro-batch is judged by Spark's own watermark, and late rows are counted exactly."""
    stream = FileStream(spark, root / "in")
    events = sw.with_drop_ratio(
        stream.read_stream(), "ts", "5%", arrival="arrived", name="judged", method=trailing(), late="problem"
    )
    query = start(events.withColumn("k", F.col("id") % 2).dropDuplicatesWithinWatermark(["id"]), root)
    for batch in MADE:
        stream.put(batch)
        settle(query)
    late = len(late_ids(query.recentProgress, MADE))
    assert (ledger_of(to_the_end(query)), late > 0) == ((ROWS, late, True), True)
    assert collected(spark, root).where("problem = 'late'").count() <= late


@usage
def sql_and_stream_and_reconcile(spark: SparkSession, root: Path) -> None:
    """Late panes and windows are together exactly those of a batch job."""
    stream = put_all(spark, root)
    sw.stream("Sensors", stream.read_stream(), event_time="ts")
    text = """SELECT sensor, COUNT(*) AS n, SUM(value) AS total FROM Sensors
        [RANGE 6 seconds SLIDE 2 seconds ARRIVAL arrived LATE PANES] GROUP BY sensor"""
    query = start(sw.sql(spark, text, name="panes", method=trailing()), root)
    report = to_the_end(query)
    published = collected(spark, root)
    found = sw.reconcile(published)
    heartbeat = report.completeness[0].heartbeat
    assert heartbeat is not None and sw.on_time(published).count() > 20
    exact = (
        stream.read_batch()
        .groupBy(F.window("ts", "6 seconds", "2 seconds").alias("w"), "sensor")
        .agg(F.count("*").alias("n"), F.sum("value").alias("total"))
        .select(F.col("w.start").alias("window_start"), F.col("w.end").alias("window_end"), "sensor", "n", "total")
    )
    last = found.agg(F.max("window_end")).collect()[0][0]
    assert values(found) == values(exact.where(F.col("window_end") <= F.lit(last)).select(*found.columns))
    assert report.ledger.input == ROWS


@usage
def late_rows_and_on_time(spark: SparkSession, root: Path) -> None:
    stream = FileStream(spark, root / "in")
    sw.stream("Sensors", stream.read_stream(), event_time="ts")
    text = "SELECT COUNT(*) AS n FROM Sensors [RANGE 4 seconds ARRIVAL arrived LATE ROWS]"
    query = start(sw.sql(spark, text, name="late-rows", method=trailing()), root)
    for batch in MADE:
        stream.put(batch)
        settle(query)
    report = to_the_end(query)
    published = collected(spark, root)
    counted = sw.late_rows(published).count(), report.ledger.late
    assert counted[0] == counted[1] > 0, counted
    assert sw.on_time(published).count() > 0


@usage
def window(spark: SparkSession, root: Path) -> None:
    """Aggregates as Columns have the same text as in a classic session."""
    stream = put_all(spark, root)
    windowed = sw.window(
        stream.read_stream(), range="6 seconds", slide="2 seconds", event_time="ts", arrival="arrived", name="windowed",
        method=trailing(),
    )  # fmt: skip
    aggregates = F.max("value").alias("peak"), F.sum(F.col("value") * 2 + 1).alias("twice"), "COUNT(*) AS n"
    result = windowed.groupBy("sensor").agg(*aggregates)
    assert result.columns == ["window_start", "window_end", "sensor", "peak", "twice", "n"]
    assert ledger_of(to_the_end(start(result, root)))[0] == ROWS
    assert collected(spark, root).where("peak IS NOT NULL AND twice >= n").count() > 20
    try:
        windowed.agg(F.max(F.when(F.col("value") > 1, 1)).alias("x"))
    except InvalidOption as refused:
        assert refused.condition == "column-without-text"
    else:
        raise AssertionError("a Column without a text was taken")


@usage
def ordered(spark: SparkSession, root: Path) -> None:
    stream = put_all(spark, root)
    rows = sw.ordered(
        stream.read_stream(), event_time="ts", drop_ratio="5%", arrival="arrived", name="in-order", method=trailing()
    )
    report = to_the_end(start(rows, root))
    passed = stream.read_batch().where(F.col("ts") < F.lit(report.completeness[0].heartbeat))
    assert collected(spark, root).count() == passed.count() - report.ledger.late > 0


@usage
def with_max_delay_and_retarget_and_estimates(spark: SparkSession, root: Path) -> None:
    stream = put_all(spark, root)
    (law,) = (sw.Law(name) for name in sw.law_names() if name == "ctrl-batch")
    events = sw.with_max_delay(stream.read_stream(), "1 hour", name="delayed", law=law)
    counted = events.groupBy("sensor").agg(
        sw.estimated_count().alias("n"),
        sw.estimated_sum("value").alias("total"),
        sw.estimated_avg("value").alias("mean"),
        sw.shed_share().alias("shed"),
        (sw.count_error() + sw.sum_error("value") + sw.avg_error("value")).alias("errors"),
    )
    folder = root / "checkpoint"
    writer = counted.writeStream.outputMode("complete").format("memory").queryName("estimates")
    query = writer.option("checkpointLocation", str(folder)).start()
    settle(query)
    sw.retarget(query, "2 hours")
    found = spark.table("estimates").select("sensor", "n", "total", "mean", "shed", "errors")
    exact = stream.read_batch().groupBy("sensor").agg(
        F.count("*").cast("double").alias("n"), F.sum("value").alias("total"), F.avg("value").alias("mean"),
        F.lit(0.0).alias("shed"), F.lit(0.0).alias("errors"),
    )  # fmt: skip
    assert values(found) == values(exact)
    (delay,) = sw.report(query).timeliness
    query.stop()
    assert (delay.ledger.input, delay.ledger.shed, delay.promise.max_delay_s) == (ROWS, 0, 7200.0)


@usage
def standing(spark: SparkSession, root: Path) -> None:
    put_weights(root / "weights")
    stream = FileStream(spark, root / "in", PRICES)
    for batch in micro_batches(23, warm_up=20):
        stream.put(batch)
    answers = sw.standing(
        stream.read_stream(),
        weights=spark.read.parquet(str(root / "weights")),
        key="symbol",
        event_time="ts",
        value="price",
        query="portfolio",
        within=5.0,
        confidence=0.9,
        deferral=sw.Deferral("calibrated", k=200),
        name="standing",
    )
    query = start(answers, root)
    query.processAllAvailable()
    (precision,) = sw.report(query).precision
    query.stop()
    assert collected(spark, root).select("portfolio").distinct().count() == 6
    assert precision.series.points


@usage
def standing_in_sql(spark: SparkSession, root: Path) -> None:
    stream = FileStream(spark, root / "in", PRICES)
    for batch in micro_batches(23, warm_up=20):
        stream.put(batch)
    sw.stream("Prices", stream.read_stream(), event_time="ts", key="symbol", value="price")
    text = "SELECT AVG(price) FROM Prices WHERE symbol IN ('s1', 's2', 's3') WITHIN 2 CONFIDENCE 95%"
    query = start(sw.sql(spark, text, name="standing-sql"), root)
    query.processAllAvailable()
    query.stop()
    assert collected(spark, root).count() > 0


@usage
def scheduled_runs(spark: SparkSession, root: Path) -> None:
    """Runs of Trigger.AvailableNow, which is all that some services offer."""
    stream = FileStream(spark, root / "in")
    for half in (MADE[:3], MADE[3:]):
        for batch in half:
            stream.put(batch)
        events = sw.with_drop_ratio(stream.read_stream(), "ts", "5%", arrival="arrived", name="scheduled")
        counts = events.groupBy(F.window("ts", "5 seconds")).count()
        writer = counts.writeStream.format("parquet").option("path", str(root / "out"))
        query = writer.option("checkpointLocation", str(root / "checkpoint")).trigger(availableNow=True).start()
        query.awaitTermination()
    assert ledger_of(sw.report(query)) == (ROWS, sw.report(query).ledger.late, True)
    found = collected(spark, root)
    assert found.count() == found.select("window").distinct().count() > 5


@usage
def watch_and_serve_metrics(spark: SparkSession, root: Path) -> None:
    stream = put_all(spark, root)
    events = sw.with_drop_ratio(stream.read_stream(), "ts", "5%", arrival="arrived", name="watched")
    query = start(events, root)
    settle(query)
    page, metrics = sw.watch(spark, port=0), sw.serve_metrics(0)
    try:
        for url, text in ((page.url, b"Slackwater"), (metrics.url, b'promise="watched"')):
            with urllib.request.urlopen(url) as answer:
                assert text in answer.read()
    finally:
        page.close()
        metrics.close()
        query.stop()


@usage
def what_the_server_does_not_see(spark: SparkSession, root: Path) -> None:
    events = FileStream(spark, root / "in").read_stream()
    for location in ("s3a://bucket/promises", "hdfs://127.0.0.1:1/promises"):
        for promise in (sw.with_drop_ratio,):
            try:
                promise(events, "ts", 0.01, location=location)
            except MissingRequirement as refused:
                assert refused.condition == "no-shared-location"
            else:
                raise AssertionError(f"{location} was taken")


@usage
def a_second_query(spark: SparkSession, root: Path) -> None:
    """The control row is a file, so a second query on one DataFrame is refused while the first one runs."""
    stream = put_all(spark, root)
    events = sw.with_drop_ratio(stream.read_stream(), "ts", "5%", arrival="arrived", name="shared")
    first = start(events, root / "first")
    settle(first)
    second = start(events, root / "second")
    try:
        second.processAllAvailable()
    except StreamingQueryException as refused:
        assert "[promise-shared]" in str(refused)
    else:
        raise AssertionError("two queries share a control row")
    first.stop()


@usage
def filter_costs(spark: SparkSession, root: Path) -> None:
    costs = sw.filter_costs(spark.range(2000), "id % 4 = 1")
    assert costs.pass_ratio == 0.25 and 0 <= costs.first_up_to <= 1


@usage
def a_batch_used_twice(spark: SparkSession, root: Path) -> None:
    """A stateless foreachBatch that reads its batch twice is said in the ledger."""
    stream = put_all(spark, root)
    events = sw.with_drop_ratio(stream.read_stream(), "ts", "5%", arrival="arrived", name="twice")

    def twice(batch: DataFrame, _: int) -> None:
        batch.count()
        batch.where("id % 2 = 0").count()

    query = events.writeStream.foreachBatch(twice).option("checkpointLocation", str(root / "checkpoint")).start()
    settle(query)
    assert sw.report(query).ledger.as_json()["exact"] is False
    query.stop()


@usage
def the_programs_of_the_readme(spark: SparkSession, root: Path) -> None:
    """They run as they are printed, but for the folders."""
    stream = put_all(spark, root)
    names: dict[str, Any] = {"spark": spark, "events": stream.read_stream(), "values": stream.read_stream()}
    for block in blocks_of(ROOT / "README.md"):
        if block.language == "python" and block.is_run:
            text = block.text.replace('"checkpoint"', f'"{root}/checkpoint"').replace('"counts"', f'"{root}/out"')
            exec(compile(text, block.page, "exec"), names)
    report = to_the_end(names["query"])
    assert (report.ledger.input, report.ledger.exact) == (ROWS, True)
    assert names["peaks"].columns[-1] == "peak"


def run_usages(
    root: Path,
    usages: Mapping[str, Callable[[SparkSession, Path], None]],
    chosen: list[str],
    prepare: Callable[[SparkSession], None],
) -> None:
    """Run the chosen usages, or all, in a session that was prepared first; this process ends with them."""
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    register(Trailing)
    builder: Any = SparkSession.builder.remote("local[2]")
    spark = (
        builder.config("spark.sql.shuffle.partitions", "1").config("spark.sql.session.timeZone", "UTC").getOrCreate()
    )
    prepare(spark)
    for name, check in usages.items():
        if chosen and name not in chosen:
            continue
        folder = root / name
        folder.mkdir()
        try:
            check(spark, folder)
            wrong = None
        except Exception:
            wrong = traceback.format_exc()
        print(json.dumps({"usage": name, "wrong": wrong}), flush=True)
    sys.stdout.flush()
    os._exit(0)  # the server in this process ends with it


if __name__ == "__main__":
    run_usages(Path(sys.argv[1]), USAGES, sys.argv[2:], lambda spark: spark.conf.set("spark.slackwater.shards", "2"))
