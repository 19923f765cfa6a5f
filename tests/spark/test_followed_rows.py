"""Where rows raise the heartbeat, and that no filter of a query removes them before they do."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.query import StreamingQuery

import slackwater as sw
from slackwater.spark.completeness.handler import METRICS_PREFIX
from slackwater.spark.worker.control_line import UNKNOWN_US, ControlLine
from slackwater.spark.worker.heartbeat_source import BELOW_MS
from tests.helpers.harness import FileStream, batches, collected, promise_of, settle, start, watermark_ms

pytestmark = pytest.mark.spark
FILTERED = """SELECT sensor, COUNT(*) AS n FROM Sensors [RANGE 4 seconds {slide} ARRIVAL arrived DRATIO 5%]
    WHERE sensor = 's1' AND value >= 0 GROUP BY sensor HAVING COUNT(*) >= 0"""


def lines_of(query: StreamingQuery, name: str) -> list[tuple[Any, ControlLine]]:
    """The progress events with rows of the stream, and the control line of each."""
    found = []
    for progress in query.recentProgress:
        control_us = progress["observedMetrics"].get(METRICS_PREFIX + name, {})["control_us"]
        if control_us is not None:
            found.append((progress, ControlLine.of(control_us)))
    return found


def played(result: DataFrame, stream: FileStream, folder: Path) -> StreamingQuery:
    """The query after fifteen micro-batches."""
    query = start(result, folder)
    for batch in batches(seed=5, count=15):
        stream.put(batch)
        settle(query)
    return query


@pytest.mark.parametrize("slide", ["SLIDE 4 seconds", "SLIDE 2 seconds"])
def test_windows_of_a_text_follow_rows_that_its_conditions_remove(
    spark: SparkSession, tmp_path: Path, slide: str
) -> None:
    stream = FileStream(spark, tmp_path / "in")
    sw.stream("Sensors", stream.read_stream(), event_time="ts")
    result = sw.sql(spark, FILTERED.format(slide=slide), name="text")
    query = played(result.where("sensor = 's1'"), stream, tmp_path)  # Spark may move this below the aggregation
    lines = lines_of(query, "text")
    ledger = promise_of(query).ledger
    query.stop()
    assert all(line.follows_rows for _, line in lines)
    assert any(line.ceiling_us > UNKNOWN_US for _, line in lines)
    for progress, line in lines:
        heartbeat_ms = line.heartbeat_us / 1000 - BELOW_MS if line.heartbeat_us > UNKNOWN_US else 0.0
        assert watermark_ms(progress) == heartbeat_ms
    read = stream.read_batch()
    last = max(line.heartbeat_us for _, line in lines)
    assert ledger.input == read.count() and last > UNKNOWN_US
    published = collected(spark, tmp_path)
    seen = {row["window_end"]: row["n"] for row in published.where("sensor = 's1'").collect()}
    assert max(end.timestamp() for end in seen) >= last / 1e6 - 4, "windows up to the heartbeat are closed"
    window = F.window("ts", "4 seconds", slide.removeprefix("SLIDE "))
    whole = read.where("sensor = 's1'").groupBy(window).count()
    counts = {row["window"]["end"]: row["count"] for row in whole.collect()}
    assert seen and all(n <= counts[end] for end, n in seen.items())
    assert sum(counts[end] - n for end, n in seen.items()) <= ledger.late * 2


def test_no_condition_keeps_rows_and_heartbeats_from_raising_the_watermark(spark: SparkSession, tmp_path: Path) -> None:
    """Were a condition moved below the watermark, it would remove them all: heartbeat rows have no value."""
    stream = FileStream(spark, tmp_path / "in")
    sw.stream("Sensors", stream.read_stream(), event_time="ts")
    text = """SELECT sensor, COUNT(*) AS n FROM Sensors [RANGE 4 seconds SLIDE 4 seconds ARRIVAL arrived DRATIO 5%]
        WHERE value < 0 GROUP BY sensor"""
    query = played(sw.sql(spark, text, name="nothing"), stream, tmp_path)
    heartbeat, last = promise_of(query).heartbeat, query.recentProgress[-1]
    lines = lines_of(query, "nothing")
    query.stop()
    assert heartbeat is not None
    assert watermark_ms(last) == round(heartbeat.timestamp() * 1000) - BELOW_MS, "the last decision is in force"
    raised = [progress["batchId"] for progress, line in lines if line.heartbeat_us > UNKNOWN_US]
    assert len(raised) > 5


@pytest.mark.parametrize("promises", [1, 2])
def test_rows_raise_the_heartbeat_of_a_query_with_one_promise(
    spark: SparkSession, tmp_path: Path, promises: int
) -> None:
    """The watermark of a query is the lowest of all its watermarks, so that of one promise is not known to be it."""
    stream = FileStream(spark, tmp_path / "in")
    names = [f"promise-{number}-of-{promises}" for number in range(promises)]
    promised = [sw.with_drop_ratio(stream.read_stream(), "ts", "5%", arrival="arrived", name=name) for name in names]
    both = promised[0] if promises == 1 else promised[0].unionByName(promised[1])
    query = played(both.groupBy(F.window("ts", "4 seconds")).count(), stream, tmp_path)
    lines = [lines_of(query, name) for name in names]
    ledgers = [completeness.ledger for completeness in sw.report(query).completeness]
    query.stop()
    assert {line.follows_rows for found in lines for _, line in found} == {promises == 1}
    assert all(any(line.heartbeat_us > UNKNOWN_US for _, line in found) for found in lines)
    assert [ledger.input for ledger in ledgers] == [stream.read_batch().count()] * promises


def test_ordered_windows_take_heartbeats_and_not_rows(spark: SparkSession, tmp_path: Path) -> None:
    stream = FileStream(spark, tmp_path / "in")
    sw.stream("Sensors", stream.read_stream(), event_time="ts")
    text = "SELECT COUNT(*) AS n FROM Sensors [RANGE 4 seconds ARRIVAL arrived DRATIO 5%]"
    query = played(sw.sql(spark, text, name="ordered"), stream, tmp_path)
    lines = lines_of(query, "ordered")
    query.stop()
    assert lines and not any(line.follows_rows for _, line in lines)
