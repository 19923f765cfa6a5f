"""The default method keeps the drop ratio on difficult streams, and its parts behave as described."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from slackwater.control.disorder import Batch, DisorderController, make_method
from slackwater.control.disorder.budgeted.budget import LEAST_SPENT, Budget
from slackwater.control.disorder.budgeted.fronts import SourceFronts
from slackwater.control.disorder.budgeted.method import BudgetedQuantile
from slackwater.control.disorder.budgeted.new_source_bound import NewSourceBound
from slackwater.control.disorder.budgeted.tail import Tail
from slackwater.promises import Completeness
from slackwater.sim.driver import Batches, Outcome, clairvoyant_wait, run
from slackwater.sim.spark_batches import SparkBatches, Trigger, run_on_spark
from slackwater.sim.streams import make_stream
from slackwater.sim.streams.arrange import in_arrival_order
from slackwater.sim.trace import Trace
from slackwater.units import DAY_MS


def outcome(trace: Trace, ratio: float, every: int = 10, **options: bool) -> Outcome:
    promise = Completeness(ratio)
    controller = DisorderController(promise, make_method("budgeted-quantile", promise))
    return run(trace, controller, Batches.every(trace, every), **options)


@pytest.mark.parametrize("ratio", [0.05, 0.01])
@pytest.mark.parametrize("hide_arrivals", [False, True])
def test_steady_stream_waits_little_longer_than_clairvoyant(ratio: float, hide_arrivals: bool) -> None:
    random = np.random.default_rng(11)
    trace = in_arrival_order("test", np.cumsum(random.exponential(1.0, 16_000)), random.exponential(50.0, 16_000))
    got = outcome(trace, ratio, hide_arrivals=hide_arrivals)
    assert got.late <= ratio * got.rows
    assert got.mean_wait <= 1.25 * clairvoyant_wait(trace, ratio)


def test_backlog_after_a_stall_is_not_lost() -> None:
    random = np.random.default_rng(12)
    values = np.cumsum(random.exponential(1.0, 16_000))
    lateness = random.exponential(30.0, 16_000)
    stalled = (values > 6_000) & (values < 7_500)
    got = outcome(in_arrival_order("test", values, np.where(stalled, 7_500 - values + lateness, lateness)), 0.01)
    assert got.late <= 0.01 * got.rows


def test_long_batches_are_no_stall_at_the_start() -> None:
    random = np.random.default_rng(14)
    values = np.cumsum(random.exponential(0.1, 20_000))
    trace, promise = in_arrival_order("test", values, random.exponential(2.0, 20_000)), Completeness(0.01)
    controller = DisorderController(promise, make_method("budgeted-quantile", promise))
    got = run_on_spark(trace, controller, SparkBatches.of(trace, Trigger(interval_ms=0.0, fixed_ms=300.0)))
    assert "after-stall" not in {cause.kind for cause in got.causes}


def test_source_that_falls_behind_is_not_lost() -> None:
    random = np.random.default_rng(13)
    values = np.cumsum(random.exponential(1.0, 16_000))
    sources = random.integers(0, 4, 16_000)
    behind = (sources == 3) & (values > 6_000) & (values < 10_000)
    backlog = np.where(values < 8_000, values - 6_000, 10_000 - values)
    trace = in_arrival_order("test", values, np.where(behind, backlog, 0.0) + random.exponential(5.0, 16_000), sources)
    assert outcome(trace, 0.01).late <= 0.01 * trace.rows


@pytest.mark.parametrize("seed", [0, 82, 171, 197, 198, 243])
def test_new_source_much_slower_than_all_others_is_not_lost(seed: int) -> None:
    trace = make_stream("multi-source", seed)
    assert outcome(trace, 0.001, every=100).late <= 0.001 * trace.rows


def test_single_extreme_order_number_without_a_clock_is_ignored() -> None:
    random = np.random.default_rng(14)
    order = np.argsort(np.arange(20_000) + random.exponential(20.0, 20_000), kind="stable")
    values = order.astype(np.float64)
    values[9_000] = 1e15
    got = outcome(Trace("orders", values), 0.01, every=5)
    assert got.late <= 0.01 * got.rows
    assert got.heartbeats[-1] > 15_000


def test_row_a_year_late_does_not_lengthen_the_wait_when_the_budget_is_spent() -> None:
    """A jump of the lateness overdraws the budget, long after a single row that was a year late."""
    random = np.random.default_rng(26)
    lateness_ms = np.where(np.arange(11_000) < 10_000, 2_000.0, 12_000.0) * random.random(11_000)
    trace = in_arrival_order("test", 1e12 + 100.0 * np.arange(11_000.0), lateness_ms)
    trace.values[5_000] -= 365 * DAY_MS
    got = outcome(trace, 0.01, every=50)
    late = np.cumsum(trace.values < np.repeat(got.heartbeats, np.diff(np.concatenate(([0], got.ends)))))
    assert np.any(late[got.ends - 1] > 0.01 * got.ends), "the jump overdraws the budget"
    assert trace.arrivals is not None
    waits_ms = trace.arrivals[got.ends - 1] - got.heartbeats
    assert waits_ms[np.isfinite(waits_ms)].max() < 10 * 12_000


@settings(max_examples=40)
@given(st.lists(st.tuples(st.integers(0, 50), st.integers(100, 400)), min_size=1, max_size=59))
def test_budget_is_not_spent_before_three_promised_drops(drawn: list[tuple[int, int]]) -> None:
    method = BudgetedQuantile(Completeness(0.05))
    clock, heartbeat, reference, longest = 0.0, -np.inf, None, 0.0
    for gap, late in drawn:
        clock += gap
        longest = max(longest, (clock if reference is None else reference) - (clock - late))
        method.observe(Batch(np.array([float(clock - late)]), clock=clock, late=int(clock - late < heartbeat)))
        decided, reference = method.heartbeat(clock), clock
        assert decided <= max(heartbeat, clock - 1.3 * longest)
        heartbeat = decided


def test_snapshots_are_small() -> None:
    random = np.random.default_rng(15)
    promise = Completeness(0.01)
    values = np.cumsum(random.exponential(1.0, 20_000))
    trace = in_arrival_order("test", values, random.lognormal(3.0, 1.0, 20_000), random.integers(0, 400, 20_000))
    for sources, limit in ((None, 20_000), (trace.sources, 100_000)):
        controller = DisorderController(promise, make_method("budgeted-quantile", promise))
        run(Trace("t", trace.values, trace.arrivals, sources), controller, Batches.every(trace, 200))
        assert len(json.dumps(controller.snapshot())) <= limit


def test_snapshot_of_an_older_format_restores_the_budget_only() -> None:
    learned = make_method("budgeted-quantile", Completeness(0.01))
    values = np.arange(1_000.0)
    learned.observe(Batch(values, clock=1_000.0, late=7))
    learned.heartbeat(1_000.0)
    older = {name: part for name, part in learned.snapshot().items() if name != "format"}
    resumed = make_method("budgeted-quantile", Completeness(0.01))
    resumed.resume({**older, "tails": [[]], "numbers": [1.0]})
    assert resumed.snapshot()["budget"] == learned.snapshot()["budget"]
    assert resumed.heartbeat(1_000.0) == -math.inf
    resumed.observe(Batch(values, clock=1_000.0))


def test_best_effort_advances_and_loses_almost_no_row() -> None:
    random = np.random.default_rng(16)
    trace = in_arrival_order("test", np.cumsum(random.exponential(1.0, 20_000)), random.exponential(10.0, 20_000))
    got = outcome(trace, 0.0)
    assert got.heartbeats[-1] > 0
    assert got.drop_ratio <= 0.001


@settings(max_examples=60)
@given(st.lists(st.floats(0.0, 1e6), min_size=1, max_size=600), st.integers(1, 40))
def test_tail_never_underestimates_a_rank(values: list[float], every: int) -> None:
    tail = Tail(reach=0.2)
    for i in range(0, len(values), every):
        part = np.array(values[i : i + every])
        tail.add(part, None, len(part), float(part.max()), 0.0)
    assert tail.rows == pytest.approx(len(values))
    for count in (0.0, 1.0, 0.05 * len(values), 0.1 * len(values)):
        assert np.sum(np.array(values) > tail.above(count)) <= count


@pytest.mark.parametrize("ratio", [0.05, 0.01])
def test_few_rows_per_wait_do_not_count_as_a_standstill(ratio: float) -> None:
    trace = make_stream("kim2007", 7)
    got = outcome(trace, ratio, every=2)
    assert got.late <= ratio * got.rows
    assert got.mean_wait <= 1.1 * clairvoyant_wait(trace, ratio)


def test_source_that_was_always_slow_has_not_stalled() -> None:
    fronts = SourceFronts()
    for k in range(300):
        fronts.observe(np.array([k - 50.0, k - 1.0]), None, np.array([0, 1]), float(k), 10.0)
    at = {"wait": 10.0, "balance": 1_000.0, "usual": 5.0, "idle_after": 1_000.0}
    assert fronts.lowest_limit(now=299.0, **at)[0] == math.inf
    # it still limits the heartbeat if the balance does not cover its rows of one wait
    assert fronts.lowest_limit(now=299.0, **{**at, "balance": 1.0}) == (249.0, 0)
    # it was cut off and comes back with old rows
    fronts.observe(np.array([250.0]), None, np.array([0]), 400.0, 10.0)
    assert fronts.lowest_limit(now=400.0, **at) == (250.0, 0)


def test_slow_source_counts_as_stalled_until_it_is_known_to_be_slow() -> None:
    fronts = SourceFronts()
    limits = []
    for k in range(300):
        fronts.observe(np.array([k - 50.0, k - 1.0]), None, np.array([0, 1]), float(k), 10.0)
        limits.append(fronts.lowest_limit(float(k), 10.0, 1_000.0, 5.0, 1_000.0)[0] < math.inf)
    assert all(limits[:10])
    assert not any(limits[200:])


def test_budget_is_spent_and_earned_back() -> None:
    budget = Budget(0.01)
    budget.count(10_000, 100)
    assert budget.balance == 0
    assert budget.rate() == LEAST_SPENT * 0.01
    budget.count(0, 1_000_000)
    assert budget.rate() == LEAST_SPENT * 0.01, "a deficit lengthens the wait by a bounded amount"
    budget.late = 100
    budget.count(10_000, 0)
    assert budget.balance == 100
    assert budget.rate() > 0.01


def test_next_cluster_grows_with_the_rows_of_one_wait() -> None:
    even, lumpy = Budget(0.05), Budget(0.05)
    for k in range(40):
        lost = float(k % 4 == 0)
        even.see_cluster(lost, 10, float(k), 1.0)
        lumpy.see_cluster(lost, 10, float(k), 1.0)
    assert even.cluster() < 2
    assert even.next_cluster() < 2
    lumpy.see_cluster(0.0, 400, 40.5, 1.0)
    # a tenth of the rows of one wait was lost before, so about 40 of these 400 rows would be
    assert lumpy.cluster() < 2
    assert 20 < lumpy.next_cluster() < 60


@pytest.mark.parametrize(("count", "ratio"), [(12, 0.1), (40, 0.05), (40, 0.01)])
def test_new_source_exceeds_its_bound_as_rarely_as_promised(count: int, ratio: float) -> None:
    random = np.random.default_rng(19)
    trials, later = 4_000, 0
    for _ in range(trials):
        drawn = 200.0 * random.lognormal(0.0, 1.0, count + 1)
        bound = NewSourceBound()
        bound.observe(drawn[:count], None, np.arange(count))
        later += drawn[count] > bound.lateness(ratio)
    # a source with a larger share of the rows than D must exceed the bound less often, in proportion
    probability = ratio * min(ratio * count, 1.0)
    assert abs(later / trials - probability) <= 3.0 * np.sqrt(probability * (1.0 - probability) / trials)


def test_new_source_bound_is_the_same_from_cells_and_after_a_resume() -> None:
    lateness, sources = np.repeat(np.arange(1.0, 15.0), 3), np.repeat(np.arange(14)[::-1], 3)
    rows, cells, resumed = NewSourceBound(), NewSourceBound(), NewSourceBound()
    rows.observe(lateness[:20], None, sources[:20])
    resumed.resume(json.loads(json.dumps(rows.snapshot())))
    for bound in (rows, resumed):
        bound.observe(lateness[20:], None, sources[20:])
    cells.observe(np.arange(1.0, 15.0), np.full(14, 3), np.arange(14)[::-1])
    assert rows.lateness(0.01) > 14.0
    assert rows.lateness(0.01) == resumed.lateness(0.01) == pytest.approx(cells.lateness(0.01))
