"""Everything that Spark does with a watermark works under the promise, and no shape of query freezes it.

Filters, joins and views above the promise once slid below the watermark operator, removed the heartbeat rows and froze
the watermark in 1970 without a word: each of those shapes stands here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.state import GroupState, GroupStateTimeout

import slackwater as sw
from tests.helpers.harness import (
    ORIGIN_S,
    FileStream,
    collected,
    promise_of,
    rows,
    same_rows,
    settle,
    start,
    watermark_ms,
)

pytestmark = pytest.mark.spark

BATCHES, PER_BATCH, PERIOD_S = 6, 120, 10.0


def orderly_rows(batch: int) -> list[dict[str, Any]]:
    """Rows up to 300 ms late, in arrival order, that no heartbeat worth its name loses."""
    at = batch * PERIOD_S + np.linspace(0, PERIOD_S, PER_BATCH, endpoint=False)
    return rows(at, 0.3 * np.abs(np.sin(at * 11)), first_id=batch * PER_BATCH)


@pytest.fixture
def stream(spark: SparkSession, tmp_path: Path) -> FileStream:
    made = FileStream(spark, tmp_path / "in")
    for batch in range(BATCHES):
        made.put(orderly_rows(batch))
    return made


def promised(stream: FileStream, name: str | None = None) -> DataFrame:
    return sw.with_drop_ratio(stream.read_stream(), "ts", "1%", arrival="arrived", name=name, min_wait="1 second")


def finish(query: StreamingQuery) -> float:
    """Run the query to the end of its files; the watermark it came to."""
    settle(query)
    marks = [watermark_ms(p) for p in query.recentProgress]
    assert marks == sorted(marks), "the watermark never retreats"
    assert marks[-1] > ORIGIN_S * 1000, "the watermark is frozen"
    query.stop()
    return marks[-1]


def closed_by(result: DataFrame, mark_ms: float) -> DataFrame:
    return result.where(F.unix_micros(F.col("window.end")) <= F.lit(int(mark_ms) * 1000))


def windowed(events: DataFrame) -> DataFrame:
    return events.groupBy(F.window("ts", "5 seconds"), "sensor").agg(
        F.count("*").alias("n"), F.sum("value").alias("sum")
    )


def filtered(spark: SparkSession, events: DataFrame) -> DataFrame:
    return windowed(events.where("sensor = 's1' AND value > 3"))


def joined_with_a_table(spark: SparkSession, events: DataFrame) -> DataFrame:
    floors = spark.createDataFrame([("s0", 1), ("s1", 2), ("s3", 2)], "sensor string, floor int")
    return events.join(floors, "sensor").where("floor = 2").groupBy(F.window("ts", "5 seconds"), "floor").count()


def in_sql(spark: SparkSession, events: DataFrame) -> DataFrame:
    events.createOrReplaceTempView("events")
    return spark.sql(
        """
        WITH hot AS (SELECT * FROM events WHERE value > 10),
             placed AS (SELECT ts, value, sensor AS place FROM hot WHERE sensor <> 's2')
        SELECT window(ts, '5 seconds') AS window, place, max(value) AS peak
        FROM placed GROUP BY window(ts, '5 seconds'), place HAVING count(*) > 3
        """
    )


def sliding(spark: SparkSession, events: DataFrame) -> DataFrame:
    return events.groupBy(F.window("ts", "10 seconds", "5 seconds")).agg(F.max("value").alias("peak"))


def of_null_sensors(spark: SparkSession, events: DataFrame) -> DataFrame:
    return windowed(events.where("sensor IS NOT NULL").selectExpr("ts", "upper(sensor) AS sensor", "value"))


@pytest.mark.parametrize("shape", [filtered, joined_with_a_table, in_sql, sliding, of_null_sensors])
def test_windows_equal_the_batch_job(
    shape: Callable[[SparkSession, DataFrame], DataFrame], spark: SparkSession, stream: FileStream, tmp_path: Path
) -> None:
    mark = finish(start(shape(spark, promised(stream)), tmp_path))
    truth = closed_by(shape(spark, stream.read_batch()), mark)
    assert truth.count() > 0
    same_rows(collected(spark, tmp_path), truth)


def test_update_mode(spark: SparkSession, stream: FileStream, tmp_path: Path) -> None:
    finish(start(windowed(promised(stream)), tmp_path, mode="update", name="updates"))
    last = spark.table("updates").groupBy("window", "sensor").agg(F.max("n").alias("n"), F.max("sum").alias("sum"))
    same_rows(last, windowed(stream.read_batch()))


def test_session_windows(spark: SparkSession, tmp_path: Path) -> None:
    def sessions(events: DataFrame) -> DataFrame:
        return events.groupBy(F.session_window("ts", "2 seconds").alias("window"), "sensor").count()

    stream = FileStream(spark, tmp_path / "in")
    for batch in range(BATCHES):  # three seconds of rows, then seven of silence
        at = batch * PERIOD_S + np.linspace(0, 3, 60)
        stream.put(rows(at, 0.2 * np.abs(np.sin(at * 11)), first_id=batch * 60))
    mark = finish(start(sessions(promised(stream)), tmp_path))
    # Spark would move the filter below the merge of sessions, and find sessions of single rows.
    truth = closed_by(sessions(stream.read_batch()).localCheckpoint(), mark)
    assert truth.count() >= 8
    same_rows(collected(spark, tmp_path), truth)


def test_duplicates_within_the_watermark(spark: SparkSession, tmp_path: Path) -> None:
    stream = FileStream(spark, tmp_path / "in")
    for batch in range(BATCHES):
        once = orderly_rows(batch)
        stream.put(once + once[-20:])
    finish(start(promised(stream).dropDuplicatesWithinWatermark(["id"]), tmp_path))
    same_rows(collected(spark, tmp_path), stream.read_batch().dropDuplicates(["id"]))


def answers(stream: FileStream) -> DataFrame:
    """Two thirds of the rows come back one second later under another name."""
    raw = stream.read_stream().where("id % 3 > 0")
    return raw.selectExpr(
        "id AS question", "ts + INTERVAL 1 SECOND AS answered", "arrived AS seen", "value * 2 AS answer"
    )


@pytest.mark.parametrize("how", ["inner", pytest.param("left_outer", marks=pytest.mark.full)])
def test_stream_stream_joins_with_a_promise_on_each_side(
    how: str, spark: SparkSession, stream: FileStream, tmp_path: Path
) -> None:
    def join(questions: DataFrame, replies: DataFrame) -> DataFrame:
        on = F.expr("id = question AND answered BETWEEN ts AND ts + INTERVAL 3 SECONDS")
        return questions.join(replies, on, how).select("id", "answer")

    # an answer is stamped a second after its row, so its lateness is a second less
    replies = sw.with_drop_ratio(answers(stream), "answered", "1%", arrival="seen", min_wait="1 second")
    query = start(join(promised(stream), replies), tmp_path)
    mark = finish(query)
    batch = stream.read_batch()
    batch_replies = batch.where("id % 3 > 0").selectExpr(
        "id AS question", "ts + INTERVAL 1 SECOND AS answered", "value * 2 AS answer"
    )
    truth = join(batch, batch_replies)
    if how == "left_outer":  # an unanswered row comes out once no answer can come any more
        settled = batch.where(F.unix_millis("ts") + 3000 < F.lit(int(mark) - 1000)).select("id")
        got = collected(spark, tmp_path)
        assert got.where("answer IS NULL").count() > 0
        same_rows(got.join(settled, "id"), truth.join(settled, "id"))
    else:
        same_rows(collected(spark, tmp_path), truth)


def test_stream_stream_join_with_one_promise(spark: SparkSession, stream: FileStream, tmp_path: Path) -> None:
    replies = answers(stream)
    joined = promised(stream).join(replies, F.expr("id = question"), "inner").select("id", "answer")
    finish(start(joined, tmp_path))
    batch = stream.read_batch()
    same_rows(collected(spark, tmp_path), batch.where("id % 3 > 0").selectExpr("id", "value * 2 AS answer"))


def test_event_time_timeouts(spark: SparkSession, stream: FileStream, tmp_path: Path) -> None:
    def count_until_silent(key: tuple[str], parts: Iterator[pd.DataFrame], state: GroupState) -> Iterator[pd.DataFrame]:
        if state.hasTimedOut:
            (count,) = state.get
            state.remove()
            yield pd.DataFrame({"sensor": [key[0]], "n": [count], "watermark_ms": [state.getCurrentWatermarkMs()]})
            return
        (count,) = state.getOption or (0,)
        newest = 0
        for part in parts:
            count += len(part)
            newest = max(newest, int(part["ts"].max().timestamp() * 1000))
        state.update((count,))
        state.setTimeoutTimestamp(max(newest, state.getCurrentWatermarkMs()) + 2000)

    def early_only(events: DataFrame) -> DataFrame:  # the sensors fall silent after the second batch
        return events.where(F.col("id") < 2 * PER_BATCH)

    counted = (
        early_only(promised(stream))
        .groupBy("sensor")
        .applyInPandasWithState(
            count_until_silent,
            "sensor string, n long, watermark_ms long",
            "n long",
            "append",
            GroupStateTimeout.EventTimeTimeout,
        )
    )
    finish(start(counted, tmp_path))
    got = collected(spark, tmp_path)
    same_rows(got.select("sensor", "n"), early_only(stream.read_batch()).groupBy("sensor").agg(F.count("*").alias("n")))
    assert got.where(F.col("watermark_ms") <= ORIGIN_S * 1000).count() == 0, "the state sees the heartbeat"


@pytest.mark.full
def test_several_queries_in_one_session(spark: SparkSession, stream: FileStream, tmp_path: Path) -> None:
    """Two on one promised DataFrame, which share its heartbeat, and one with a promise of its own."""
    events = promised(stream, name="shared")
    running = [
        start(windowed(events), tmp_path / "a"),
        start(sliding(spark, events), tmp_path / "b"),
        start(windowed(promised(stream, name="own")), tmp_path / "c"),
    ]
    for query in running:
        settle(query)
    for query in running:
        settle(query)
        assert promise_of(query).ledger.input == BATCHES * PER_BATCH
        assert promise_of(query).kept
    marks = [watermark_ms(query.lastProgress) for query in running]
    for query in running:
        query.stop()
    batch = stream.read_batch()
    same_rows(collected(spark, tmp_path / "a"), closed_by(windowed(batch), marks[0]))
    same_rows(collected(spark, tmp_path / "b"), closed_by(sliding(spark, batch), marks[1]))
    same_rows(collected(spark, tmp_path / "c"), closed_by(windowed(batch), marks[2]))


@pytest.mark.full
def test_a_used_promise_starts_afresh_with_a_fresh_checkpoint(
    spark: SparkSession, stream: FileStream, tmp_path: Path
) -> None:
    events = promised(stream)
    for run in ("first", "second"):
        query = start(windowed(events), tmp_path / run)
        settle(query)
        assert promise_of(query).ledger.late == 0, run
        mark = finish(query)
        same_rows(collected(spark, tmp_path / run), closed_by(windowed(stream.read_batch()), mark))


def test_fronts_by_source(spark: SparkSession, stream: FileStream, tmp_path: Path) -> None:
    events = sw.with_drop_ratio(
        stream.read_stream(), "ts", "1%", arrival="arrived", source="sensor", min_wait="1 second"
    )
    query = start(windowed(events), tmp_path)
    settle(query)
    assert promise_of(query).ledger.input == BATCHES * PER_BATCH
    mark = finish(query)
    same_rows(collected(spark, tmp_path), closed_by(windowed(stream.read_batch()), mark))
