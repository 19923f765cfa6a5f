"""Deferrals are lengthened by what was earned, and by no more."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import ndtr

from slackwater.control.deferral.model import two_sided_quantile
from slackwater.control.deferral.spending import MOST_EARNED, Lengthening, after
from slackwater.kernel.standing.options import EvaluatorOptions
from slackwater.kernel.standing.queries import QuerySet
from slackwater.sim.brownian import brownian_streams
from slackwater.sim.standing import average_queries, run_standing

CONFIDENCES = np.array([0.5, 0.8, 0.85, 0.9, 0.95, 0.99, 0.999])


@given(
    confidence=st.floats(0.5, 0.999),
    wait=st.floats(0.0, 1e4),
    left=st.floats(-1e4, 1e4),
)
def test_a_deferral_grows_by_at_most_what_there_is_to_spend(confidence: float, wait: float, left: float) -> None:
    longer = Lengthening.of(np.array([confidence])).lengthened(np.array([wait]), np.array([left]))[0]
    assert wait <= longer <= wait + max(left, 0.0) + 1e-9 * (1.0 + wait)


@given(
    confidence=st.floats(0.5, 0.999),
    deferrals=st.lists(st.tuples(st.integers(1, 200), st.booleans()), max_size=50),
)
def test_earned_ticks_never_exceed_the_unused_allowance(confidence: float, deferrals: list[tuple[int, bool]]) -> None:
    earned, left = np.zeros(1), 0.0
    for ticks, wrong in deferrals:
        stood, found, share = np.array([float(ticks)]), np.array([float(wrong)]), np.array([confidence])
        earned = after(earned, stood, found, share, np.array([20.0]), 1.0)
        left += ticks * (1.0 - confidence - wrong)
        assert earned[0] <= MOST_EARNED * 20.0
    if sum(ticks for ticks, _ in deferrals) < MOST_EARNED * 20.0:
        assert earned[0] == pytest.approx(left)


def test_the_end_confidence_of_a_longer_deferral_fits_brownian_motion() -> None:
    spent, z = Lengthening.of(CONFIDENCES), two_sided_quantile(CONFIDENCES)
    for share in np.linspace(0.0, 1.0, 11):
        ticks = np.full(len(CONFIDENCES), 30.0)
        added = share * (1.0 - 1.0 / spent.most)
        exact = 2.0 * ndtr(z * np.sqrt(1.0 - added)) - 1.0
        assert spent.end_confidence(CONFIDENCES, ticks, added * ticks) == pytest.approx(exact, abs=0.002)


def test_under_brownian_motion_economical_keeps_fidelity_with_fewer_evaluations() -> None:
    table = brownian_streams(90, 2_500, seed=5)
    weights = np.kron(np.eye(10), np.full(9, 1.0 / 9))
    sigma = float(np.diff(table.values @ weights[0]).std())
    some = QuerySet.of(np.arange(10), weights, 4.0 * sigma, 0.85)
    calibrated, economical = (
        run_standing(table, some, EvaluatorOptions(method=method)) for method in ("calibrated", "economical")
    )
    assert economical.fidelity.mean() >= 0.85
    assert economical.evaluations.sum() < 0.85 * calibrated.evaluations.sum()
    assert economical.hit_rate.mean() < 0.85


@pytest.mark.parametrize(("correlation", "freedom"), [(0.5, np.inf), (0.0, 2.5), (0.5, 2.5)])
def test_economical_keeps_the_promise_on_streams_unlike_the_model(correlation: float, freedom: float) -> None:
    table = brownian_streams(10, 900, seed=2, correlation=correlation, degrees_of_freedom=freedom)
    average = np.diff(table.values @ np.full(10, 0.1))
    some = QuerySet.of(np.arange(10), average_queries(10, 9, 10), 4.0 * average.std(), 0.9)
    assert run_standing(table, some, EvaluatorOptions(method="economical")).fidelity.mean() >= 0.9
