"""The default method keeps what it promises: the bound, the hold, small snapshots, hard streams."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from slackwater.control.disorder import Batch, DisorderController, make_method
from slackwater.control.disorder.budgeted.budget import Budget
from slackwater.control.disorder.budgeted.fronts import SourceFronts
from slackwater.control.disorder.budgeted.method import BudgetedQuantile
from slackwater.control.disorder.budgeted.new_source_bound import NewSourceBound
from slackwater.control.disorder.budgeted.stall_guard import StallGuard
from slackwater.control.disorder.budgeted.standardised import StandardisedTail
from slackwater.control.disorder.budgeted.tail import Tail
from slackwater.promises import Completeness
from slackwater.sim.driver import Batches, Floats, Outcome, clairvoyant_wait, run
from slackwater.sim.streams import make_stream
from slackwater.sim.trace import Trace


def arrange(values: Floats, lateness: Floats, sources: Floats | None = None) -> Trace:
    arrivals = values + lateness
    order = np.argsort(arrivals, kind="stable")
    codes = None if sources is None else sources[order].astype(np.int64)
    return Trace("made", values[order], arrivals[order], codes)


def outcome(trace: Trace, ratio: float, every: int = 10, **options: bool) -> Outcome:
    promise = Completeness(ratio)
    controller = DisorderController(promise, make_method("budgeted-quantile", promise))
    return run(trace, controller, Batches.every(trace, every), **options)


@pytest.mark.parametrize("ratio", [0.05, 0.01])
@pytest.mark.parametrize("hide_arrivals", [False, True])
def test_a_steady_stream_is_kept_near_the_clairvoyant_wait(ratio: float, hide_arrivals: bool) -> None:
    random = np.random.default_rng(11)
    trace = arrange(np.cumsum(random.exponential(1.0, 16_000)), random.exponential(50.0, 16_000))
    got = outcome(trace, ratio, hide_arrivals=hide_arrivals)
    assert got.late <= ratio * got.rows
    assert got.mean_wait <= 1.25 * clairvoyant_wait(trace, ratio)


def test_a_stream_that_stalls_and_delivers_its_backlog_at_once_is_kept() -> None:
    random = np.random.default_rng(12)
    values = np.cumsum(random.exponential(1.0, 16_000))
    lateness = random.exponential(30.0, 16_000)
    stalled = (values > 6_000) & (values < 7_500)
    got = outcome(arrange(values, np.where(stalled, 7_500 - values + lateness, lateness)), 0.01)
    assert got.late <= 0.01 * got.rows


def test_a_source_that_falls_behind_is_waited_for() -> None:
    random = np.random.default_rng(13)
    values = np.cumsum(random.exponential(1.0, 16_000))
    sources = random.integers(0, 4, 16_000).astype(np.float64)
    behind = (sources == 3) & (values > 6_000) & (values < 10_000)
    backlog = np.where(values < 8_000, values - 6_000, 10_000 - values)
    trace = arrange(values, np.where(behind, backlog, 0.0) + random.exponential(5.0, 16_000), sources)
    assert outcome(trace, 0.01).late <= 0.01 * trace.rows


@pytest.mark.parametrize("seed", [0, 82, 171, 197, 198, 243])
def test_a_source_many_times_as_slow_as_any_heard_before_is_kept(seed: int) -> None:
    trace = make_stream("multi-source", seed)
    assert outcome(trace, 0.001, every=100).late <= 0.001 * trace.rows


def test_order_numbers_without_a_clock_survive_a_leap() -> None:
    random = np.random.default_rng(14)
    order = np.argsort(np.arange(20_000) + random.exponential(20.0, 20_000), kind="stable")
    values = order.astype(np.float64)
    values[9_000] = 1e15
    got = outcome(Trace("orders", values), 0.01, every=5)
    assert got.late <= 0.01 * got.rows
    assert got.heartbeats[-1] > 15_000


@settings(max_examples=40)
@given(st.lists(st.lists(st.tuples(st.integers(0, 50), st.integers(0, 400)), min_size=1, max_size=6), max_size=60))
def test_the_heartbeat_is_held_while_the_budget_is_empty(drawn: list[list[tuple[int, int]]]) -> None:
    method = BudgetedQuantile(Completeness(0.05))
    clock, heartbeat, reference, longest = 0.0, -np.inf, None, 0.0
    for group in drawn:
        arrivals = clock + np.cumsum([float(gap) for gap, _ in group])
        clock = float(arrivals[-1])
        values = arrivals - np.array([float(late) for _, late in group])
        method.observe(Batch(values, arrivals, clock=clock, late=int(np.sum(values < heartbeat))))
        longest = max(longest, (clock if reference is None else reference) - float(values.min()))
        decided, reference = method.heartbeat(clock), clock
        assert method.budget.balance >= 0 or decided <= max(heartbeat, clock - 3.0 * longest)
        heartbeat = decided


@settings(max_examples=40)
@given(st.lists(st.tuples(st.integers(0, 50), st.integers(100, 400)), min_size=1, max_size=59))
def test_nothing_is_risked_before_three_promised_drops(drawn: list[tuple[int, int]]) -> None:
    method = BudgetedQuantile(Completeness(0.05))
    clock, heartbeat, reference, longest = 0.0, -np.inf, None, 0.0
    for gap, late in drawn:
        clock += gap
        longest = max(longest, (clock if reference is None else reference) - (clock - late))
        method.observe(Batch(np.array([float(clock - late)]), clock=clock, late=int(clock - late < heartbeat)))
        decided, reference = method.heartbeat(clock), clock
        assert decided <= max(heartbeat, clock - 1.3 * longest)
        heartbeat = decided


def test_the_latest_of_few_rows_is_not_taken_for_the_latest_of_many() -> None:
    method = BudgetedQuantile(Completeness(0.001))
    for clock in np.arange(1.0, 33.0):
        method.observe(Batch(np.array([clock - 2.0]), clock=clock))
        method.heartbeat(clock)
    # the latest of 1 000 exponential latenesses is ln 1000 / ln 32 = 2 times as late as that of 32
    assert 32.0 - method.heartbeat(32.0) == pytest.approx(1.3 * 2.0 * np.log(1_000) / np.log(32))


def test_snapshots_are_small() -> None:
    random = np.random.default_rng(15)
    promise = Completeness(0.01)
    values = np.cumsum(random.exponential(1.0, 20_000))
    trace = arrange(values, random.lognormal(3.0, 1.0, 20_000), random.integers(0, 400, 20_000).astype(np.float64))
    for sources, limit in ((None, 20_000), (trace.sources, 100_000)):
        controller = DisorderController(promise, make_method("budgeted-quantile", promise))
        run(Trace("t", trace.values, trace.arrivals, sources), controller, Batches.every(trace, 200))
        assert len(json.dumps(controller.snapshot())) <= limit


def test_best_effort_moves_and_loses_next_to_nothing() -> None:
    random = np.random.default_rng(16)
    trace = arrange(np.cumsum(random.exponential(1.0, 20_000)), random.exponential(10.0, 20_000))
    got = outcome(trace, 0.0)
    assert got.heartbeats[-1] > 0
    assert got.drop_ratio <= 0.001


@settings(max_examples=60)
@given(st.lists(st.floats(0.0, 1e6), min_size=1, max_size=600), st.integers(1, 40))
def test_a_tail_answers_ranks_on_the_safe_side(values: list[float], every: int) -> None:
    tail = Tail(reach=0.2)
    for i in range(0, len(values), every):
        part = np.array(values[i : i + every])
        tail.add(part, None, len(part), float(part.max()), 0.0)
    assert tail.rows == pytest.approx(len(values))
    for count in (0.0, 1.0, 0.05 * len(values), 0.1 * len(values)):
        assert np.sum(np.array(values) > tail.above(count)) <= count


def test_a_standardised_tail_forgets_long_delays_within_some_hundred_rows() -> None:
    random = np.random.default_rng(18)
    plain, standardised = Tail(0.006), StandardisedTail(0.006)
    for location, scale, batches in ((100.0, 30.0, 2_000), (10.0, 3.0, 60)):
        for _ in range(batches):
            lateness = random.normal(location, scale, 10)
            for tail in (plain, standardised):
                tail.add(lateness, None, 10, float(lateness.max()), 0.0001)
    assert standardised.above(0.001 * standardised.rows) == pytest.approx(10 + 3.1 * 3, rel=0.4)
    assert plain.above(0.001 * plain.rows) > 150


@pytest.mark.parametrize(("rises", "held"), [(1.0, False), (0.0, True)])
def test_only_a_stream_that_stands_still_is_held_by_rows_of_a_while_ago(rises: float, held: bool) -> None:
    standstill = StallGuard()
    for k in range(64):
        value = rises * k - 20.0
        standstill.observe(np.array([value]), None, 1, float(k), value)
    heartbeat = standstill.hold(30.0, 64.0, 100.0, 0.001, 0.0)
    assert (heartbeat < 30.0) == held


@pytest.mark.parametrize(("rises", "balance", "held"), [(1.0, 16.0, False), (1.0, 15.0, True), (0.0, 1e6, True)])
def test_few_rows_are_taken_to_stand_still_only_while_that_cannot_be_found_out(
    rises: float, balance: float, held: bool
) -> None:
    standstill = StallGuard()
    for k in range(64):
        value = rises * k - 20.0
        standstill.observe(np.array([value]), None, 1, float(k), value)
    # of the rows within half a wait of ten there are too few to tell
    heartbeat = standstill.hold(43.5, 64.0, 10.0, 0.001, balance)
    assert (heartbeat < 43.5) == held


@pytest.mark.parametrize("ratio", [0.05, 0.01])
def test_a_stream_of_few_rows_a_wait_is_not_taken_to_stand_still(ratio: float) -> None:
    trace = make_stream("kim2007", 7)
    got = outcome(trace, ratio, every=2)
    assert got.late <= ratio * got.rows
    assert got.mean_wait <= 1.1 * clairvoyant_wait(trace, ratio)


def test_a_source_that_has_always_been_slow_has_not_stalled() -> None:
    fronts = SourceFronts()
    for k in range(300):
        fronts.observe(np.array([k - 50.0, k - 1.0]), None, np.array([0, 1]), float(k), 10.0)
    at = {"wait": 10.0, "balance": 1_000.0, "usual": 5.0, "idle_after": 1_000.0}
    assert fronts.lowest_binding(now=299.0, **at)[0] == math.inf
    # what it delivers within a wait must be paid for all the same
    assert fronts.lowest_binding(now=299.0, **{**at, "balance": 1.0}) == (249.0, 0)
    # cut off, and back with what it had
    fronts.observe(np.array([250.0]), None, np.array([0]), 400.0, 10.0)
    assert fronts.lowest_binding(now=400.0, **at) == (250.0, 0)


def test_a_source_far_behind_from_its_first_row_on_has_stalled_until_it_is_known_to_be_slow() -> None:
    fronts = SourceFronts()
    bound = []
    for k in range(300):
        fronts.observe(np.array([k - 50.0, k - 1.0]), None, np.array([0, 1]), float(k), 10.0)
        bound.append(fronts.lowest_binding(float(k), 10.0, 1_000.0, 5.0, 1_000.0)[0] < math.inf)
    assert all(bound[:10])
    assert not any(bound[200:])


def test_a_budget_is_spent_and_earned_back() -> None:
    budget = Budget(0.01)
    budget.count(10_000, 100)
    assert budget.balance == 0
    assert budget.rate() == 0
    budget.count(10_000, 0)
    assert budget.balance == 100
    assert budget.rate() > 0.01


def test_rows_that_come_in_lumps_are_expected_to_be_lost_in_lumps() -> None:
    even, lumpy = Budget(0.05), Budget(0.05)
    for k in range(40):
        lost = float(k % 4 == 0)
        even.see_cluster(lost, 10, float(k), 1.0)
        lumpy.see_cluster(lost, 10, float(k), 1.0)
    assert even.cluster() < 2
    assert even.next_cluster() < 2
    lumpy.see_cluster(0.0, 400, 40.5, 1.0)
    # a tenth of the rows around a lost one was lost too, so of this lump some forty would be, though none was
    assert lumpy.cluster() < 2
    assert 20 < lumpy.next_cluster() < 60


@pytest.mark.parametrize(("count", "ratio"), [(12, 0.1), (40, 0.05), (40, 0.01)])
def test_one_more_source_is_later_than_foretold_as_rarely_as_promised(count: int, ratio: float) -> None:
    random = np.random.default_rng(19)
    trials, later = 4_000, 0
    for _ in range(trials):
        drawn = 200.0 * random.lognormal(0.0, 1.0, count + 1)
        heard = NewSourceBound()
        heard.observe(drawn[:count], None, np.arange(count))
        later += drawn[count] > heard.lateness(ratio)
    # a source that weighs more than may be lost has to be rarer by as much
    chance = ratio * min(ratio * count, 1.0)
    assert abs(later / trials - chance) <= 3.0 * np.sqrt(chance * (1.0 - chance) / trials)


def test_unheard_sources_are_the_same_from_cells_and_after_a_resume() -> None:
    lateness, sources = np.repeat(np.arange(1.0, 15.0), 3), np.repeat(np.arange(14)[::-1], 3)
    rows, cells, resumed = NewSourceBound(), NewSourceBound(), NewSourceBound()
    rows.observe(lateness[:20], None, sources[:20])
    resumed.resume(json.loads(json.dumps(rows.snapshot())))
    for heard in (rows, resumed):
        heard.observe(lateness[20:], None, sources[20:])
    cells.observe(np.arange(1.0, 15.0), np.full(14, 3), np.arange(14)[::-1])
    assert rows.lateness(0.01) > 14.0
    assert rows.lateness(0.01) == resumed.lateness(0.01) == pytest.approx(cells.lateness(0.01))
