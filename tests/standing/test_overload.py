"""Under overload: which queries are evaluated, what their missed deadlines cost, and that restarts change nothing."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray

from slackwater.control.deferral.scheduler import order_names, penalty
from slackwater.errors import InvalidOption
from slackwater.kernel.standing.evaluation_cost import EvaluationCost
from slackwater.kernel.standing.evaluator import StandingEvaluator
from slackwater.kernel.standing.options import EvaluatorOptions
from slackwater.kernel.standing.queries import QuerySet
from slackwater.kernel.standing.schedule import Schedule
from slackwater.kernel.standing.shard import Shard
from slackwater.kernel.standing.shard_counts import ShardCounts
from slackwater.kernel.standing.tick_budget import Processor
from slackwater.kernel.standing.weights import ShardWeights
from slackwater.sim.brownian import brownian_streams

QUERIES = 40
ROUNDING = 2.0**-13  # of the drift and diffusion that a shard keeps


def steps(ms: float) -> Callable[[], float]:
    """A processor clock on which every measured piece of work takes ``ms``."""
    reading = [0.0]

    def read() -> float:
        reading[0] += ms
        return reading[0]

    return read


def one_stream_queries(bound: float = 3.0) -> QuerySet:
    """Each query is one of four streams, times its own weight."""
    weights = np.eye(4)[np.arange(QUERIES) % 4] * np.linspace(0.5, 2.0, QUERIES)[:, None]
    return QuerySet.of(np.arange(QUERIES), weights, bound, 0.9)


def shard_weights(queries: int = QUERIES) -> ShardWeights:
    rows = {"query": np.arange(queries), "stream": [f"s{at % 4}" for at in range(queries)], "weight": 1.0}
    return ShardWeights(pd.DataFrame(rows), 1.0, 0.9)


def run_shard(
    ticks: int, clock: Callable[[], float], pace: float = 1.0, **options: Any
) -> tuple[list[pd.DataFrame], list[ShardCounts]]:
    """One tick per second of the stream, from a saved state each time, while the clock moves on by ``1 / pace`` s."""
    table, state, found, counts = brownian_streams(4, ticks, seed=5, period_ms=1e3), None, [], []
    for number, (at, row) in enumerate(zip(table.times, table.values, strict=True)):
        shard = Shard(shard_weights(), EvaluatorOptions(**options), 0, state, Processor(0.5, clock))
        found.append(shard.tick(["s0", "s1", "s2", "s3"], np.full(4, at), row, 1e9 + number * 1e3 / pace))
        shard.learn_cost(0.0)
        counts.append(shard.counts)
        state = shard.state()
    return found, counts


def test_a_live_shard_evaluates_only_what_the_measured_cost_allows() -> None:
    found, counts = run_shard(40, steps(500.0), method="brownian")
    assert len(found[0]) == QUERIES, "the cost is not known yet"
    assert all(count.evaluation_ms == 1000.0 for count in counts if count.evaluated)
    # 40 queries took 1000 ms and 400 ms are allowed: at most 16 at the next tick.
    assert [len(one) for one in found[2:5]] == [16, *(len(one) for one in found[3:5])]
    late = counts[10:]
    assert all(count.postponed == QUERIES - count.evaluated for count in late if count.overdue == count.postponed)
    assert sum(count.postponed for count in late) > 0
    assert sum(count.missed for count in late) > 0
    assert sum(count.penalty for count in late) > 0.0


def test_a_replay_is_not_limited() -> None:
    _, counts = run_shard(40, steps(500.0), pace=50.0)
    assert sum(count.postponed for count in counts) == 0


def test_without_overload_nothing_is_postponed_and_the_order_changes_nothing() -> None:
    plain, _ = run_shard(60, steps(0.1))
    for order in order_names():
        found, counts = run_shard(60, steps(0.1), order=order)
        assert sum(count.postponed for count in counts) == 0
        for one, other in zip(found, plain, strict=True):
            pd.testing.assert_frame_equal(one, other)


def test_a_repeated_micro_batch_evaluates_the_same_queries_whatever_it_costs_now() -> None:
    table, state = brownian_streams(4, 40, seed=5, period_ms=1e3), None
    for number, (at, row) in enumerate(zip(table.times, table.values, strict=True)):
        answers = []
        for clock in (steps(500.0), steps(90_000.0)):
            shard = Shard(shard_weights(), EvaluatorOptions(), 0, state, Processor(0.5, clock))
            answers.append(shard.tick(["s0", "s1", "s2", "s3"], np.full(4, at), row, 1e9 + number * 1e3))
        pd.testing.assert_frame_equal(answers[0], answers[1])
        again = Shard(shard_weights(), EvaluatorOptions(), 0, state, Processor(0.5, steps(500.0)))
        again.tick(["s0", "s1", "s2", "s3"], np.full(4, at), row, 1e9 + number * 1e3)
        again.learn_cost(0.0)
        state = again.state()


@pytest.mark.parametrize("order", order_names())
def test_every_missed_deadline_is_counted_once_with_its_penalty(order: str) -> None:
    """Compares with the answers themselves: each says its deadline, and the next one when it came."""
    some = one_stream_queries()
    evaluator = StandingEvaluator(some, EvaluatorOptions(method="brownian", capacity=6, order=order))
    scale = np.abs(some.weights.toarray()).sum(axis=1)
    table = brownian_streams(4, 300, seed=2, period_ms=1.0)
    deadline, drift, diffusion = np.full(QUERIES, np.inf), np.zeros(QUERIES), np.zeros(QUERIES)
    missed, total, expected_missed, expected_penalty = 0, 0.0, 0, 0.0
    for at, row in zip(table.times, table.values, strict=True):
        answers = evaluator.tick(float(at), np.arange(4), np.full(4, at), row)
        missed, total = missed + evaluator.schedule.missed, total + evaluator.schedule.penalty
        assert len(answers) <= 6
        late = np.maximum(answers.at - deadline[answers.query], 0.0)
        known = np.isfinite(diffusion[answers.query])
        expected_missed += int(np.count_nonzero(late > 0.0))
        mine = answers.query[known]
        expected_penalty += float(penalty(late[known], drift[mine], diffusion[mine]).sum())
        deadline[answers.query], drift[answers.query] = answers.next_at, answers.drift
        diffusion[answers.query] = scale[answers.query] * evaluator.estimator.diffusion[answers.query % 4]
    waiting = np.flatnonzero((deadline < table.times[-1]) & np.isfinite(diffusion))
    assert evaluator.schedule.overdue == np.count_nonzero(deadline < table.times[-1])
    expected_missed += int(np.count_nonzero(deadline < table.times[-1]))
    expected_penalty += float(penalty(table.times[-1] - deadline[waiting], drift[waiting], diffusion[waiting]).sum())
    assert expected_missed > 100
    assert missed == expected_missed
    assert total == pytest.approx(expected_penalty, rel=ROUNDING)


def chosen(order: str, next_at: list[float], answered: list[int], diffusion: list[float]) -> list[int]:
    """The two of some due queries that come first, at 10."""
    size = len(next_at)
    schedule = Schedule(np.ones(size), EvaluatorOptions(capacity=2, order=order), EvaluationCost())
    every: NDArray[np.int64] = np.arange(size)
    schedule.set_deadlines(every, np.array(next_at), np.zeros(size), np.square(diffusion))
    return [int(query) for query in schedule.select(every, np.array(answered), 10.0, 1.0, np.inf)]


def test_each_order_takes_its_own_queries_first() -> None:
    due = {"next_at": [9.0, 9.5, 10.5, 10.6], "answered": [5, 3, 4, 2], "diffusion": [1.0, 1.0, 9.0, 8.0]}
    assert chosen("edf", **due) == [0, 1]  # type: ignore[arg-type]
    assert chosen("fifo", **due) == [1, 3]  # type: ignore[arg-type]
    assert chosen("least-penalty", **due) == [2, 3]  # type: ignore[arg-type]


@pytest.mark.parametrize("order", order_names())
def test_a_query_without_an_answer_comes_first(order: str) -> None:
    schedule = Schedule(np.ones(3), EvaluatorOptions(capacity=1, order=order), EvaluationCost())
    schedule.set_deadlines(np.arange(2), np.array([8.0, 9.0]), np.full(2, 5.0), np.full(2, 1e6))
    assert schedule.select(np.arange(3), np.array([4, 5, 0]), 10.0, 1.0, np.inf).tolist() == [2]


def test_the_least_penalty_is_least_on_recorded_deadlines() -> None:
    """Zhu 2004, §5, against the two plain orders, on the same rows."""
    table = brownian_streams(4, 400, seed=8, period_ms=1.0)
    found = {}
    for order in order_names():
        evaluator = StandingEvaluator(one_stream_queries(), EvaluatorOptions(capacity=4, order=order))
        found[order] = 0.0
        for at, row in zip(table.times, table.values, strict=True):
            evaluator.tick(float(at), np.arange(4), np.full(4, at), row)
            found[order] += evaluator.schedule.penalty
    assert found["least-penalty"] < min(found["edf"], found["fifo"])


def test_a_deferral_that_had_to_wait_teaches_no_caution() -> None:
    table = brownian_streams(4, 400, seed=8, period_ms=1.0)
    caution = {}
    for capacity in (None, 2):
        evaluator = StandingEvaluator(one_stream_queries(), EvaluatorOptions(capacity=capacity))
        for at, row in zip(table.times, table.values, strict=True):
            evaluator.tick(float(at), np.arange(4), np.full(4, at), row)
        learned = evaluator.snapshot()
        caution[capacity] = np.maximum(learned["query.hit_caution"], learned["query.fidelity_caution"])
    assert caution[2].max() <= caution[None].max()


def test_audits_still_see_the_answers_that_had_to_wait() -> None:
    table, audits = brownian_streams(4, 800, seed=8, period_ms=1.0), {}
    for capacity in (None, 2):
        evaluator = StandingEvaluator(one_stream_queries(), EvaluatorOptions(capacity=capacity))
        for at, row in zip(table.times, table.values, strict=True):
            evaluator.tick(float(at), np.arange(4), np.full(4, at), row)
        audited, within, *_ = evaluator.audits
        audits[capacity] = within / audited
    assert audits[2] < audits[None]


@pytest.mark.parametrize(
    ("options", "condition"),
    [
        ({"order": "edf"}, "order-without-limit"),
        ({"value_and_drift": True, "aggregate": "max", "window": 5.0}, "drift-of-extreme"),
    ],
)
def test_an_option_without_effect_is_refused(options: dict[str, Any], condition: str) -> None:
    with pytest.raises(InvalidOption, match=condition):
        StandingEvaluator(one_stream_queries(), EvaluatorOptions(**options))


def test_an_order_is_taken_where_there_is_a_limit() -> None:
    options = EvaluatorOptions(order="edf")
    StandingEvaluator(one_stream_queries(), options, cost=EvaluationCost(steps(1.0)))
    StandingEvaluator(one_stream_queries(), replace(options, capacity=3))
