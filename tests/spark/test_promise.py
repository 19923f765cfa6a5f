"""The promise on real Spark: kept on steady, drifting and stepping streams, counted exactly, never poisoned."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

import slackwater as sw
from slackwater.control.ledger import Ledger
from slackwater.spark.completeness.report import CompletenessReport
from tests.helpers.harness import (
    ORIGIN_S,
    FileStream,
    collected,
    promise_of,
    rows,
    same_rows,
    settle,
    start,
    timestamp,
    watermark_ms,
)

pytestmark = pytest.mark.spark


def lateness(shape: str, at_s: np.ndarray[Any, Any], rng: np.random.Generator) -> np.ndarray[Any, Any]:
    """Exponential lateness whose mean stays, drifts upwards, or jumps to five times as much half-way."""
    mean: np.ndarray[Any, Any] = {
        "steady": np.full(len(at_s), 1.0),
        "drifting": 0.5 + 2.0 * at_s / at_s[-1],
        "stepping": np.where(at_s < at_s[-1] / 2, 0.5, 2.5),
    }[shape]
    return np.asarray(rng.exponential(1.0, len(at_s)) * mean)


@pytest.mark.parametrize("shape", ["steady", "drifting", "stepping"])
def test_the_promise_is_kept_and_every_row_accounted_for(shape: str, spark: SparkSession, tmp_path: Path) -> None:
    rng = np.random.default_rng(7)
    batches, per_batch, period_s = 16, 500, 5.0
    arrivals = np.sort(rng.uniform(0, batches * period_s, batches * per_batch))
    all_rows = rows(arrivals, lateness(shape, arrivals, rng))
    stream = FileStream(spark, tmp_path / "in")
    for batch in range(batches):
        stream.put(all_rows[batch * per_batch : (batch + 1) * per_batch])
    promise, progress = windowed(stream, tmp_path)

    marks = [watermark_ms(p) for p in progress]
    assert promise.kept, str(promise)
    assert promise.ledger.input == len(all_rows)
    assert marks == sorted(marks), "the watermark never retreats"
    assert marks[-1] > ORIGIN_S * 1000, "the heartbeat has moved"

    late = check_with_batch(spark, stream, tmp_path, progress, all_rows, per_batch)
    assert promise.ledger == Ledger(on_time=len(all_rows) - late, late=late)


def windowed(stream: FileStream, folder: Path) -> tuple[CompletenessReport, list[Any]]:
    """Count 5-second windows by sensor under a promise to the stream's end; the promise, and what Spark reported."""
    events = stream.read_stream().transform(sw.with_drop_ratio, "ts", "2%", arrival="arrived")
    query = start(events.groupBy(F.window("ts", "5 seconds"), "sensor").count(), folder)
    settle(query)
    promise, progress = promise_of(query), query.recentProgress
    query.stop()
    return promise, progress


def check_with_batch(
    spark: SparkSession, stream: FileStream, folder: Path, progress: list[Any], all_rows: list[Any], per_batch: int
) -> int:
    """Compare those windows with what a batch job finds; how many rows were late."""
    marks = [watermark_ms(p) for p in progress]
    # Late is counted by us, row for row as Spark's own watermark of each micro-batch says (ties are on time).
    with_rows = [i for i, p in enumerate(progress) if p["sources"][1]["numInputRows"] > 0]
    batches = len(all_rows) // per_batch
    assert len(with_rows) == batches
    event_ms = np.array([pd.Timestamp(row["ts"]).timestamp() * 1000 for row in all_rows]).reshape(batches, per_batch)
    late = sum(int((event_ms[b] < marks[i] + 1).sum()) for b, i in enumerate(with_rows) if marks[i] > 0)

    # Every window that closed holds exactly the rows that a batch job finds in it, less those that Spark's filter
    # (it goes by the watermark of the batch before) refused.
    refused = {
        all_rows[b * per_batch + j]["id"]
        for b, i in enumerate(with_rows)
        for j in range(per_batch)
        if i > 0 and event_ms[b, j] // 5000 * 5000 + 5000 <= marks[i - 1]
    }
    assert len(refused) <= late
    kept = stream.read_batch().where((F.col("id") >= 0) & ~F.col("id").isin(*refused, -1))
    truth = kept.groupBy(F.window("ts", "5 seconds"), "sensor").count()
    closed = truth.where(F.unix_millis(F.col("window.end")) <= F.lit(int(marks[-1])))
    assert closed.count() > 20
    same_rows(collected(spark, folder), closed)
    return late


@pytest.mark.parametrize("nulls_counted_from", [(4, 3), (5, 0)], ids=["by its cells", "by a count of its own"])
def test_a_thinned_micro_batch_still_counts_late_and_invalid_rows_exactly(
    nulls_counted_from: tuple[int, int], spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("slackwater.spark.completeness.histogram._NULLS_COUNTED_FROM", nulls_counted_from)
    monkeypatch.setattr("slackwater.spark.completeness.histogram._SAMPLE_FROM_ROWS", 1000)
    monkeypatch.setattr(
        "slackwater.spark.completeness.histogram._ENOUGH_PROBES", 3
    )  # of 2500 rows one in 256 is a probe
    rng = np.random.default_rng(3)
    batches, per_batch, period_s = 14, 2500, 60.0
    arrivals = np.sort(rng.uniform(0, batches * period_s, batches * per_batch))
    behind = rng.exponential(1.0, len(arrivals))
    behind[-3 * per_batch :: 500] = 400.0
    all_rows = rows(arrivals, behind)
    stream = FileStream(spark, tmp_path / "in")
    for batch in range(batches):
        broken = [{**all_rows[0], "id": -1 - batch, "ts": stamp} for stamp in ("2099-01-01T00:00:00+00:00", None)]
        stream.put([*all_rows[batch * per_batch : (batch + 1) * per_batch], *broken])
    promise, progress = windowed(stream, tmp_path)
    observed = [m for p in progress for key, m in p["observedMetrics"].items() if key.startswith("slackwater:")]
    by_cell = sum(cell["count"] for metrics in observed for cell in metrics["cells"] or [] if cell["item"] is not None)
    assert by_cell < 0.8 * len(all_rows), "many rows were not counted by their cells"
    late = check_with_batch(spark, stream, tmp_path, progress, all_rows, per_batch)
    assert late >= 10
    assert promise.ledger == Ledger(on_time=len(all_rows) - late, late=late, invalid=2 * batches)
    assert promise.kept, str(promise)


def test_a_part_of_the_rows_is_not_gone_by_where_event_times_are_coarse(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("slackwater.spark.completeness.histogram._SAMPLE_FROM_ROWS", 1000)
    monkeypatch.setattr("slackwater.spark.completeness.tracker._COARSE_FROM_ROWS", 1000)
    rng = np.random.default_rng(4)
    batches, per_batch = 8, 1500
    arrivals = np.sort(rng.uniform(0, batches * 60.0, batches * per_batch))
    event_s = np.floor((arrivals - rng.exponential(1.0, len(arrivals))) / 10.0) * 10.0
    all_rows = rows(arrivals, arrivals - event_s)
    stream = FileStream(spark, tmp_path / "in")
    for batch in range(batches):
        stream.put(all_rows[batch * per_batch : (batch + 1) * per_batch])
    promise, progress = windowed(stream, tmp_path)
    observed = [m for p in progress for key, m in p["observedMetrics"].items() if key.startswith("slackwater:")]
    by_cell = [sum(c["count"] for c in m["cells"] if c["item"] is not None) for m in observed if m["cells"]]
    whole = [count == per_batch for count in by_cell]
    # a micro-batch may have begun before the one before it was heard of
    assert not all(whole) and all(whole[-3:]), "some micro-batch was thinned, and soon none any more"
    late = check_with_batch(spark, stream, tmp_path, progress, all_rows, per_batch)
    assert promise.ledger == Ledger(on_time=len(all_rows) - late, late=late)
    assert promise.kept, str(promise)


@pytest.mark.parametrize("stamp", ["2099-01-01T00:00:00+00:00", "1970-01-01T00:00:01+00:00", None, "yesterday"])
def test_a_broken_clock_changes_only_its_own_fate(stamp: str | None, spark: SparkSession, tmp_path: Path) -> None:
    outcome = []
    for poisoned in (False, True):
        folder = tmp_path / str(poisoned)
        stream = FileStream(spark, folder / "in")
        events = sw.with_drop_ratio(stream.read_stream(), "ts", "1%", arrival="arrived")
        query = start(events.groupBy(F.window("ts", "2 seconds")).agg(F.count("*"), F.sum("value")), folder)
        for batch in range(4):
            arrivals = batch * 5 + np.linspace(0, 5, 200, endpoint=False)
            good = rows(arrivals, np.abs(np.sin(arrivals * 7)), first_id=batch * 200)
            bad = {**good[0], "id": -1, "ts": stamp}
            stream.put([*good, bad] if poisoned and batch == 1 else good)
            settle(query)  # so that both runs take every decision at the same moment
        promise = promise_of(query)
        outcome.append((promise.ledger, promise.heartbeat, collected(spark, folder)))
        query.stop()
    (plain, plain_heartbeat, plain_result), (odd, odd_heartbeat, odd_result) = outcome
    assert plain.input == 800
    assert odd == plain + Ledger(invalid=1)
    assert odd_heartbeat == plain_heartbeat
    same_rows(odd_result, plain_result)


def test_invalid_rows_can_be_kept(spark: SparkSession, tmp_path: Path) -> None:
    stream = FileStream(spark, tmp_path / "in")
    stream.put(
        [*rows([0.0, 1.0], [0.0, 0.5]), {"id": 9, "ts": None, "arrived": timestamp(1), "sensor": "x", "value": 0}]
    )
    events = sw.with_drop_ratio(stream.read_stream(), "ts", "1%", arrival="arrived", invalid="keep")
    query = start(events, tmp_path)
    settle(query)
    assert promise_of(query).ledger.invalid == 1
    query.stop()
    same_rows(collected(spark, tmp_path), stream.read_batch())


def test_an_idle_source_still_closes_its_windows(spark: SparkSession, tmp_path: Path) -> None:
    stream = FileStream(spark, tmp_path / "in")
    for batch in range(3):
        stream.put(rows(np.arange(batch * 100, batch * 100 + 100) / 20, np.full(100, 0.05), first_id=batch * 100))
    events = sw.with_drop_ratio(stream.read_stream(), "ts", "1%", arrival="arrived", idle_after="1 second")
    spark.conf.set("spark.sql.streaming.noDataProgressEventInterval", "200")
    query = start(events.groupBy(F.window("ts", "5 seconds")).count(), tmp_path, name="idle")
    spark.conf.unset("spark.sql.streaming.noDataProgressEventInterval")
    truth = stream.read_batch().groupBy(F.window("ts", "5 seconds")).count()
    wanted = truth.count()
    # nothing arrives any more: only the passing of time can close the last window
    for _ in range(120):
        query.awaitTermination(1)
        if spark.table("idle").count() == wanted:
            break
    same_rows(spark.table("idle"), truth)
    assert promise_of(query).ledger == Ledger(on_time=300)
    query.stop()


def test_a_stall_shorter_than_idle_after_costs_nothing(spark: SparkSession, tmp_path: Path) -> None:
    stream = FileStream(spark, tmp_path / "in")
    on_time = rows(np.arange(500) / 50, np.full(500, 0.1))
    for batch in range(5):
        stream.put(on_time[batch * 100 : batch * 100 + 100])
    events = sw.with_drop_ratio(stream.read_stream(), "ts", "1%", arrival="arrived", idle_after="1 hour")
    query = start(events.groupBy(F.window("ts", "1 second")).count(), tmp_path)
    settle(query)
    # ten minutes of nothing, then everything that was held up, in order
    held_up = rows(610 + np.arange(500) / 500, 600 - np.arange(500) / 500 * 9, first_id=500)
    stream.put(held_up)
    settle(query)
    ledger = promise_of(query).ledger
    query.stop()
    assert ledger == Ledger(on_time=1000)


def test_best_effort_claims_no_promise(spark: SparkSession, tmp_path: Path) -> None:
    stream = FileStream(spark, tmp_path / "in")
    stream.put(rows([0, 1, 2], [0, 0, 0]))
    events = sw.with_drop_ratio(stream.read_stream(), "ts", 0, arrival="arrived")
    query = start(events, tmp_path)
    settle(query)
    promise = promise_of(query)
    query.stop()
    assert "best effort" in str(promise) and "no promise" in str(promise)
    assert promise.kept


def test_without_an_arrival_column_the_batch_is_the_clock(spark: SparkSession, tmp_path: Path) -> None:
    stream = FileStream(spark, tmp_path / "in")
    for batch in range(4):
        stream.put(rows(np.arange(batch * 50, batch * 50 + 50), np.full(50, 0.0), first_id=batch * 50))
    events = sw.with_drop_ratio(stream.read_stream(), "ts", "1%")
    query = start(events.groupBy(F.window("ts", "10 seconds")).count(), tmp_path)
    settle(query)
    promise = promise_of(query)
    marks = [watermark_ms(p) for p in query.recentProgress]
    query.stop()
    assert promise.ledger.input == 200
    assert promise.kept
    assert marks == sorted(marks)


def test_no_micro_batch_has_generated_code_of_its_own(spark: SparkSession, tmp_path: Path) -> None:
    """Code that names the heartbeat or the time would be compiled, and warmed up, in every micro-batch."""
    stream = FileStream(spark, tmp_path / "in")
    arrivals = np.arange(400) / 10.0
    for batch in range(8):
        part = arrivals[batch * 50 : batch * 50 + 50]
        stream.put(rows(part, np.full(50, 0.5), first_id=batch * 50))
    compiled = spark._jvm.org.apache.spark.metrics.source.CodegenMetrics.METRIC_COMPILATION_TIME()  # type: ignore[union-attr]
    counts, heartbeats = [], []
    for run in ("first", "second"):
        events = sw.with_drop_ratio(stream.read_stream(), "ts", "10%", arrival="arrived")
        query = start(events.groupBy(F.window("ts", "5 seconds"), "sensor").count(), tmp_path / run)
        settle(query)
        counts.append(compiled.getCount())
        heartbeats.append({watermark_ms(p) for p in query.recentProgress})
        query.stop()
    assert len(heartbeats[1]) > 3
    assert counts[1] == counts[0]
