"""The orders of evaluation, the virtual processor and the offline minimum."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from slackwater.control.deferral.scheduler import Pending, earliest_deadline, least_penalty, order, overloaded
from slackwater.errors import UnknownName
from slackwater.sim.optimum import fewest_evaluations
from slackwater.sim.virtual_cpu import mixed_costs, run_processor


def pending(deadline: list[float], cost: list[float], diffusion: list[float]) -> Pending:
    size = len(deadline)
    return Pending(np.zeros(size), np.array(deadline), np.array(cost), np.zeros(size), np.array(diffusion))


def test_least_penalty_is_earliest_deadline_while_all_can_be_in_time() -> None:
    easy = pending([3.0, 1.0, 2.0], [0.5, 0.5, 0.5], [1.0, 2.0, 30.0])
    assert not overloaded(0.0, easy)
    assert least_penalty(0.0, easy, 1.0).tolist() == earliest_deadline(0.0, easy, 1.0).tolist() == [1, 2, 0]


def test_under_overload_the_largest_penalty_per_work_comes_first() -> None:
    hard = pending([1.0, 1.0, 1.0], [1.0, 1.0, 0.5], [1.0, 4.0, 1.0])
    assert overloaded(0.0, hard)
    assert least_penalty(0.0, hard, 1.0).tolist() == [1, 2, 0]


def test_least_penalty_costs_less_than_the_other_orders() -> None:
    draw = np.random.default_rng(0)
    size = 300
    cost = mixed_costs(size, deferring=True)
    interval = draw.lognormal(1.0, 0.5, size)
    interval *= np.sum(cost / interval) / 1.5
    diffusion = draw.lognormal(0.0, 1.0, size)
    found = {
        by: run_processor(interval, cost, np.zeros(size), diffusion, by=by, horizon=8.0).penalty
        for by in ("fifo", "edf", "least-penalty")
    }
    assert found["least-penalty"] < min(found["fifo"], found["edf"])


def test_below_capacity_nothing_is_missed() -> None:
    cost = mixed_costs(500, deferring=False)
    load = run_processor(np.ones(500), cost, np.zeros(500), np.ones(500), by="edf", horizon=10.0)
    assert load.missed == 0
    assert load.evaluations > 4_000


def test_an_unknown_order_is_refused() -> None:
    with pytest.raises(UnknownName):
        order("lottery")


@settings(deadline=None, max_examples=60)
@given(st.lists(st.integers(-4, 4), min_size=1, max_size=9), st.floats(0.1, 4.0))
def test_the_offline_minimum_equals_an_exhaustive_search(values: list[int], bound: float) -> None:
    series = np.array(values, dtype=float)

    def stays_within(ticks: tuple[int, ...]) -> bool:
        answer = series[0]
        for tick, value in enumerate(series):
            if tick in ticks:
                answer = value
            if abs(value - answer) > bound:
                return False
        return True

    least = next(
        count + 1
        for count in range(len(series))
        if any(stays_within(chosen) for chosen in combinations(range(1, len(series)), count))
    )
    assert fewest_evaluations(series, bound) == least
