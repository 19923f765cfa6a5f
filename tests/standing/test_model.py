"""The model solves the paper's equations."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import ndtr

from slackwater.control.deferral.calibration import lasting_confidence
from slackwater.control.deferral.covariance import common_factors
from slackwater.control.deferral.model import deferral, rise_time, within_probability
from slackwater.control.deferral.near_edge import near_edge
from slackwater.control.deferral.windows import certain_time

positive = st.floats(0.01, 100.0)


@given(positive, st.floats(-50.0, 50.0), positive, st.floats(0.5, 0.999))
def test_at_the_deadline_the_probability_is_the_confidence(
    bound: float, drift: float, sigma: float, confidence: float
) -> None:
    values = [np.array([x]) for x in (bound, drift, sigma, confidence)]
    after = deferral(*values)
    # The negligible-drift shortcut is exact to the square of a shift of 0.01.
    assert abs(within_probability(after, *values[:3])[0] - confidence) < 1e-4


@given(positive, st.floats(-5.0, 5.0), positive, st.floats(0.55, 0.999))
def test_the_rise_time_is_the_first_time_with_that_confidence(
    room: float, drift: float, sigma: float, confidence: float
) -> None:
    after = rise_time(*(np.array([x]) for x in (room, drift, sigma, confidence)))[0]
    earlier = np.linspace(0.01, 0.99, 50) * min(after, 1e6)
    assert np.all(ndtr((room - drift * earlier) / (sigma * np.sqrt(earlier))) >= confidence - 1e-9)
    if np.isfinite(after):
        assert abs(ndtr((room - drift * after) / (sigma * np.sqrt(after))) - confidence) < 1e-9


@given(st.lists(st.floats(0.0, 1e4), min_size=1, max_size=30), st.floats(0.5, 0.999999))
def test_an_interpolated_curve_equals_the_solution(leans: list[float], confidence: float) -> None:
    lean, confidences = np.array(leans), np.full(len(leans), confidence)
    solved = np.array([near_edge(np.array([m, m]), np.array([confidence, 0.3]))[0] for m in leans])
    assert np.abs(near_edge(lean, confidences) - solved).max() <= 5e-6
    assert np.abs(ndtr(solved) - ndtr(-np.sqrt(np.square(solved) + 4.0 * lean)) - confidence).max() < 1e-9


def test_each_query_may_have_its_own_confidence() -> None:
    draw = np.random.default_rng(7)
    bound, drift, sigma = draw.uniform(1.0, 9.0, (3, 60))
    for confidences in (draw.choice([0.8, 0.9, 0.95], 60), draw.uniform(0.05, 0.99, 60)):
        alone = [deferral(*(x[at : at + 1] for x in (bound, drift, sigma, confidences)))[0] for at in range(60)]
        assert deferral(bound, drift, sigma, confidences) == pytest.approx(alone, rel=2e-5)


def test_degenerate_queries() -> None:
    zero, one = np.zeros(1), np.ones(1)
    p = np.array([0.9])
    assert deferral(zero, one, one, p)[0] == 0.0  # no bound, no deferral
    assert deferral(one, zero, zero, p)[0] == np.inf  # nothing moves
    assert deferral(one, 0.5 * one, zero, p)[0] == 2.0  # a straight line
    assert deferral(one, zero, np.array([np.inf]), p)[0] == 0.0  # nothing known


def test_fidelity_under_brownian_motion_is_the_confidence() -> None:
    draw = np.random.default_rng(0)
    for confidence in (0.95, 0.85):
        end = np.quantile(np.abs(draw.standard_normal(200_000)), lasting_confidence(confidence))
        paths = np.cumsum(draw.standard_normal((4_000, 200)), axis=1) / np.sqrt(200)
        assert abs(np.mean(np.abs(paths) <= end) - confidence) < 0.01


@given(st.lists(st.floats(-10, 10), min_size=1, max_size=12), st.floats(0.1, 5.0))
def test_until_phi1_the_maximum_cannot_fall_below_the_bound(values: list[float], bound: float) -> None:
    block = np.array([values])
    times = np.arange(len(values), dtype=float)
    now, window = times[-1], float(len(values) - 1)
    certain = certain_time(block, times, now, window, np.array([bound]))[0]
    for later in range(int(certain) + 1):  # the worst case is that no value comes
        left = block[0, times >= now + later - window]
        assert left.max() > block.max() - bound


def test_factors_are_found_only_if_streams_move_together() -> None:
    draw = np.random.default_rng(3)
    alone = draw.standard_normal((99, 12))
    assert common_factors(alone).factors == 0
    together = alone + 1.5 * draw.standard_normal((99, 1))
    found = common_factors(together)
    assert found.factors == 1
    loadings, own = found.covariance(np.full(12, np.sqrt(1 + 1.5**2)))
    average = np.full(12, 1 / 12)
    modelled = np.square(average @ loadings).sum() + np.square(average) @ own
    truth = 1.5**2 + 1 / 12
    assert 0.6 * truth < modelled < 1.5 * truth


def test_factors_of_more_streams_than_ticks() -> None:
    draw = np.random.default_rng(4)
    found = common_factors(draw.standard_normal((50, 200)) + draw.standard_normal((50, 1)))
    assert found.factors == 1
    assert np.allclose(np.square(found.loadings).sum(axis=1) + found.specific, 1.0)
