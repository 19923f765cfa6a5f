"""A trace replayed on Spark one micro-batch at a time, and the same micro-batches through the tracker without Spark."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.query import StreamingQuery

import slackwater as sw
from slackwater.control.choice import Method
from slackwater.control.disorder import UNKNOWN
from slackwater.control.ledger import Ledger
from slackwater.promises import Completeness
from slackwater.sim.spark_batches import raised_by
from slackwater.sim.streams.step import step
from slackwater.sim.trace import Trace
from slackwater.spark.completeness.batches import BatchObservation
from slackwater.spark.completeness.handler import METRICS_PREFIX
from slackwater.spark.completeness.histogram import decode_cells
from slackwater.spark.completeness.tracker import CompletenessSpec, CompletenessTracker
from slackwater.spark.worker.control_line import UNKNOWN_US, ControlLine
from slackwater.spark.worker.mailbox import Mailbox
from tests.helpers.harness import ORIGIN_S, FileStream, exact_timestamp, promise_of, settle, start

PROMISE = Completeness(0.1)


def trace_in_micros() -> Trace:
    """One minute of 50 rows per second whose lateness jumps tenfold, rounded to Spark's microseconds."""
    made = step(0, rows=3000, rate_per_s=50.0, mean_ms=200.0, regimes=3)
    assert made.arrivals is not None
    origin = ORIGIN_S * 1000.0
    return Trace("twin", origin + np.round(made.values, 3), origin + np.round(made.arrivals, 3))


@dataclass(frozen=True, slots=True)
class Replayed:
    """What Spark decided: the ledger and the mean wait of the run, and for each micro-batch the heartbeat in force."""

    ledger: Ledger
    mean_wait_ms: float | None
    heartbeats: list[int | None]


def on_spark(
    spark: SparkSession, folder: Path, trace: Trace, ends: list[int], methods: Sequence[Method]
) -> list[Replayed]:
    """Replay the trace one micro-batch at a time, to one query per method."""
    assert trace.arrivals is not None
    stream = FileStream(spark, folder / "in")
    queries = []
    for number, method in enumerate(methods):
        events = sw.with_drop_ratio(stream.read_stream(), "ts", PROMISE.drop_ratio, arrival="arrived", method=method)
        queries.append(start(events.groupBy(F.window("ts", "5 seconds")).count(), folder / str(number)))
        queries[-1].processAllAvailable()  # one after the other: each starts a Python process
    micros = [np.round(column * 1000).astype(int).tolist() for column in (trace.values, trace.arrivals)]
    for first, last in zip([0, *ends], ends, strict=False):
        stream.put(
            [
                {"id": first + i, "ts": exact_timestamp(event), "arrived": exact_timestamp(arrival)}
                for i, (event, arrival) in enumerate(zip(*(us[first:last] for us in micros), strict=True))
            ]
        )
        for query in queries:
            settle(query)
    replayed = [_replayed(query) for query in queries]
    for query in queries:
        query.stop()
    return replayed


def _replayed(query: StreamingQuery) -> Replayed:
    promise = promise_of(query)
    with_rows = [progress.observedMetrics for progress in query.recentProgress if progress.sources[1].numInputRows]
    lines = [ControlLine.of(metrics[METRICS_PREFIX + promise.name]["control_us"]) for metrics in with_rows]
    assert all(line.follows_rows for line in lines)
    heartbeats = [line.heartbeat_us // 1000 if line.heartbeat_us > UNKNOWN_US else None for line in lines]
    return Replayed(promise.ledger, promise.mean_wait_ms, heartbeats)


def cells_of(margins_us: np.ndarray[Any, Any]) -> list[tuple[int, int]]:
    """The cells of ``cell_column``, in numpy."""
    distances = np.sqrt(np.sqrt(np.sqrt(np.abs(margins_us) + 0.0))) * 128
    codes = np.where(margins_us >= 0, np.floor(distances), -1 - np.floor(distances)).astype(int)
    return [(int(code), int(count)) for code, count in zip(*np.unique(codes, return_counts=True), strict=True)]


def without_spark(trace: Trace, ends: list[int], method: Method) -> tuple[CompletenessTracker, list[float | None], int]:
    """The tracker that listens to Spark, fed with the same cells.

    Also the heartbeats that judged its batches, and how many of them the rows of the batch before raised: between two
    batches the stream is settled, so the decision from the one before is in force too.
    """
    assert trace.arrivals is not None
    spec = CompletenessSpec("twin", "ts", PROMISE, method, [], Mailbox(Path("nowhere")))
    tracker = CompletenessTracker(spec, "query", "epoch")
    heartbeats: list[float | None] = []
    heartbeat: int | None = None
    raised_by_rows = 0
    for number, (first, last) in enumerate(zip([0, *ends], ends, strict=False)):
        values, arrivals, room = trace.values[first:last], trace.arrivals[first:last], None
        if tracker.policy is not None:
            room = tracker.policy.room
        reference = tracker.clock_ms if heartbeat is None else heartbeat
        origins = arrivals if reference is None else float(reference)
        clock = float(arrivals[-1])
        outcome = tracker.on_batch(
            BatchObservation(
                number,
                heartbeat,
                reference,
                clock,
                decode_cells(cells_of(np.round((values - origins) * 1000)), with_sources=False),
                clock,
                state_rows=1,
                began_ms=float(arrivals[0]),
                follows_rows=True,
            )
        )
        assert outcome is not None
        heartbeats.append(outcome.heartbeat_ms)
        raised = UNKNOWN if room is None else raised_by(room, values, arrivals)
        decided = UNKNOWN if tracker.heartbeat_ms is None else tracker.heartbeat_ms
        raised_by_rows += raised > max(decided, UNKNOWN if heartbeat is None else heartbeat)
        highest = max(raised, decided, UNKNOWN if heartbeat is None else heartbeat)
        heartbeat = int(np.floor(highest)) if np.isfinite(highest) else None
    return tracker, heartbeats, raised_by_rows
