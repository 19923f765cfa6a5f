"""A promise over Kafka topics: every row in the ledger, windows equal to batch, whatever happens to the topic."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import slackwater as sw
from slackwater.control.ledger import Ledger
from tests.helpers.harness import ORIGIN_S, collected, promise_of, same_rows, timestamp, values
from tests.helpers.kafka import Broker, Message, backlog_of, messages, spread, stream_of, value_of
from tests.helpers.processes import start_module
from tests.helpers.usages import usage

pytestmark = [pytest.mark.spark, pytest.mark.full, pytest.mark.usefixtures("known_controllers")]
HOUR_S = 3600.0


def run_once(result: DataFrame, folder: Path, **options: Any) -> Any:
    writer = result.writeStream.option("checkpointLocation", str(folder / "checkpoint")).trigger(availableNow=True)
    query = writer.format("parquet").option("path", str(folder / "out")).start()
    query.awaitTermination()
    return query


@pytest.mark.parametrize("source", [None, "partition"])
@usage(
    "the backlog of a Kafka topic with one sparse and one late partition, read from the earliest offset under "
    "`maxOffsetsPerTrigger`",
    "right: windows close while it is read, and the promise is kept",
)
def test_windows_close_while_a_skewed_backlog_is_read(
    source: str | None, spark: SparkSession, broker: Broker, tmp_path: Path
) -> None:
    topic = broker.create(f"skewed-{source}", 3)
    broker.send(topic, messages(spread(16_000, 0, HOUR_S), 1.0, 0, 0))
    broker.send(topic, messages(spread(100, 0, HOUR_S), 1.0, 1, 16_000, seed=2))
    broker.send(topic, messages(spread(3_900, HOUR_S - 300, HOUR_S), 10.0, 2, 16_100, seed=3))
    events = stream_of(spark, broker, topic, maxOffsetsPerTrigger=1_000)
    location = str(tmp_path / "slackwater")
    events = sw.with_drop_ratio(events, "ts", 0.01, arrival="timestamp", source=source, name="skew", location=location)
    query = run_once(events.groupBy(F.window("ts", "1 minute")).count(), tmp_path)
    promise = promise_of(query)
    assert promise.ledger.input == 20_000 and promise.ledger.exact
    assert promise.ledger.drop_ratio <= 0.01
    assert promise.series is not None
    points = promise.series.points
    assert next(point.batch for point in points if point.heartbeat_ms is not None) <= 6
    lags = [point.source_lag_rows for point in points if point.ledger.input]
    assert lags[0] is not None and lags[0] > 18_000 and lags[-1] == 0
    closed = collected(spark, tmp_path)
    assert closed.count() > 40
    exact = backlog_of(spark, broker, topic).groupBy(F.window("ts", "1 minute")).count()
    newest = closed.agg(F.max("window.end")).first()
    assert newest is not None
    both = closed.join(exact.withColumnRenamed("count", "exact"), "window")
    assert both.where("count > exact").isEmpty()
    missing = both.agg(F.sum(F.col("exact") - F.col("count"))).first()
    assert missing is not None and missing[0] <= promise.ledger.late


@pytest.mark.parametrize("isolation", ["read_committed", "read_uncommitted"])
def test_tombstones_transactions_and_values_that_are_no_rows(
    isolation: str, spark: SparkSession, broker: Broker, tmp_path: Path
) -> None:
    topic = broker.create(isolation, 2)
    for number in range(8):
        made = messages(spread(50, 10 * number, 10 * number + 10), 0.1, 0, 1000 * number)
        # stragglers are late by more than any heartbeat is behind
        made[::10] = [replace(m, value=value_of(-4, timestamp(10 * number - 60))) for m in made[::10]]
        made[::2] = [replace(m, partition=1) for m in made[::2]]
        broker.send(topic, made, transaction=number % 3 != 1)
        broker.send(
            topic, [Message(text, 1, round(1000 * (ORIGIN_S + 10 * number))) for text in (None, "no row", "{}")]
        )
        broken = [value_of(-1, timestamp(1e9)), value_of(-2, "1970-01-01T00:00:07Z"), value_of(-3, "soon")]
        broker.send(topic, [Message(text, 0, round(1000 * (ORIGIN_S + 10 * number))) for text in broken])
    # the last message is no mark of a transaction, which Kafka's offsets count and which no reader sees
    broker.send(topic, [Message(None, partition, round(1000 * (ORIGIN_S + 80))) for partition in (0, 1)])
    options = {"kafka__isolation__level": isolation}
    events = stream_of(spark, broker, topic, maxOffsetsPerTrigger=60, **options)
    location = str(tmp_path / "slackwater")
    events = sw.with_drop_ratio(
        events, "ts", "5%", arrival="timestamp", late="problem", name=isolation, location=location, **trailing(500.0)
    )
    query = run_once(events, tmp_path)
    ledger = promise_of(query).ledger
    there = backlog_of(spark, broker, topic, **options)
    same_rows(collected(spark, tmp_path).drop("problem").select(there.columns), there)
    problems = collected(spark, tmp_path).groupBy("problem").count().collect()
    counts = Counter({row["problem"]: row["count"] for row in problems})
    assert counts["late"] > 0
    assert (counts["null"], counts["future"], counts["unset clock"]) == (8 * 4 + 2, 8, 8)
    assert ledger == Ledger(on_time=counts[None], late=counts["late"], invalid=8 * 6 + 2)
    assert ledger.input == there.count() and ledger.exact
    committed = sum(50 for number in range(8) if isolation == "read_uncommitted" or number % 3 != 1)
    assert ledger.input == committed + 50


def trailing(wait_ms: float) -> dict[str, Any]:
    return {"method": sw.Method("test-trailing", wait_ms=wait_ms)}


@usage(
    "a driver that is killed between a sink and Spark's commit, over Kafka, with late rows",
    "right: the ledger has exactly the rows of the topic, and results with their late panes equal a batch job's",
)
def test_a_killed_driver_loses_and_repeats_nothing(spark: SparkSession, broker: Broker, tmp_path: Path) -> None:
    topic = broker.create("events", 2)
    for partition in (0, 1):
        made = messages(spread(6_000, 0, 1200), 1.0, partition, 10_000 * partition, seed=5 + partition)
        for at in range(2_000, 6_000, 250):  # some rows are late by ten minutes, fewer than the promise allows
            made[at] = replace(made[at], value=value_of(10_000 * partition + at, timestamp(at / 5 - 600)))
        broker.send(topic, [*made, Message(None, partition, 1000 * (ORIGIN_S + 1200))])
    broker.send(topic, messages(np.array([2000.0, 2400.0]), 0.001, 0, 99_000))
    root = tmp_path / "run"
    root.mkdir()
    doomed = start_module("killable_kafka", str(root), broker.address, "doomed")
    while not (root / "hanging").exists():
        with pytest.raises(subprocess.TimeoutExpired):  # it must not end by itself
            doomed.wait(timeout=0.2)
    os.killpg(doomed.pid, signal.SIGKILL)
    doomed.wait()
    again = start_module("killable_kafka", str(root), broker.address)
    assert again.wait(timeout=280) == 0

    ledger = Ledger.from_json(json.loads((root / "report.json").read_text())["ledger"])
    there = backlog_of(spark, broker, topic)
    assert (ledger.input, ledger.invalid) == (there.count(), 2)
    assert ledger.exact and ledger.late > 0
    published = spark.read.parquet(str(root / "out")).drop("batch")
    on_time = published.where("NOT late")
    assert on_time.count() == on_time.select("window_start").distinct().count()
    exact = there.where("ts IS NOT NULL").groupBy(F.window("ts", "10 seconds")).count()
    newest = on_time.agg(F.max("window_end")).first()
    assert newest is not None
    merged = sw.reconcile(published).where(F.col("window_end") <= F.lit(newest[0]))
    assert values(merged.selectExpr("window_start", "n")) == values(
        exact.where(F.col("window.end") <= F.lit(newest[0])).selectExpr("window.start", "count")
    )


@usage(
    "real-time mode under `with_max_delay`, over Kafka",
    "refused (`[real-time-mode]`): the query is stopped as it starts, and the log says what to do",
)
def test_real_time_mode_is_refused_where_rows_may_be_shed(
    spark: SparkSession, broker: Broker, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Spark itself would run it, with micro-batches that last so long that most rows would be shed."""
    if spark.version < "4.3":
        pytest.skip("this Spark has no such trigger in Python")
    topic = broker.create("real-time")
    broker.send(topic, messages(spread(100, 0, 10), 1.0, 0, 0))
    trigger: dict[str, Any] = {"realTime": "5 minutes"}
    events = sw.with_max_delay(stream_of(spark, broker, topic), "1 second", name="real-time")
    writer = events.writeStream.format("console").outputMode("update").trigger(**trigger)
    query = writer.option("checkpointLocation", str(tmp_path / "checkpoint")).start()
    query.awaitTermination()
    assert query.lastProgress is None, "no micro-batch was committed"
    assert "[real-time-mode] " in caplog.text
