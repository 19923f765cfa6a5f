"""Spark's conditions in the simulator: when micro-batches are planned, and what judges their rows."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
import pytest

from slackwater.control.disorder import DisorderController, make_method
from slackwater.control.disorder.protocol import UNKNOWN, Batch
from slackwater.promises import Completeness
from slackwater.sim.spark_batches import SparkBatches, Trigger, best_constant, run_on_spark
from slackwater.sim.streams.arrange import in_arrival_order
from slackwater.sim.trace import Trace

EVERY_SECOND = Trigger(1000.0, fixed_ms=300.0, row_ms=0.0)


def steady(rows: int = 20_000) -> Trace:
    """Ten rows per second, each late by 0 to 2 seconds."""
    random = np.random.default_rng(7)
    return in_arrival_order("steady", 1e9 + 100.0 * np.arange(float(rows)), 2_000.0 * random.random(rows))


def controller(drop_ratio: float) -> DisorderController:
    promise = Completeness(drop_ratio)
    return DisorderController(promise, make_method("budgeted-quantile", promise))


def test_batches_are_planned_at_the_trigger_and_have_the_rows_that_have_arrived() -> None:
    arrivals = np.array([0.0, 400.0, 1000.0, 1001.0, 2500.0])
    batches = SparkBatches.of(Trace("t", arrivals, arrivals), EVERY_SECOND)
    assert batches.planned.tolist() == [1000.0, 2000.0, 3000.0]
    assert batches.ends.tolist() == [3, 4, 5]


def test_batches_back_to_back_are_planned_when_the_one_before_is_committed() -> None:
    arrivals = np.arange(0.0, 1000.0, 10.0)
    batches = SparkBatches.of(Trace("t", arrivals, arrivals), Trigger(0.0, fixed_ms=100.0, row_ms=1.0))
    assert batches.planned[1:].tolist() == batches.committed[:-1].tolist()
    sizes = np.diff(np.concatenate(([0], batches.ends)))
    assert batches.committed.tolist() == (batches.planned + 100.0 + sizes).tolist()


def test_silence_begins_with_one_empty_batch() -> None:
    arrivals = np.array([0.0, 500.0, 60_000.0])
    batches = SparkBatches.of(Trace("t", arrivals, arrivals), EVERY_SECOND)
    assert batches.planned.tolist() == [1000.0, 2000.0, 60_000.0]
    assert batches.ends.tolist() == [2, 2, 3]


def test_best_constant_delay_keeps_the_ratio_and_a_shorter_one_does_not() -> None:
    trace = steady()
    batches = SparkBatches.of(trace, EVERY_SECOND)
    sizes = np.diff(np.concatenate(([0], batches.ends)))
    _, watermarks = best_constant(trace, batches, 0.01)
    assert np.count_nonzero(trace.values < np.repeat(watermarks, sizes)) <= 0.01 * trace.rows
    assert np.count_nonzero(trace.values < np.repeat(watermarks + 1.0, sizes)) > 0.01 * trace.rows


@pytest.mark.parametrize("trigger", [EVERY_SECOND, Trigger(0.0), Trigger(8_000.0)])
@pytest.mark.parametrize("drop_ratio", [0.05, 0.01])
def test_promise_is_kept_and_its_budget_used_at_any_trigger(trigger: Trigger, drop_ratio: float) -> None:
    trace = steady()
    got = run_on_spark(trace, controller(drop_ratio), SparkBatches.of(trace, trigger))
    assert 0.5 * drop_ratio <= got.drop_ratio <= drop_ratio
    assert np.all(np.diff(got.heartbeats[np.isfinite(got.heartbeats)]) >= 0)


def test_heartbeat_judges_the_batch_after_the_one_in_which_it_was_chosen() -> None:
    """On a steady stream the heartbeat is as fresh as Spark's own watermark under the best constant delay."""
    trace = steady()
    batches = SparkBatches.of(trace, EVERY_SECOND)
    got = run_on_spark(trace, controller(0.01), batches)
    delay, watermarks = best_constant(trace, batches, 0.01)
    settled = slice(len(watermarks) // 2, None)
    assert np.median(watermarks[settled] - got.heartbeats[settled]) < 0.25 * delay


class Recording:
    """A method that notes what it observes and proposes the clock."""

    name: ClassVar[str] = "recording"
    follows_clock = True

    def __init__(self) -> None:
        self.batches: list[Batch] = []

    def observe(self, batch: Batch) -> None:
        self.batches.append(batch)

    def heartbeat(self, clock: float | None) -> float:
        return UNKNOWN if clock is None or len(self.batches) < 3 else clock

    def snapshot(self) -> dict[str, Any]:
        return {}

    def resume(self, snapshot: dict[str, Any]) -> None:
        return


@pytest.mark.parametrize("trigger", [EVERY_SECOND, Trigger(8_000.0), Trigger(0.0, fixed_ms=8_000.0)])
def test_length_of_a_batch_is_not_taken_for_lateness(trigger: Trigger) -> None:
    """Rows are measured from the clock of the batch before theirs, also before the first heartbeat."""
    trace, method = steady(), Recording()
    assert trace.arrivals is not None
    batches = SparkBatches.of(trace, trigger)
    run_on_spark(trace, DisorderController(Completeness(0.01), method), batches)
    clocks = trace.arrivals[batches.ends - 1].tolist()
    learned = [batch for batch in method.batches if batch.rows]
    assert [batch.clock for batch in learned] == clocks
    own = [k for k, batch in enumerate(learned) if batch.reference == batch.clock]
    assert own in ([0], [0, 1]), "batches that are planned before the first report"
    lateness = trace.arrivals - trace.values
    for k in own:
        rows = slice(0 if k == 0 else batches.ends[k - 1], batches.ends[k])
        assert clocks[k] - learned[k].values == pytest.approx(lateness[rows], abs=1e-6), "from their own arrivals"
    for k, batch in list(enumerate(learned))[len(own) :]:
        assert batch.reference is not None
        assert batch.reference <= batches.planned[k - 1], "the clock when the batch before it was planned"
        assert k < 2 or batch.reference > clocks[k - 2]


def test_stalled_stream_does_not_lose_its_backlog() -> None:
    trace = steady()
    assert trace.arrivals is not None
    stall = (trace.arrivals > 1e9 + 1_000_000) & (trace.arrivals < 1e9 + 1_030_000)
    arrivals = np.where(stall, 1e9 + 1_030_000, trace.arrivals)
    stalled = Trace("stalled", trace.values, arrivals)
    without = run_on_spark(trace, controller(0.01), SparkBatches.of(trace, EVERY_SECOND))
    got = run_on_spark(stalled, controller(0.01), SparkBatches.of(stalled, EVERY_SECOND))
    assert got.late - without.late < 0.25 * np.count_nonzero(stall)
