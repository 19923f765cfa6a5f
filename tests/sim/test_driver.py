"""The driver counts the same as a row-by-row implementation of the definitions."""

from __future__ import annotations

import math
from typing import Any, ClassVar

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from slackwater.control.disorder import UNKNOWN, Batch, DisorderController
from slackwater.promises import Completeness
from slackwater.sim.driver import Batches, Floats, clairvoyant_wait, run
from slackwater.sim.trace import Trace


class ConstantWait:
    """A method with a constant wait behind the front, or behind the clock if that is lower."""

    name: ClassVar[str] = "constant-wait"

    def __init__(self, wait: float) -> None:
        self.wait = wait
        self.front = UNKNOWN

    def observe(self, batch: Batch) -> None:
        self.front = max(self.front, float(batch.values.max()))

    def heartbeat(self, clock: float | None) -> float:
        return (self.front if clock is None else min(clock, self.front)) - self.wait

    def snapshot(self) -> dict[str, Any]:
        return {}

    def resume(self, snapshot: dict[str, Any]) -> None:
        return None


def controller(wait: float) -> DisorderController:
    return DisorderController(Completeness(0.01), ConstantWait(wait))


def count_row_by_row(trace: Trace, ends: list[int], heartbeats: Floats) -> tuple[int, float, float]:
    late, waits, buffered, buffer = 0, 0.0, 0, list[float]()
    start, front, lowest = 0, -math.inf, math.inf
    for end, heartbeat in zip(ends, heartbeats, strict=True):
        buffer = [v for v in buffer if v >= heartbeat]
        for i in range(start, end):
            value = float(trace.values[i])
            front = max(front, value)
            reference = front if trace.arrivals is None else float(trace.arrivals[i])
            lowest = min(lowest, value)
            waits += reference - (heartbeat if math.isfinite(heartbeat) else min(lowest, reference))
            if value < heartbeat:
                late += 1
            else:
                buffer.append(value)
            buffered += len(buffer)
        start = end
    return late, waits / trace.rows, buffered / trace.rows


@settings(max_examples=60)
@given(
    st.lists(st.tuples(st.integers(0, 40), st.integers(0, 30)), min_size=1, max_size=40),
    st.integers(1, 7),
    st.integers(0, 20),
    st.integers(1, 2),
    st.booleans(),
)
def test_counts_match_the_definitions(
    rows: list[tuple[int, int]], every: int, wait: int, lag: int, has_clock: bool
) -> None:
    rows = sorted(rows)
    arrivals = np.array([float(a) for a, _ in rows])
    trace = Trace("drawn", arrivals - np.array([float(d) for _, d in rows]), arrivals if has_clock else None)
    outcome = run(trace, controller(wait), Batches.every(trace, every), lag=lag)
    assert np.all(outcome.heartbeats[:lag] == UNKNOWN)
    assert np.all(np.diff(outcome.heartbeats[lag:]) >= 0)
    late, mean_wait, mean_buffer = count_row_by_row(trace, outcome.ends.tolist(), outcome.heartbeats)
    assert (outcome.rows, outcome.late) == (len(rows), late)
    assert outcome.mean_wait == pytest.approx(mean_wait)
    assert outcome.mean_buffer_rows == pytest.approx(mean_buffer)


@settings(max_examples=60)
@given(
    st.lists(st.tuples(st.integers(0, 40), st.integers(0, 30)), min_size=1, max_size=40),
    st.sampled_from([0.0, 0.05, 0.2, 0.5]),
    st.booleans(),
)
def test_clairvoyant_wait_is_the_smallest_that_keeps_the_ratio(
    rows: list[tuple[int, int]], ratio: float, has_clock: bool
) -> None:
    rows = sorted(rows)
    arrivals = np.array([float(a) for a, _ in rows])
    trace = Trace("drawn", arrivals - np.array([float(d) for _, d in rows]), arrivals if has_clock else None)
    reference = arrivals if has_clock else np.maximum.accumulate(trace.values)
    best = clairvoyant_wait(trace, ratio)

    def late(wait: float) -> int:
        return int(np.sum(trace.values < reference - wait))

    assert late(best) <= ratio * trace.rows
    assert best == 0 or late(best - 0.5) > ratio * trace.rows


def test_tie_is_on_time_and_heartbeat_takes_effect_one_batch_later() -> None:
    trace = Trace("ties", np.array([10.0, 5.0, 5.0, 4.9]), np.array([10.0, 10.0, 10.0, 10.0]))
    outcome = run(trace, controller(5.0), Batches.every(trace, 1))
    assert outcome.heartbeats.tolist() == [UNKNOWN, 5.0, 5.0, 5.0]
    assert outcome.late == 1
    assert run(trace, controller(5.0), Batches.every(trace, 1), lag=4).late == 0


def test_empty_periods_become_one_empty_batch() -> None:
    arrivals = np.array([0.0, 10.0, 95.0, 2000.0])
    trace = Trace("gaps", arrivals.copy(), arrivals)
    batches = Batches.each(trace, 50.0)
    assert batches.ends.tolist() == [2, 3, 3, 4]
    assert batches.clocks is not None
    assert batches.clocks.tolist() == [50.0, 100.0, 2000.0, 2050.0]


def test_batches_must_cover_the_trace() -> None:
    trace = Trace("four", np.arange(4.0))
    with pytest.raises(ValueError, match="ends of the batches"):
        Batches.at(trace, [2, 3])
    assert run(trace, controller(0.0), Batches.at(trace, [2, 2, 4])).rows == 4


def test_empty_trace() -> None:
    trace = Trace("empty", np.zeros(0), np.zeros(0))
    assert run(trace, controller(0.0)).drop_ratio == 0.0
    assert clairvoyant_wait(trace, 0.01) == 0.0
