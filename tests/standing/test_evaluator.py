"""The evaluator gives exact answers, keeps its promises and survives restarts."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import sparse

from slackwater.errors import InvalidOption
from slackwater.kernel.standing.evaluator import StandingEvaluator
from slackwater.kernel.standing.options import EvaluatorOptions
from slackwater.kernel.standing.queries import QuerySet
from slackwater.sim.brownian import brownian_streams
from slackwater.sim.standing import average_queries, hide, run_standing, true_answers

STREAMS = np.arange(4)


def queries(bound: float = 2.0, confidence: float = 0.9, relative: bool = False) -> QuerySet:
    weights = np.array([[0.5, 0.5, 0.0, 0.0], [0.0, 1.0, 2.0, -1.0], [0.25, 0.25, 0.25, 0.25]])
    return QuerySet.of(np.array(["a", "b", "c"]), weights, bound, confidence, relative)


def random_weights(queries: int, streams: int, width: int, seed: int = 0) -> sparse.csr_matrix:
    """Weights of queries over ``width`` streams each."""
    draw = np.random.default_rng(seed)
    members = np.array([np.sort(draw.choice(streams, width, replace=False)) for _ in range(queries)])
    starts = np.arange(0, queries * width + 1, width)
    return sparse.csr_matrix((draw.standard_normal(queries * width), members.ravel(), starts), shape=(queries, streams))


def walk(ticks: int, streams: int = 4, seed: int = 0) -> NDArray[np.float64]:
    return brownian_streams(streams, ticks, seed=seed).values


def drive(evaluator: StandingEvaluator, values: NDArray[np.float64], start: int = 0) -> list[tuple[int, int, float]]:
    """Feed one tick per row of ``values``; return (tick, query, answer) of every evaluation."""
    found = []
    for tick, row in enumerate(values, start):
        answers = evaluator.tick(float(tick), np.arange(len(row)), np.full(len(row), float(tick)), row)
        found += [(tick, int(q), float(v)) for q, v in zip(answers.query, answers.value, strict=True)]
    return found


@pytest.mark.parametrize("method", ["brownian", "calibrated", "economical"])
@pytest.mark.parametrize(
    ("aggregate", "window", "landmark"),
    [("linear", None, None), ("max", 7.0, None), ("min", 7.0, None), ("max", None, 5.0), ("min", None, 5.0)],
)
def test_every_answer_is_exact_at_its_tick(
    method: str, aggregate: str, window: float | None, landmark: float | None
) -> None:
    table = brownian_streams(4, 150, seed=3, period_ms=1.0)
    options = EvaluatorOptions(aggregate=aggregate, window=window, landmark=landmark, method=method)  # type: ignore[arg-type]
    truth = true_answers(table, queries(), options)
    found = drive(StandingEvaluator(queries(), options), table.values)
    assert len(found) < 3 * 150
    for tick, query, value in found:
        if np.isnan(truth[tick, query]):
            assert np.isnan(value)
        else:
            assert value == pytest.approx(truth[tick, query], abs=1e-9)


def test_under_brownian_motion_the_hit_rate_is_the_confidence() -> None:
    table = brownian_streams(10, 1_200, seed=1)
    weights = np.tile(average_queries(10, 9, 10), (3, 1))
    some = QuerySet.of(np.arange(30), weights, 1.0, np.repeat([0.95, 0.9, 0.85], 10))
    run = run_standing(table, some, EvaluatorOptions())
    for at, confidence in enumerate((0.95, 0.9, 0.85)):
        mine = slice(10 * at, 10 * at + 10)
        # Three standard errors of some 3 500 evaluations of overlapping averages.
        assert abs(run.hit_rate[mine].mean() - confidence) < 0.02
        assert run.fidelity[mine].mean() > confidence


@pytest.mark.parametrize(("correlation", "freedom"), [(0.5, np.inf), (0.0, 2.5), (0.5, 2.5)])
def test_calibration_keeps_the_promise_where_the_plain_model_breaks_it(correlation: float, freedom: float) -> None:
    table = brownian_streams(10, 900, seed=2, correlation=correlation, degrees_of_freedom=freedom)
    average = np.diff(table.values @ np.full(10, 0.1))
    some = QuerySet.of(np.arange(10), average_queries(10, 9, 10), 4.0 * average.std(), 0.9)
    calibrated = run_standing(table, some, EvaluatorOptions())
    assert calibrated.fidelity.mean() >= 0.9
    if correlation:
        plain = run_standing(table, some, EvaluatorOptions(method="brownian"))
        assert plain.fidelity.mean() < 0.9


def test_a_bound_of_zero_is_an_answer_at_every_tick() -> None:
    found = drive(StandingEvaluator(queries(bound=0.0)), walk(50))
    assert len(found) == 150


def test_relative_bounds_scale_with_the_answer() -> None:
    evaluator = StandingEvaluator(queries(bound=0.001, relative=True))
    values = walk(30)
    drive(evaluator, values[:-1])
    evaluator.next_at[:] = -np.inf
    answers = evaluator.tick(29.0, STREAMS, np.full(4, 29.0), values[-1])
    assert answers.error_bound == pytest.approx(0.001 * np.abs(answers.value))


def test_a_query_is_withheld_until_all_its_streams_have_appeared() -> None:
    evaluator = StandingEvaluator(queries())
    three = np.arange(3)
    for tick in range(20):
        answers = evaluator.tick(float(tick), three, np.full(3, float(tick)), np.arange(3.0))
        assert set(answers.query.tolist()) <= {0}
    assert evaluator.withheld.tolist() == [1, 2]
    answers = evaluator.tick(20.0, STREAMS, np.full(4, 20.0), np.arange(4.0))
    assert {1, 2} <= set(answers.query.tolist())
    assert len(evaluator.withheld) == 0


def test_no_queries_and_no_weights() -> None:
    none = QuerySet.of(np.array([]), np.zeros((0, 4)), 1.0, 0.9)
    assert drive(StandingEvaluator(none), walk(5)) == []
    empty = StandingEvaluator(QuerySet.of(np.array(["x"]), np.zeros((1, 4)), 1.0, 0.9))
    assert drive(empty, walk(5)) == []
    assert empty.withheld.tolist() == [0]


def test_a_tick_in_the_past_counts_as_the_newest_tick() -> None:
    evaluator = StandingEvaluator(queries())
    drive(evaluator, walk(20))
    evaluator.tick(3.0, STREAMS, np.full(4, 3.0), np.zeros(4))
    assert evaluator.now == 19.0
    assert evaluator.estimator.intake.backwards == 4


def test_during_a_blackout_the_clock_alone_triggers_answers() -> None:
    evaluator = StandingEvaluator(queries(bound=0.5))
    values = walk(60)
    drive(evaluator, values)
    nothing = np.empty(0)
    bounds = []
    for tick in range(60, 90):
        answers = evaluator.tick(float(tick), nothing.astype(np.int64), nothing, nothing)
        if len(answers):
            bounds.append((int(answers.interrupted.max()), float(answers.error_bound.max())))
    assert bounds[-1][0] > 0
    interrupted = [error for silent, error in bounds if silent]
    assert interrupted == sorted(interrupted)  # the error bound grows with the silence
    answers = evaluator.tick(90.0, STREAMS, np.full(4, 90.0), values[-1])
    assert answers.query.tolist() == [0, 1, 2]  # evaluated as soon as the streams return
    assert answers.interrupted.tolist() == [0, 0, 0]


def test_sum_of_errors_gives_the_larger_bound() -> None:
    bounds = {}
    for plain_sum in (False, True):
        evaluator = StandingEvaluator(queries(), EvaluatorOptions(method="brownian", sum_of_errors=plain_sum))
        drive(evaluator, walk(60))
        evaluator.next_at[:] = -np.inf
        answers = evaluator.tick(80.0, np.array([0]), np.array([80.0]), np.array([1000.0]))
        bounds[plain_sum] = answers.error_bound
        spread = evaluator.estimator.diffusion[1:] * np.sqrt(80.0 - 59.0)
        expected = 1.6448536 * (2 * spread[1] + spread[0] + spread[2] if plain_sum else np.sqrt(
            (2 * spread[1]) ** 2 + spread[0] ** 2 + spread[2] ** 2
        ))  # fmt: skip
        assert answers.error_bound[1] == pytest.approx(expected, rel=1e-6)
    assert np.all(bounds[True] >= bounds[False] * (1 - 1e-12))


def test_interrupted_answers_are_within_their_error_bound() -> None:
    table = brownian_streams(10, 1_500, seed=8)
    some = QuerySet.of(np.arange(10), average_queries(10, 9, 10), 0.5, 0.9)
    hidden = hide(table, 2, 30 * table.period_ms, seed=1)
    run = run_standing(hidden, some, EvaluatorOptions(while_interrupted=table.period_ms), full=table)
    inside = np.mean([answer.error <= answer.error_bound for answer in run.interrupted_answers])
    assert len(run.interrupted_answers) > 500
    assert inside > 0.8  # five episodes of ten overlapping averages: far fewer independent errors than answers


def test_a_restart_changes_no_answer() -> None:
    values = walk(200)
    whole = drive(StandingEvaluator(queries(), seed=4), values)
    first = StandingEvaluator(queries(), seed=4)
    found = drive(first, values[:90])
    second = StandingEvaluator(queries(), seed=4)
    second.resume(first.snapshot())
    assert found + drive(second, values[90:], 90) == whole


def test_a_restart_at_every_tick_changes_no_answer() -> None:
    some = QuerySet.of(np.arange(400), random_weights(400, 12, 4, seed=4), 20.0, 0.9)
    whole, draw = StandingEvaluator(some), np.random.default_rng(6)
    values, snapshot = np.zeros(12), whole.snapshot()
    for tick in range(80):
        values = values + draw.standard_normal(12)
        rows = np.arange(12), np.full(12, float(tick)), values
        expected = whole.tick(float(tick), *rows)
        if tick < 40:
            snapshot = {name: np.array(array) for name, array in whole.snapshot().items()}
            continue
        restarted = StandingEvaluator(some)
        restarted.resume(snapshot)
        found = restarted.tick(float(tick), *rows)
        assert np.array_equal(found.query, expected.query)
        for name in ("value", "next_at", "kept"):
            assert np.array_equal(getattr(found, name), getattr(expected, name), equal_nan=True)
        snapshot = restarted.snapshot()


@pytest.mark.parametrize(
    "options", [EvaluatorOptions(method="correlated"), EvaluatorOptions("max", window=6.0, method="steady")]
)
def test_one_more_query_changes_no_other_answer(options: EvaluatorOptions) -> None:
    weights = random_weights(400, 12, 4, seed=4)
    more = sparse.vstack([weights, sparse.csr_matrix(([1.0], ([0], [3])), shape=(1, 12))]).tocsr()
    bounds = np.random.default_rng(5).uniform(8.0, 30.0, 401)
    without = StandingEvaluator(QuerySet.of(np.arange(400), weights, bounds[:400], 0.9), options)
    with_more = StandingEvaluator(QuerySet.of(np.arange(401), more, bounds, 0.9), options)
    draw = np.random.default_rng(6)
    values, few = np.zeros(12), 0
    for tick in range(80):
        values = values + draw.standard_normal(12)
        rows = np.arange(12), np.full(12, float(tick)), values
        found, other = without.tick(float(tick), *rows), with_more.tick(float(tick), *rows)
        both = other.query < 400
        few += len(found) < 40
        assert np.array_equal(found.query, other.query[both])
        for name in ("value", "next_at", "kept"):
            assert np.array_equal(getattr(found, name), getattr(other, name)[both], equal_nan=True)
    assert few > 10, "most queries are deferred at some ticks"


def test_queries_come_and_go_while_the_rest_stays() -> None:
    evaluator = StandingEvaluator(queries(bound=20.0))
    values = walk(60)
    drive(evaluator, values)
    before = dict(zip(["a", "b", "c"], evaluator.next_at.tolist(), strict=True))
    weights = np.array([[0.0, 1.0, 2.0, -1.0], [0.3, 0.3, 0.3, 0.1], [1.0, 0.0, 0.0, 0.0]])
    others = StandingEvaluator(QuerySet.of(np.array(["b", "other c", "new"]), weights, 20.0, 0.9))
    others.resume(evaluator.snapshot(), np.array([1, -1, -1]))
    assert others.next_at[0] == before["b"]  # unchanged: its answer stands
    answers = others.tick(60.0, STREAMS, np.full(4, 60.0), values[-1])
    assert {1, 2} <= set(answers.query.tolist())  # changed and new: evaluated at once
    assert np.isnan(answers.kept[answers.query == 1]).all()  # a changed query has no previous answer to compare


def test_under_overload_the_largest_penalty_comes_first() -> None:
    table = brownian_streams(4, 80, seed=5)
    weights = np.vstack([np.eye(4)[:1] * scale for scale in (1.0, 1.0, 1.0, 10.0)])
    some = QuerySet.of(np.arange(4), weights, 0.0, 0.9)
    evaluator = StandingEvaluator(some, EvaluatorOptions(capacity=1))
    found = drive(evaluator, table.values)
    assert len(found) == 80
    share = np.bincount([query for _, query, _ in found[20:]], minlength=4)
    assert share.argmax() == 3


@pytest.mark.parametrize("confidence", [0.0, 1.0, -1.0, float("nan")])
def test_confidences_outside_zero_to_one_are_refused(confidence: float) -> None:
    with pytest.raises(InvalidOption, match="invalid-confidence"):
        queries(confidence=confidence)


def test_invalid_bounds_weights_and_windows_are_refused() -> None:
    with pytest.raises(InvalidOption, match="invalid-bound"):
        queries(bound=-1.0)
    with pytest.raises(InvalidOption, match="invalid-weight"):
        QuerySet.of(np.array(["x"]), np.array([[np.nan]]), 1.0, 0.9)
    with pytest.raises(InvalidOption, match="window-or-landmark"):
        EvaluatorOptions(aggregate="max")
    with pytest.raises(InvalidOption, match="window-without-extreme"):
        EvaluatorOptions(window=1.0)
