"""How things lie in memory changes no answer."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from slackwater.kernel.standing.due_mask import DueMask
from slackwater.kernel.standing.evaluator import StandingEvaluator
from slackwater.kernel.standing.history import History
from slackwater.kernel.standing.options import EvaluatorOptions
from slackwater.kernel.standing.queries import QuerySet
from slackwater.kernel.standing.records import Records


def even(rows: int, streams: int, width: int, seed: int = 0) -> sparse.csr_matrix:
    draw = np.random.default_rng(seed)
    members = np.array([np.sort(draw.choice(streams, width, replace=False)) for _ in range(rows)])
    starts = np.arange(0, rows * width + 1, width)
    return sparse.csr_matrix((draw.standard_normal(rows * width), members.ravel(), starts), shape=(rows, streams))


@pytest.mark.parametrize(("streams", "width"), [(20, 1), (20, 3), (1 << 16, 9), ((1 << 16) + 1, 4)])
def test_records_hold_what_is_held_and_the_rows(streams: int, width: int) -> None:
    matrix = even(9_000, streams, width)
    draw = np.random.default_rng(1)
    held = draw.integers(0, 256, (9_000, 32), dtype=np.uint8).view("V32").ravel()
    records = Records(held, matrix, width)
    for chosen in (np.zeros(0, dtype=np.int64), np.array([8_999]), np.flatnonzero(draw.random(9_000) < 0.95)):
        there, found = records.take(chosen, streams + 1)
        expected = matrix[chosen]
        assert np.array_equal(there, held[chosen])
        assert found.shape == (len(chosen), streams + 1)
        assert found.indices.dtype == matrix.indices.dtype
        assert np.array_equal(found.data, expected.data)
        assert np.array_equal(found.indices, expected.indices)
        assert np.array_equal(found.indptr, expected.indptr)


@given(st.integers(0, 400), st.floats(0.0, 1.0), st.integers(0, 99))
def test_places_are_where_the_mask_is_set(size: int, share: float, seed: int) -> None:
    places = DueMask(size)
    for times in range(2):  # the tail stays set
        places.mask[:] = np.random.default_rng(seed + times).random(size) < share
        assert places.found().tolist() == np.flatnonzero(places.mask).tolist()


def test_aggregates_of_the_past() -> None:
    draw = np.random.default_rng(2)
    history = History(6, least=4)
    for tick in range(11):
        history.append(float(tick), draw.standard_normal(6))
    rows = sparse.csr_matrix(draw.standard_normal((30, 6)) * (draw.random((30, 6)) < 0.5))
    at = draw.integers(0, len(history.times), 30)
    expected = [rows.toarray()[row] @ history.values[tick] for row, tick in enumerate(at)]
    assert history.aggregates(rows, at) == pytest.approx(expected)


@pytest.mark.parametrize(
    "options", [EvaluatorOptions(method="correlated"), EvaluatorOptions("max", window=6.0, method="steady")]
)
def test_queries_of_one_width_are_answered_as_in_mixed_company(options: EvaluatorOptions) -> None:
    alike = even(400, 12, 4, seed=4)
    mixed = sparse.vstack([alike, sparse.csr_matrix(([1.0], ([0], [3])), shape=(1, 12))]).tocsr()
    bounds = np.random.default_rng(5).uniform(8.0, 30.0, 401)
    one = StandingEvaluator(QuerySet.of(np.arange(400), alike, bounds[:400], 0.9), options)
    other = StandingEvaluator(QuerySet.of(np.arange(401), mixed, bounds, 0.9), options)
    assert (one.queries.width, other.queries.width) == (4, 0)
    draw = np.random.default_rng(6)
    values, few = np.zeros(12), 0
    for tick in range(80):
        values = values + draw.standard_normal(12)
        rows = np.arange(12), np.full(12, float(tick)), values
        found, there = one.tick(float(tick), *rows), other.tick(float(tick), *rows)
        both = there.query < 400
        few += len(found) < 40
        assert np.array_equal(found.query, there.query[both])
        for name in ("value", "next_at", "kept"):
            assert np.array_equal(getattr(found, name), getattr(there, name)[both], equal_nan=True)
    assert few > 10  # ticks with so few due that they were read from records


def test_a_restart_changes_no_answer_wherever_the_weights_lie() -> None:
    queries = QuerySet.of(np.arange(400), even(400, 12, 4, seed=4), 20.0, 0.9)
    through, draw = StandingEvaluator(queries), np.random.default_rng(6)
    values, again = np.zeros(12), through.snapshot()
    for tick in range(80):
        values = values + draw.standard_normal(12)
        rows = np.arange(12), np.full(12, float(tick)), values
        found = through.tick(float(tick), *rows)
        if tick >= 40:  # a new evaluator at every tick never moves its weights
            fresh = StandingEvaluator(queries)
            fresh.resume(again)
            there = fresh.tick(float(tick), *rows)
            assert np.array_equal(found.query, there.query)
            for name in ("value", "next_at", "kept"):
                assert np.array_equal(getattr(found, name), getattr(there, name), equal_nan=True)
            again = fresh.snapshot()
        else:
            again = {name: np.array(array) for name, array in through.snapshot().items()}
