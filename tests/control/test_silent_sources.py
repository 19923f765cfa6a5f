"""A silent source may be idle or cut off: the default method bets on it no more than it can pay."""

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
from slackwater.sim.driver import Batches, Floats, Outcome, run
from slackwater.sim.trace import Trace

ROWS = 8_000
HEAVY = 0


def stream(seed: int) -> tuple[Floats, Floats, Floats]:
    """Values a millisecond apart, lateness of some five, and sources of which the first sends two fifths."""
    random = np.random.default_rng(seed)
    values = np.cumsum(random.exponential(1.0, ROWS))
    sources = random.choice(4, ROWS, p=[0.4, 0.2, 0.2, 0.2])
    return values, random.exponential(5.0, ROWS), sources.astype(np.float64)


def arrive(values: Floats, lateness: Floats, sources: Floats) -> Trace:
    arrivals = values + lateness
    order = np.argsort(arrivals, kind="stable")
    return Trace("made", values[order], arrivals[order], sources[order].astype(np.int64))


def stalled(seed: int) -> Trace:
    """The heavy source is cut off for two seconds while it is up to date, and comes back with all it had, in order."""
    values, lateness, sources = stream(seed)
    cut = (sources == HEAVY) & (values > 3_000) & (values < 5_000)
    return arrive(values, np.where(cut, 5_000 - values + (values - 3_000) / 20, lateness), sources)


def controller(ratio: float, idle_after_ms: float = 60_000.0) -> DisorderController:
    promise = dataclasses.replace(Completeness(ratio), idle_after_ms=idle_after_ms)
    return DisorderController(promise, make_method("budgeted-quantile", promise))


def held(outcome: Outcome) -> Floats:
    return np.array([cause.kind == "source-silent" for cause in outcome.causes], dtype=np.float64)


@pytest.mark.parametrize("ratio", [0.05, 0.01, 0.001])
@pytest.mark.parametrize("seed", [0, 1])
def test_a_heavy_source_that_stalls_while_up_to_date_is_not_lost(ratio: float, seed: int) -> None:
    trace = stalled(seed)
    got = run(trace, controller(ratio), Batches.every(trace, 10))
    assert got.late <= ratio * got.rows
    assert held(got).any()


def test_a_heavy_source_that_is_idle_for_good_does_not_hold_for_ever() -> None:
    values, lateness, sources = stream(2)
    there = (sources != HEAVY) | (values < 3_000)
    trace = arrive(values[there], lateness[there], sources[there])
    got = run(trace, controller(0.01, idle_after_ms=1_500.0), Batches.every(trace, 10))
    assert held(got).any()
    assert trace.arrivals is not None
    clocks = trace.arrivals[got.ends - 1]
    # let go when it has cost that much, and not taken up again
    assert (clocks - got.heartbeats)[clocks > 3_000].max() < 1_500 + 200
    assert not held(got)[clocks > 3_000 + 1_500 + 200].any()
    assert got.heartbeats[-1] > clocks[-1] - 200


def test_where_silences_are_idle_they_are_soon_held_for_no_more() -> None:
    values, lateness, sources = stream(3)
    # the heavy source works for 100 ms in every 300
    there = (sources != HEAVY) | (values % 300 < 100)
    trace = arrive(values[there], lateness[there], sources[there])
    got = run(trace, controller(0.01), Batches.every(trace, 10))
    first, *_, last = np.array_split(held(got), 4)
    assert first.mean() > 0.1
    assert last.mean() < 0.2 * first.mean()


def test_a_source_that_could_not_outweigh_the_rest_binds_nothing() -> None:
    trace = stalled(4)
    got = run(trace, controller(0.01, idle_after_ms=100.0), Batches.every(trace, 10))
    assert not held(got).any()


def test_a_hold_goes_on_after_a_resume() -> None:
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
    assert held(after)[0]
    np.testing.assert_array_equal(after.heartbeats, whole.heartbeats[cut // 10 :])
    assert after.causes == whole.causes[cut // 10 :]


def _part(trace: Trace, rows: slice) -> Trace:
    assert trace.arrivals is not None
    assert trace.sources is not None
    return Trace("part", trace.values[rows], trace.arrivals[rows], trace.sources[rows])


@given(st.floats(0.1, 1e5), st.lists(st.tuples(st.floats(0.0, 1e5), st.floats(0.0, 1.0)), max_size=20))
def test_a_bet_is_expected_to_lose_the_balance(balance: float, ended: list[tuple[float, float]]) -> None:
    bets = SilenceRisk()
    for feared, share in ended:
        bets.settle(np.array([feared]), np.array([share * feared]))
    bet = bets.affordable(balance)
    assert bet >= balance
    assert bets.expected_loss(bet) <= balance * (1 + 1e-9)
    assert bets.expected_loss(1.02 * bet) > balance


def test_many_small_bets_say_little_of_a_large_one() -> None:
    bets = SilenceRisk()
    bets.settle(np.full(1_000, 1.0), np.zeros(1_000))
    assert bets.affordable(10.0) < 30
    bets.settle(np.full(10, 1_000.0), np.zeros(10))
    assert bets.affordable(100.0) > 1_000


def test_what_a_source_holds_back_is_bounded_by_its_peak_and_by_its_burst_and_mean() -> None:
    backlogs = BacklogBound()
    backlogs.add_sources(np.array([0]))
    one = np.array([0])
    for _ in range(200):
        backlogs.observe(one, np.array([1.0]), np.array([1.0]), 10.0)
    # a row a millisecond, over a wait of ten
    short, long = (float(backlogs.within(np.array([time]), one, 10.0)[0]) for time in (5.0, 1_000.0))
    assert short == pytest.approx(5.0, rel=0.2)
    assert long == pytest.approx(1_000.0, rel=0.2)
    assert float(backlogs.time_until(long, one, 10.0)[0]) == pytest.approx(1_000.0)
    assert backlogs.outweighs(250.0, one, 10.0).all()
    assert not backlogs.outweighs(150.0, one, 10.0).any()


def test_a_source_that_bursts_once_is_not_taken_to_go_on_like_that() -> None:
    def burst(silent_before: float) -> BacklogBound:
        backlogs = BacklogBound()
        backlogs.add_sources(np.array([0]))
        backlogs.observe(one, np.array([100.0]), np.array([silent_before]), 10.0)
        return backlogs

    one, long = np.array([0]), np.array([1_000.0])
    at_once, after_a_while = burst(0.0), burst(500.0)
    # a row in five milliseconds is what the second has kept up, apart from its burst
    assert float(after_a_while.within(long, one, 10.0)[0]) == pytest.approx(100.0 + 1_000.0 / 5.0)
    assert float(at_once.within(long, one, 10.0)[0]) > 3_000


def test_a_new_source_has_been_silent_for_as_long_as_there_was_a_stream() -> None:
    def held_for(first: float) -> float:
        fronts = SourceFronts()
        for clock in np.arange(0.0, 1_000.0):
            fronts.observe(np.array([clock]), None, np.array([1]), clock, 10.0)
            if clock == first:
                fronts.observe(np.full(300, clock), None, np.zeros(300, dtype=np.int64), clock, 10.0)
            kept, source = fronts.hold_for_silent(clock - 10.0, clock, 10.0, 5.0, 1_000.0)
            if source == 0:
                return kept
        return math.inf

    assert held_for(20.0) < 40.0
    assert held_for(600.0) == math.inf
