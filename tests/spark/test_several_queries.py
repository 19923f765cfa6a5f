"""Several queries on one promised DataFrame: each has its own heartbeat, its own results and its own ledger."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.query import StreamingQuery

import slackwater as sw
from slackwater.control.ledger import Ledger
from tests.helpers.controllers import Trailing
from tests.helpers.harness import FileStream, batches, collected, promise_of, same_rows, settle, start, watermark_ms
from tests.helpers.judged import WINDOW_MS, counts_of_closed_windows, late_ids
from tests.helpers.usages import usage

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("known_controllers")]
TRAILING: dict[str, Any] = {"method": sw.Method(Trailing.name, wait_ms=3000.0)}
MADE = batches(seed=11, count=5)
EARLY = 3
"""Micro-batches that are there before the second query starts."""


def run_two(stream: FileStream, result: DataFrame, folder: Path) -> list[StreamingQuery]:
    """Start a query, let it advance, and start another one on the same DataFrame; both read all rows and stop."""
    for batch in MADE[:EARLY]:
        stream.put(batch)
    first = start(result, folder / "first")
    settle(first)
    assert watermark_ms(first.lastProgress) > 0
    second = start(result, folder / "second")
    settle(second)
    for batch in MADE[EARLY:]:
        stream.put(batch)
        settle(first)
        settle(second)
    return [first, second]


def results_of(query: StreamingQuery, spark: SparkSession, folder: Path) -> tuple[list[Any], Ledger, DataFrame]:
    """What Spark reported of a query, its ledger, and what it wrote; stops it."""
    progress, ledger = query.recentProgress, promise_of(query).ledger
    query.stop()
    return progress, ledger, collected(spark, folder)


@pytest.mark.parametrize("name", ["first", "second"])
@usage(
    "two queries on one `with_drop_ratio` DataFrame, one started later",
    "right: each has its own heartbeat, results and ledger",
)
def test_windows_and_ledger_are_those_of_a_batch_job(
    name: str, on_with_drop_ratio: dict[str, tuple[list[Any], Ledger, DataFrame]], source: FileStream
) -> None:
    progress, ledger, found = on_with_drop_ratio[name]
    same_rows(found, counts_of_closed_windows(progress, MADE, source.read_batch()))
    late = len(late_ids(progress, MADE))
    assert found.count() and late
    assert ledger == Ledger(on_time=sum(map(len, MADE)) - late, late=late)


@pytest.fixture(scope="module")
def source(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> FileStream:
    return FileStream(spark, tmp_path_factory.mktemp("shared") / "in")


@pytest.fixture(scope="module")
def on_with_drop_ratio(
    known_controllers: None, spark: SparkSession, source: FileStream
) -> dict[str, tuple[list[Any], Ledger, DataFrame]]:
    folder = source.folder.parent
    events = sw.with_drop_ratio(source.read_stream(), "ts", "5%", arrival="arrived", name="shared", **TRAILING)
    running = run_two(source, events.groupBy(F.window("ts", "5 seconds"), "sensor").count(), folder)
    names = ("first", "second")
    return {name: results_of(query, spark, folder / name) for name, query in zip(names, running, strict=True)}


@usage("two queries on one `sw.sql` DataFrame, one started later", "right")
def test_a_second_query_on_an_sql_dataframe(spark: SparkSession, tmp_path: Path) -> None:
    stream = FileStream(spark, tmp_path / "in")
    sw.stream("Shared", stream.read_stream(), event_time="ts")
    text = "SELECT sensor, COUNT(*) AS n FROM Shared [RANGE 5 seconds SLIDE 5 seconds ARRIVAL arrived] GROUP BY sensor"
    running = run_two(stream, sw.sql(spark, text, name="shared-sql", **TRAILING), tmp_path)
    for name, query in zip(("first", "second"), running, strict=True):
        progress, ledger, found = results_of(query, spark, tmp_path / name)
        same_rows(found, published(progress, stream.read_batch()))
        late = len(late_ids(progress, MADE))
        assert found.count() and late
        assert ledger == Ledger(on_time=sum(map(len, MADE)) - late, late=late)


def published(progress: list[Any], events: DataFrame) -> DataFrame:
    """The windows that Slackwater publishes: they lack the rows whose window was closed by their heartbeat."""
    with_rows = [p for p in progress if p["sources"][-1]["numInputRows"] > 0]
    missed = [
        row["id"]
        for p, batch in zip(with_rows, MADE, strict=True)
        for row in batch
        if window_end_ms(row) <= watermark_ms(p) + 1
    ]
    window = F.window("ts", "5 seconds")
    counts = events.where(~F.col("id").isin(missed)).groupBy(window, "sensor").agg(F.count("*").alias("n"))
    closed = counts.where(F.unix_millis("window.end") <= F.lit(int(watermark_ms(progress[-1])) + 1))
    return closed.select(F.col("window.start").alias("window_start"), "window.end", "sensor", "n").withColumnRenamed(
        "end", "window_end"
    )


def window_end_ms(row: dict[str, Any]) -> float:
    return float(pd.Timestamp(row["ts"]).timestamp() * 1000) // WINDOW_MS * WINDOW_MS + WINDOW_MS


@usage("two queries on one DataFrame with `late=`", "right: each marks by its own heartbeat")
def test_each_query_marks_by_its_own_heartbeat(spark: SparkSession, tmp_path: Path) -> None:
    """Under ``late=`` the marks of every query are those of its own ledger."""
    stream = FileStream(spark, tmp_path / "in")
    events = sw.with_drop_ratio(
        stream.read_stream(), "ts", "5%", arrival="arrived", late="problem", name="shared-marks", **TRAILING
    )
    running = run_two_stateless(stream, events, tmp_path)
    for name, query in zip(("first", "second"), running, strict=True):
        progress, ledger, found = results_of(query, spark, tmp_path / name)
        marked = sorted(row.id for row in found.where("problem = 'late'").collect())
        assert marked and marked == sorted(late_ids(progress, MADE, stateless=True))
        assert ledger == Ledger(on_time=sum(map(len, MADE)) - len(marked), late=len(marked))


def run_two_stateless(stream: FileStream, events: DataFrame, folder: Path) -> list[StreamingQuery]:
    """Like ``run_two`` for queries without state, which report no watermark."""
    for batch in MADE[:EARLY]:
        stream.put(batch)
    running = []
    for name in ("first", "second"):
        running.append(start(events, folder / name))
        settle(running[-1])
    for batch in MADE[EARLY:]:
        stream.put(batch)
        for query in running:
            settle(query)
    return running


@usage("both started again from their checkpoints", "right")
def test_both_go_on_after_a_restart(spark: SparkSession, tmp_path: Path) -> None:
    stream = FileStream(spark, tmp_path / "in")
    progress: dict[str, list[Any]] = {"first": [], "second": []}
    ledgers = {}
    for puts in (MADE[:EARLY], MADE[EARLY:]):
        events = sw.with_drop_ratio(stream.read_stream(), "ts", "5%", arrival="arrived", name="again", **TRAILING)
        result = events.groupBy(F.window("ts", "5 seconds"), "sensor").count()
        for batch in puts:
            stream.put(batch)
        running = {name: start(result, tmp_path / name) for name in progress}
        for query in running.values():
            settle(query)
        for name, query in running.items():
            progress[name] += query.recentProgress
            ledgers[name] = promise_of(query).ledger
            query.stop()
    for name, reported in progress.items():
        same_rows(collected(spark, tmp_path / name), counts_of_closed_windows(reported, MADE, stream.read_batch()))
        late = len(late_ids(reported, MADE))
        assert ledgers[name] == Ledger(on_time=sum(map(len, MADE)) - late, late=late)


@usage(
    "two queries on one DataFrame where micro-batches read the control row from a file",
    "the second is refused (`[promise-shared]`) while the first one runs",
)
def test_where_queries_read_a_file_the_second_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    stream = FileStream(spark, tmp_path / "in")
    spark.conf.set("spark.slackwater.controlRow", "file")
    try:
        events = sw.with_drop_ratio(stream.read_stream(), "ts", "5%", arrival="arrived", name="in-a-file", **TRAILING)
    finally:
        spark.conf.unset("spark.slackwater.controlRow")
    stream.put(MADE[0])
    first = start(events, tmp_path / "first")
    settle(first)
    second = start(events, tmp_path / "second")
    with pytest.raises(StreamingQueryException, match=r"\[promise-shared\] another query is running"):
        second.processAllAvailable()
    stream.put(MADE[1])
    settle(first)
    assert promise_of(first).ledger.input == len(MADE[0]) + len(MADE[1])
    first.stop()
    again = start(events, tmp_path / "second")
    settle(again)
    assert promise_of(again).ledger.input == len(MADE[0]) + len(MADE[1])
    again.stop()
