"""Silent sources: they may be idle or cut off, and the default method limits the rows that it risks on them."""

from __future__ import annotations

import dataclasses
import json
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from slackwater.control.disorder import DisorderController, make_method
from slackwater.control.disorder.budgeted.backlog_bound import BacklogBound
from slackwater.control.disorder.budgeted.fronts import SourceFronts
from slackwater.control.disorder.budgeted.silence_risk import SilenceRisk
from slackwater.promises import Completeness
from slackwater.sim.driver import Batches, Floats, Ints, Outcome, run
from slackwater.sim.streams.arrange import in_arrival_order
from slackwater.sim.trace import Trace

ROWS = 8_000
HEAVY = 0


def stream(seed: int) -> tuple[Floats, Floats, Ints]:
    """Values, lateness and sources: one row per millisecond, mean lateness 5, 40 % of the rows from source 0."""
    random = np.random.default_rng(seed)
    values = np.cumsum(random.exponential(1.0, ROWS))
    sources = random.choice(4, ROWS, p=[0.4, 0.2, 0.2, 0.2])
    return values, random.exponential(5.0, ROWS), sources


def stalled(seed: int) -> Trace:
    """The heavy source is cut off for two seconds while it is up to date, then delivers its backlog in order."""
    values, lateness, sources = stream(seed)
    cut = (sources == HEAVY) & (values > 3_000) & (values < 5_000)
    return in_arrival_order("test", values, np.where(cut, 5_000 - values + (values - 3_000) / 20, lateness), sources)


def controller(ratio: float, idle_after_ms: float = 60_000.0) -> DisorderController:
    promise = dataclasses.replace(Completeness(ratio), idle_after_ms=idle_after_ms)
    return DisorderController(promise, make_method("budgeted-quantile", promise))


def held_by_silence(outcome: Outcome) -> Floats:
    return np.array([cause.kind == "source-silent" for cause in outcome.causes], dtype=np.float64)


@pytest.mark.parametrize("ratio", [0.05, 0.01, 0.001])
@pytest.mark.parametrize("seed", [0, 1])
def test_heavy_source_that_is_cut_off_while_up_to_date_is_not_lost(ratio: float, seed: int) -> None:
    trace = stalled(seed)
    got = run(trace, controller(ratio), Batches.every(trace, 10))
    assert got.late <= ratio * got.rows
    assert held_by_silence(got).any()


def test_heavy_source_that_ends_is_given_up_after_idle_after() -> None:
    values, lateness, sources = stream(2)
    sent = (sources != HEAVY) | (values < 500)
    trace = in_arrival_order("test", values[sent], lateness[sent], sources[sent])
    got = run(trace, controller(0.01, idle_after_ms=1_500.0), Batches.every(trace, 10))
    assert held_by_silence(got).any()
    assert trace.arrivals is not None
    clocks = trace.arrivals[got.ends - 1]
    # the source is ignored once it has cost idle_after, and from then on
    assert (clocks - got.heartbeats)[clocks > 500].max() < 1_500 + 200
    assert not held_by_silence(got)[clocks > 500 + 1_500 + 200].any()
    assert got.heartbeats[-1] > clocks[-1] - 200


def test_heartbeat_is_soon_no_longer_held_for_silences_that_turn_out_idle() -> None:
    values, lateness, sources = stream(3)
    # the heavy source sends for 100 ms in every 300 ms
    sent = (sources != HEAVY) | (values % 300 < 100)
    trace = in_arrival_order("test", values[sent], lateness[sent], sources[sent])
    got = run(trace, controller(0.01), Batches.every(trace, 10))
    first, *_, last = np.array_split(held_by_silence(got), 4)
    assert first.mean() > 0.1
    assert last.mean() < 0.2 * first.mean()


def test_source_that_cannot_outweigh_the_others_does_not_hold_the_heartbeat() -> None:
    trace = stalled(4)
    got = run(trace, controller(0.01, idle_after_ms=100.0), Batches.every(trace, 10))
    assert trace.arrivals is not None
    # in its first 100 ms the heavy source may outweigh all that has been sent
    started = trace.arrivals[got.ends - 1] > trace.arrivals[0] + 100.0
    assert not held_by_silence(got)[started].any()


def test_heartbeat_is_still_held_after_a_resume() -> None:
    trace = stalled(5)
    batches = Batches.every(trace, 10)
    whole = run(trace, controller(0.01), batches)
    assert trace.arrivals is not None
    assert trace.sources is not None
    cut = int(np.searchsorted(trace.arrivals, 4_000.0)) // 10 * 10
    first, second = controller(0.01), controller(0.01)
    run(_part(trace, slice(None, cut)), first, Batches.every(_part(trace, slice(None, cut)), 10))
    second.resume(json.loads(json.dumps(first.snapshot())))
    rest = _part(trace, slice(cut, None))
    after = run(rest, second, Batches.every(rest, 10))
    assert held_by_silence(after)[0]
    np.testing.assert_array_equal(after.heartbeats, whole.heartbeats[cut // 10 :])
    assert after.causes == whole.causes[cut // 10 :]


def _part(trace: Trace, rows: slice) -> Trace:
    assert trace.arrivals is not None
    assert trace.sources is not None
    return Trace("part", trace.values[rows], trace.arrivals[rows], trace.sources[rows])


@given(st.floats(0.1, 1e5), st.lists(st.tuples(st.floats(0.0, 1e5), st.floats(0.0, 1.0)), max_size=20))
def test_expected_loss_of_the_affordable_risk_is_the_balance(balance: float, ended: list[tuple[float, float]]) -> None:
    record = SilenceRisk()
    for at_risk, share in ended:
        record.settle(np.array([at_risk]), np.array([share * at_risk]))
    risk = record.affordable(balance)
    assert risk >= balance
    assert record.expected_loss(risk) <= balance * (1 + 1e-9)
    assert record.expected_loss(1.02 * risk) > balance


def test_many_small_risks_hardly_count_for_a_large_one() -> None:
    record = SilenceRisk()
    record.settle(np.full(1_000, 1.0), np.zeros(1_000))
    assert record.affordable(10.0) < 30
    record.settle(np.full(10, 1_000.0), np.zeros(10))
    assert record.affordable(100.0) > 1_000


def test_backlog_is_bounded_by_peak_rate_and_by_burst_plus_mean_rate() -> None:
    backlogs = BacklogBound()
    backlogs.add_sources(np.array([0]))
    one = np.array([0])
    for _ in range(200):
        backlogs.observe(one, np.array([1.0]), np.array([1.0]), 10.0)
    # one row per millisecond, with a wait of 10 ms
    short, long = (float(backlogs.within(np.array([time]), one, 10.0)[0]) for time in (5.0, 1_000.0))
    assert short == pytest.approx(5.0, rel=0.2)
    assert long == pytest.approx(1_000.0, rel=0.2)
    assert float(backlogs.time_until(long, one, 10.0)[0]) == pytest.approx(1_000.0)
    assert backlogs.outweighs(250.0, one, 10.0).all()
    assert not backlogs.outweighs(150.0, one, 10.0).any()


def test_single_burst_is_not_extrapolated() -> None:
    def burst(silent_before: float) -> BacklogBound:
        backlogs = BacklogBound()
        backlogs.add_sources(np.array([0]))
        backlogs.observe(one, np.array([100.0]), np.array([silent_before]), 10.0)
        return backlogs

    one, long = np.array([0]), np.array([1_000.0])
    at_once, after_a_while = burst(0.0), burst(500.0)
    # the second source has a mean rate of one row per 5 ms, apart from its burst
    assert float(after_a_while.within(long, one, 10.0)[0]) == pytest.approx(100.0 + 1_000.0 / 5.0)
    assert float(at_once.within(long, one, 10.0)[0]) > 3_000


def test_new_source_counts_as_silent_since_the_start_of_the_stream() -> None:
    def limit_if_first_heard_at(first: float) -> float:
        fronts = SourceFronts()
        for clock in np.arange(0.0, 1_000.0):
            fronts.observe(np.array([clock]), None, np.array([1]), clock, 10.0)
            if clock == first:
                fronts.observe(np.full(300, clock), None, np.zeros(300, dtype=np.int64), clock, 10.0)
            limit, source = fronts.limit_for_silent(clock - 10.0, clock, 10.0, 5.0, 1_000.0)
            if source == 0:
                return limit
        return math.inf

    assert limit_if_first_heard_at(20.0) < 40.0
    assert limit_if_first_heard_at(600.0) == math.inf
