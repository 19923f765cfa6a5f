"""``Trigger.AvailableNow``: as many micro-batches as the source's limits say, a heartbeat that moves, and an end."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.query import StreamingQuery

import slackwater as sw
from slackwater.control.ledger import Ledger
from slackwater.spark.completeness.report import CompletenessReport
from tests.helpers.harness import FileStream, batches, collected, heartbeat_read_ms, promise_of, same_rows, watermark_ms
from tests.helpers.judged import counts_of_closed_windows, late_ids

pytestmark = [
    pytest.mark.spark,
    pytest.mark.usefixtures("known_controllers"),
    pytest.mark.skipif(
        find_spec("pyspark.sql.streaming.datasource") is None, reason="before Spark 4.2 a run is one micro-batch"
    ),
]

PER_BATCH, WAIT_MS = 40, 3000.0


def run_now(result: DataFrame, folder: Path) -> StreamingQuery:
    """Run a query over all that is available, until it ends by itself."""
    writer = result.writeStream.trigger(availableNow=True).option("checkpointLocation", str(folder / "checkpoint"))
    query = writer.format("parquet").start(str(folder / "out"))
    query.awaitTermination()
    return query


@dataclass(frozen=True)
class Run:
    """What one run left: the micro-batches that Spark committed in it, and the promise after it."""

    progress: list[Any]
    promise: CompletenessReport


@pytest.mark.parametrize("size", [8, pytest.param(50, marks=pytest.mark.full)])
def test_a_backlog_runs_in_the_batches_of_its_source(size: int, spark: SparkSession, tmp_path: Path) -> None:
    backlog = batches(11, count=size + 4, each=PER_BATCH)
    stream = FileStream(spark, tmp_path / "in")
    method = sw.Method("test-trailing", wait_ms=WAIT_MS)
    events = sw.with_drop_ratio(stream.read_stream(), "ts", "5%", arrival="arrived", method=method)
    counts = events.groupBy(F.window("ts", "5 seconds"), "sensor").count()

    runs = []
    for new in (backlog[:size], [], backlog[size:]):
        for batch in new:
            stream.put(batch)
        query = run_now(counts, tmp_path)
        runs.append(Run([p for p in query.recentProgress if "addBatch" in p["durationMs"]], promise_of(query)))
    first, second, third = runs

    rises_with_every_batch(first, size)
    assert not second.progress, "without new rows there is no micro-batch"
    assert second.promise.ledger == first.promise.ledger
    assert second.promise.heartbeat == first.promise.heartbeat
    rises_with_every_batch(third, 4)

    progress = first.progress + third.progress
    late = len(late_ids(progress, backlog))
    assert late > 0
    assert third.promise.ledger == Ledger(on_time=len(backlog) * PER_BATCH - late, late=late)
    truth = counts_of_closed_windows(progress, backlog, stream.read_batch())
    assert truth.count() > size
    same_rows(collected(spark, tmp_path), truth)


def rises_with_every_batch(run: Run, size: int) -> None:
    """Assert that every decision was read when the next micro-batch was planned, and the last one before the end."""
    with_rows = [p for p in run.progress if p["sources"][1]["numInputRows"] > 0]
    assert [p["sources"][1]["numInputRows"] for p in with_rows] == [PER_BATCH] * size
    read = [heartbeat_read_ms(p) for p in run.progress if p["sources"][0]["numInputRows"] > 0]
    assert read == sorted(set(read)), "every row of the heartbeat source is a higher heartbeat"
    assert len(read) >= size - 1, "the clock is learned from the first rows, a heartbeat from each micro-batch after"
    assert run.promise.heartbeat is not None
    assert watermark_ms(run.progress[-1]) == run.promise.heartbeat.timestamp() * 1000 - 1, "the last one is in force"


@pytest.mark.full
@pytest.mark.parametrize("window", ["RANGE 5 seconds SLIDE 5 seconds", "RANGE 5 seconds"])
def test_a_query_text_runs_in_the_batches_of_its_source(window: str, spark: SparkSession, tmp_path: Path) -> None:
    stream = FileStream(spark, tmp_path / "in")
    for batch in batches(3, count=6, each=PER_BATCH):
        stream.put([{**row, "ts": row["arrived"]} for row in batch])  # nothing is late
    sw.stream("Sensors", stream.read_stream(), event_time="ts")
    text = f"SELECT COUNT(*) AS n FROM Sensors [{window} DRATIO 5% ARRIVAL arrived]"
    query = run_now(sw.sql(spark, text, method=sw.Method("test-trailing", wait_ms=WAIT_MS)), tmp_path)
    promise = promise_of(query)
    assert promise.ledger == Ledger(on_time=6 * PER_BATCH)
    read = [source["numInputRows"] for p in query.recentProgress for source in p["sources"]]
    assert read.count(PER_BATCH) == 6 and max(read) == PER_BATCH
    assert promise.heartbeat is not None
    passed = stream.read_batch().where(F.col("ts") < F.lit(promise.heartbeat))
    by_row = "RANGE BETWEEN INTERVAL 5 SECONDS PRECEDING AND CURRENT ROW"
    truth = (
        passed.groupBy(F.window("ts", "5 seconds"))
        .agg(F.count("*").alias("n"))
        .where(F.col("window.end") <= promise.heartbeat)
        if "SLIDE" in window
        else passed.selectExpr(f"COUNT(*) OVER (ORDER BY ts {by_row}) AS n")
    )
    assert truth.count() > 4
    same_rows(collected(spark, tmp_path).select("n"), truth.select("n"))
