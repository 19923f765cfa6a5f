"""The promise on real Spark: kept on steady, drifting and stepping streams, counted exactly, never poisoned."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.query import StreamingQuery

import slackwater as sw
from slackwater.control.ledger import Ledger
from slackwater.spark.completeness.report import CompletenessReport
from tests.helpers.harness import (
    ORIGIN_S,
    FileStream,
    batches,
    collected,
    promise_of,
    rows,
    same_rows,
    settle,
    start,
    start_idle,
    timestamp,
    watermark_ms,
)
from tests.helpers.judged import counts_of_closed_windows, late_ids

pytestmark = pytest.mark.spark


def lateness(shape: str, at_s: np.ndarray[Any, Any], rng: np.random.Generator) -> np.ndarray[Any, Any]:
    """Exponential lateness whose mean stays, drifts upwards, or jumps to five times as much half-way."""
    mean: np.ndarray[Any, Any] = {
        "steady": np.full(len(at_s), 1.0),
        "drifting": 0.5 + 2.0 * at_s / at_s[-1],
        "stepping": np.where(at_s < at_s[-1] / 2, 0.5, 2.5),
    }[shape]
    return np.asarray(rng.exponential(1.0, len(at_s)) * mean)


@dataclass(frozen=True)
class Run:
    """A query that counts windows of five seconds by sensor, its rows, its promise, and what Spark reported."""

    folder: Path
    stream: FileStream
    rows: list[dict[str, Any]]
    promise: CompletenessReport
    progress: list[Any]


def counted(stream: FileStream, folder: Path) -> StreamingQuery:
    """Start to count windows of five seconds by sensor under a promise; the stream is still empty."""
    events = stream.read_stream().transform(sw.with_drop_ratio, "ts", "2%", arrival="arrived")
    return start_idle(events.groupBy(F.window("ts", "5 seconds"), "sensor").count(), folder)


def finished(query: StreamingQuery, stream: FileStream, folder: Path, all_rows: list[dict[str, Any]]) -> Run:
    """Let the query run to the end of its stream, and stop it."""
    settle(query)
    made = Run(folder, stream, all_rows, promise_of(query), query.recentProgress)
    query.stop()
    return made


def put_in_batches(stream: FileStream, all_rows: list[dict[str, Any]], per_batch: int) -> None:
    for first in range(0, len(all_rows), per_batch):
        stream.put(all_rows[first : first + per_batch])


SHAPES = {"steady": 16, "drifting": 16, "stepping": 60}
"""The micro-batches of each. A jump makes rows of two of them late, which must be a small part of the stream."""
PER_BATCH = 500


@pytest.fixture(scope="module")
def shaped(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Run]:
    """The same query over a stream of each shape, all at the same time."""
    root = tmp_path_factory.mktemp("shaped")
    streams = {shape: FileStream(spark, root / shape / "in") for shape in SHAPES}
    running = {shape: counted(stream, root / shape) for shape, stream in streams.items()}
    made = {}
    for shape, stream in streams.items():
        rng = np.random.default_rng(7)
        arrivals = np.sort(rng.uniform(0, SHAPES[shape] * 5.0, SHAPES[shape] * PER_BATCH))
        made[shape] = rows(arrivals, lateness(shape, arrivals, rng))
        put_in_batches(stream, made[shape], PER_BATCH)
    return {shape: finished(running[shape], streams[shape], root / shape, made[shape]) for shape in SHAPES}


@pytest.mark.parametrize("shape", SHAPES)
def test_the_promise_is_kept_and_every_row_accounted_for(shape: str, shaped: dict[str, Run]) -> None:
    run = shaped[shape]
    marks = [watermark_ms(p) for p in run.progress]
    assert run.promise.kept, str(run.promise)
    assert run.promise.ledger.input == len(run.rows)
    assert marks == sorted(marks), "the watermark never retreats"
    assert marks[-1] > ORIGIN_S * 1000, "the heartbeat has moved"

    late = late_by_batch_job(run, PER_BATCH)
    assert run.promise.ledger == Ledger(on_time=len(run.rows) - late, late=late)


def late_by_batch_job(run: Run, per_batch: int) -> int:
    """Compare the windows with those of a batch job; how many rows were late."""
    batches = [run.rows[first : first + per_batch] for first in range(0, len(run.rows), per_batch)]
    closed = counts_of_closed_windows(run.progress, batches, run.stream.read_batch().where("id >= 0"))
    assert closed.count() > 20
    same_rows(collected(run.stream.spark, run.folder), closed)
    return len(late_ids(run.progress, batches))


NULLS_COUNTED_FROM = {"by-cells": (4, 3), "by-count": (5, 0)}
SAMPLED_PER_BATCH, SAMPLED_BATCHES = 2500, 14


@pytest.fixture(scope="module")
def sampled(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Run]:
    """A query that counts nulls in either way, in micro-batches large enough for a sampled histogram."""
    root = tmp_path_factory.mktemp("sampled")
    rng = np.random.default_rng(3)
    arrivals = np.sort(rng.uniform(0, SAMPLED_BATCHES * 60.0, SAMPLED_BATCHES * SAMPLED_PER_BATCH))
    behind = rng.exponential(1.0, len(arrivals))
    behind[-3 * SAMPLED_PER_BATCH :: 500] = 400.0
    all_rows = rows(arrivals, behind)
    stream = FileStream(spark, root / "in")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("slackwater.spark.completeness.histogram._SAMPLE_FROM_ROWS", 1000)
        # of 2500 rows one in 256 is a probe
        patch.setattr("slackwater.spark.completeness.histogram._ENOUGH_PROBES", 3)
        running = {}
        for way, counted_from in NULLS_COUNTED_FROM.items():
            patch.setattr("slackwater.spark.completeness.histogram._NULLS_COUNTED_FROM", counted_from)
            running[way] = counted(stream, root / way)
        for batch in range(SAMPLED_BATCHES):
            broken = [{**all_rows[0], "id": -1 - batch, "ts": stamp} for stamp in ("2099-01-01T00:00:00+00:00", None)]
            stream.put([*all_rows[batch * SAMPLED_PER_BATCH : (batch + 1) * SAMPLED_PER_BATCH], *broken])
        return {way: finished(query, stream, root / way, all_rows) for way, query in running.items()}


def counts_by_cell(run: Run, histogram: str = "cells") -> list[int]:
    """How many rows the histogram of each micro-batch counted."""
    observed = [m for p in run.progress for key, m in p["observedMetrics"].items() if key.startswith("slackwater:")]
    return [sum(c["count"] for c in m[histogram] if c["item"] is not None) for m in observed if m["cells"]]


@pytest.mark.parametrize("way", NULLS_COUNTED_FROM)
def test_a_sampled_micro_batch_still_counts_late_and_invalid_rows_exactly(way: str, sampled: dict[str, Run]) -> None:
    run = sampled[way]
    assert sum(counts_by_cell(run)) < 0.8 * len(run.rows), "many rows were not counted by their cells"
    late = late_by_batch_job(run, SAMPLED_PER_BATCH)
    assert late >= 10
    assert run.promise.ledger == Ledger(on_time=len(run.rows) - late, late=late, invalid=2 * SAMPLED_BATCHES)
    assert run.promise.kept, str(run.promise)


@pytest.mark.parametrize("way", NULLS_COUNTED_FROM)
def test_one_row_in_sixteen_tells_the_lateness_of_a_sampled_micro_batch(way: str, sampled: dict[str, Run]) -> None:
    counted = [count for count in counts_by_cell(sampled[way], "lateness") if count != SAMPLED_PER_BATCH]
    assert len(counted) > SAMPLED_BATCHES / 2
    assert all(0.5 < 16 * count / SAMPLED_PER_BATCH < 2.0 for count in counted)


def test_coarse_event_times_are_not_sampled(
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
    query = counted(stream, tmp_path)
    put_in_batches(stream, all_rows, per_batch)
    run = finished(query, stream, tmp_path, all_rows)
    whole = [count == per_batch for count in counts_by_cell(run)]
    # a micro-batch may begin before the one before it is reported
    assert not all(whole) and all(whole[-3:]), "some micro-batch was sampled, and soon none any more"
    late = late_by_batch_job(run, per_batch)
    assert run.promise.ledger == Ledger(on_time=len(all_rows) - late, late=late)
    assert run.promise.kept, str(run.promise)


STAMPS = {"future": "2099-01-01T00:00:00+00:00", "past": "1970-01-01T00:00:01+00:00", "null": None, "text": "yesterday"}


@pytest.fixture(scope="module")
def clocks(
    spark: SparkSession, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, tuple[Ledger, dt.datetime | None, DataFrame]]:
    """The same rows through a query for each of ``STAMPS``, with one row more of that stamp, and once ``plain``.

    All of them take every decision after the same micro-batch.
    """
    root = tmp_path_factory.mktemp("clocks")
    streams = {name: FileStream(spark, root / name / "in") for name in ("plain", *STAMPS)}
    running = {}
    for name, stream in streams.items():
        events = sw.with_drop_ratio(stream.read_stream(), "ts", "1%", arrival="arrived")
        counts = events.groupBy(F.window("ts", "2 seconds")).agg(F.count("*"), F.sum("value"))
        running[name] = start_idle(counts, root / name)
    for batch in range(4):
        arrivals = batch * 5 + np.linspace(0, 5, 200, endpoint=False)
        good = rows(arrivals, np.abs(np.sin(arrivals * 7)), first_id=batch * 200)
        for name, stream in streams.items():
            bad = [{**good[0], "id": -1, "ts": STAMPS[name]}] if name in STAMPS and batch == 1 else []
            stream.put([*good, *bad])
        for query in running.values():
            settle(query)
    found = {}
    for name, query in running.items():
        promise = promise_of(query)
        found[name] = (promise.ledger, promise.heartbeat, collected(spark, root / name))
        query.stop()
    return found


@pytest.mark.parametrize("stamp", STAMPS)
def test_a_broken_clock_changes_only_its_own_fate(
    stamp: str, clocks: dict[str, tuple[Ledger, dt.datetime | None, DataFrame]]
) -> None:
    (plain, plain_heartbeat, plain_result), (odd, odd_heartbeat, odd_result) = clocks["plain"], clocks[stamp]
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
    usual = spark.conf.get("spark.sql.streaming.noDataProgressEventInterval")
    spark.conf.set("spark.sql.streaming.noDataProgressEventInterval", "200")
    query = start(events.groupBy(F.window("ts", "5 seconds")).count(), tmp_path, name="idle")
    spark.conf.set("spark.sql.streaming.noDataProgressEventInterval", usual or "10s")
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


def test_a_row_without_arrival_does_not_move_the_clock_of_a_backlog(spark: SparkSession, tmp_path: Path) -> None:
    stream = FileStream(spark, tmp_path / "in")
    unreadable = {"id": -1, "ts": None, "arrived": None}
    for batch in batches(3, count=2):
        stream.put([unreadable, *batch])
    events = sw.with_drop_ratio(stream.read_stream(), "ts", "5%", arrival="arrived", name="clock")
    query = start(events.groupBy(F.window("ts", "5 seconds")).count(), tmp_path)
    settle(query)
    promise = promise_of(query)
    query.stop()
    assert promise.ledger == Ledger(on_time=120, invalid=2)
    assert promise.series is not None and promise.series.last is not None and promise.series.last.lateness is not None
    assert promise.series.last.lateness.quantiles_ms[-1] < 60_000


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


@pytest.mark.full
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
