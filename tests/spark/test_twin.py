"""The simulator and Spark are twins: from the same micro-batches they make the same decisions."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

import slackwater as sw
from slackwater.control.choice import Method
from slackwater.control.disorder import Batch, DisorderController, make_method
from slackwater.control.ledger import Ledger
from slackwater.promises import Completeness
from slackwater.sim.driver import Batches, run
from slackwater.sim.streams.step import step
from slackwater.sim.trace import Trace
from slackwater.spark.completeness.control_row import Control
from slackwater.spark.completeness.handler import METRICS_PREFIX
from slackwater.spark.completeness.histogram import decode_cells
from slackwater.spark.completeness.tracker import BatchObservation, CompletenessSpec, CompletenessTracker
from slackwater.spark.worker.control_line import UNKNOWN_US
from slackwater.spark.worker.mailbox import Mailbox
from tests.helpers.harness import ORIGIN_S, FileStream, exact_timestamp, promise_of, settle, start

pytestmark = pytest.mark.spark

PROMISE = Completeness(0.1)
CELL_WIDTH = 2 ** (1 / 64) - 1


def trace_in_micros() -> Trace:
    """One minute of 50 rows per second whose lateness jumps tenfold, rounded to Spark's microseconds."""
    made = step(0, rows=3000, rate_per_s=50.0, mean_ms=200.0, regimes=3)
    assert made.arrivals is not None
    origin = ORIGIN_S * 1000.0
    return Trace("twin", origin + np.round(made.values, 3), origin + np.round(made.arrivals, 3))


def on_spark(
    spark: SparkSession, folder: Path, trace: Trace, ends: list[int]
) -> tuple[Ledger, float, list[int | None], list[float | None]]:
    """Replay the trace one micro-batch at a time; the heartbeat of each is in force in the next.

    Also returns the clocks at which the heartbeats were chosen, as the micro-batches reported them.
    """
    assert trace.arrivals is not None
    stream = FileStream(spark, folder / "in")
    events = sw.with_drop_ratio(stream.read_stream(), "ts", PROMISE.drop_ratio, arrival="arrived")
    query = start(events.groupBy(F.window("ts", "5 seconds")).count(), folder)
    micros = [np.round(column * 1000).astype(int).tolist() for column in (trace.values, trace.arrivals)]
    heartbeats: list[int | None] = [None]
    for first, last in zip([0, *ends], ends, strict=False):
        stream.put(
            [
                {"id": first + i, "ts": exact_timestamp(event), "arrived": exact_timestamp(arrival)}
                for i, (event, arrival) in enumerate(zip(*(us[first:last] for us in micros), strict=True))
            ]
        )
        settle(query)
        heartbeat = promise_of(query).heartbeat
        heartbeats.append(None if heartbeat is None else round(heartbeat.timestamp() * 1000))
    promise = promise_of(query)
    query.stop()
    assert promise.mean_wait_ms is not None
    with_rows = [progress.observedMetrics for progress in query.recentProgress if progress.sources[1].numInputRows]
    control_us = [metrics[METRICS_PREFIX + promise.name]["control_us"] for metrics in with_rows]
    chosen_at_ms = [us / 1000.0 if us > UNKNOWN_US else None for us in (row[Control.CHOSEN_AT] for row in control_us)]
    # The clock of a replay does not run on by itself: a heartbeat is chosen at the clock of its decision.
    assert all(row[Control.DECIDED_AT] == row[Control.CHOSEN_AT] for row in control_us)
    return promise.ledger, promise.mean_wait_ms, heartbeats[:-1], chosen_at_ms


def cells_of(margins_us: np.ndarray[Any, Any]) -> list[tuple[int, int]]:
    """The cells of ``cell_column``, in numpy."""
    distances = np.sqrt(np.sqrt(np.sqrt(np.abs(margins_us) + 0.0))) * 128
    codes = np.where(margins_us >= 0, np.floor(distances), -1 - np.floor(distances)).astype(int)
    return [(int(code), int(count)) for code, count in zip(*np.unique(codes, return_counts=True), strict=True)]


def without_spark(
    trace: Trace, ends: list[int], chosen_at_ms: list[float | None]
) -> tuple[CompletenessTracker, list[float | None]]:
    """The tracker that listens to Spark, fed with the same cells, and the heartbeats that judged its batches."""
    assert trace.arrivals is not None
    spec = CompletenessSpec("twin", "ts", PROMISE, Method("budgeted-quantile"), [], Mailbox(Path("nowhere")))
    tracker = CompletenessTracker(spec, "query", "epoch")
    heartbeats: list[float | None] = []
    for number, (first, last) in enumerate(zip([0, *ends], ends, strict=False)):
        heartbeat = tracker.heartbeat_ms
        reference = tracker.clock_ms if heartbeat is None else heartbeat
        origins = trace.arrivals[first:last] if reference is None else float(reference)
        margins = np.round((trace.values[first:last] - origins) * 1000)
        clock = float(trace.arrivals[last - 1])
        cells = decode_cells(cells_of(margins), with_sources=False)
        outcome = tracker.on_batch(
            BatchObservation(
                number,
                heartbeat,
                reference,
                clock,
                cells,
                clock,
                state_rows=1,
                chosen_at_ms=chosen_at_ms[number],
                decided_at_ms=chosen_at_ms[number],
                began_ms=float(trace.arrivals[first]),
            )
        )
        assert outcome is not None
        heartbeats.append(outcome.heartbeat_ms)
    return tracker, heartbeats


def test_spark_decides_as_the_simulator_does(spark: SparkSession, tmp_path: Path) -> None:
    trace = trace_in_micros()
    ends = [*range(250, trace.rows, 250), trace.rows]
    ledger, mean_wait_ms, heartbeats, chosen_at_ms = on_spark(spark, tmp_path, trace, ends)
    assert trace.arrivals is not None
    clocks = [float(np.floor(trace.arrivals[end - 1])) for end in ends]
    assert chosen_at_ms == [None, *clocks[:-1]], "each micro-batch is judged by the decision from the one before it"

    tracker, decided = without_spark(trace, ends, chosen_at_ms)
    assert decided == heartbeats, "every decision, to the millisecond"
    assert tracker.ledger == ledger
    assert tracker.mean_wait_ms == pytest.approx(mean_wait_ms, rel=1e-12)

    # The simulator sees rows and Spark histogram cells, so their waits differ by about the width of a cell. The rows of
    # the first micro-batch are measured from their own arrivals.
    rest = Trace("rest", trace.values[ends[0] :], trace.arrivals[ends[0] :])
    cuts = [end - ends[0] for end in ends[1:]]
    controller = DisorderController(PROMISE, make_method("budgeted-quantile", PROMISE))
    lateness, clock = trace.arrivals[: ends[0]] - trace.values[: ends[0]], float(trace.arrivals[ends[0] - 1])
    controller.observe(Batch(clock - lateness, clock=clock, reference=clock, began=float(trace.arrivals[0])))
    controller.decide(clock)
    outcome = run(rest, controller, Batches.at(rest, cuts), lag=1, hide_arrivals=True, clock_before=clocks[0])
    assert rest.arrivals is not None
    sizes = np.diff([0, *cuts])
    under = np.isfinite(outcome.heartbeats)
    waits = rest.arrivals[np.array(cuts) - 1][under] - outcome.heartbeats[under]
    spark_waits = np.array([clock - at for clock, at in zip(clocks[1:], heartbeats[1:], strict=True) if at is not None])
    print(f"mean wait: Spark {mean_wait_ms:.1f} ms, simulator {np.average(waits, weights=sizes[under]):.1f} ms")
    print(f"drop ratio: Spark {ledger.drop_ratio:.4%}, simulator {outcome.drop_ratio:.4%}")
    assert len(spark_waits) == len(waits)
    # The median: where two candidates are nearly as good, the width of a cell may decide between them.
    assert np.median(np.abs(spark_waits - waits) / waits) <= CELL_WIDTH
    assert PROMISE.kept_by(ledger.late, ledger.on_time)
    assert PROMISE.kept_by(outcome.late, outcome.rows - outcome.late)
