"""The contract of every law, and the behaviour of single laws."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from slackwater.control.shedding import Observation, SheddingController, Status, law_names, make_law
from slackwater.control.shedding.monitors import CostMonitor, HeadroomMonitor
from slackwater.promises import Timeliness

SEEN = st.builds(
    Observation,
    period_s=st.sampled_from([0.1, 1.0, 8.0]),
    arrived=st.integers(0, 2000),
    admitted=st.integers(0, 2000),
    finished=st.integers(0, 2000),
    backlog=st.integers(0, 5000),
    work_s=st.floats(0.0, 8.0),
)


def controller(law: str, target_s: float = 2.0) -> SheddingController:
    return SheddingController(Timeliness(target_s), make_law(law))


@pytest.mark.parametrize("law", law_names())
@settings(max_examples=40)
@given(periods=st.lists(SEEN, max_size=20))
def test_ratios_are_between_0_and_1(law: str, periods: list[Observation]) -> None:
    loop = controller(law)
    for seen in periods:
        decision = loop.step(seen)
        assert 0.0 <= decision.shed_ratio <= 1.0
        assert 0.0 <= decision.queue_shed_ratio <= 1.0


@pytest.mark.parametrize("law", law_names())
@settings(max_examples=40)
@given(before=st.lists(SEEN, max_size=10), after=st.lists(SEEN, max_size=10))
def test_resumed_controller_decides_the_same(law: str, before: list[Observation], after: list[Observation]) -> None:
    first, second = controller(law), controller(law)
    for seen in before:
        first.step(seen)
    second.resume(json.loads(json.dumps(first.snapshot())))
    for seen in after:
        ours, theirs = first.step(seen), second.step(seen)
        assert ours.shed_ratio == theirs.shed_ratio


@pytest.mark.parametrize("law", law_names())
@given(st.integers(0, 190), st.lists(st.integers(0, 190), min_size=1, max_size=30))
def test_no_row_is_shed_below_capacity_and_below_the_target(law: str, backlog: int, arrivals: list[int]) -> None:
    loop = controller(law)
    for arrived in arrivals:
        finished = min(190, backlog + arrived)
        backlog += arrived - finished
        # a row takes 1/190 s, so a backlog of 190 rows means a delay of one second
        assert loop.step(Observation(1.0, arrived, arrived, finished, backlog, finished / 190)).shed_ratio == 0.0


def test_ctrl_implements_equation_7() -> None:
    law = make_law("ctrl")
    capacity = 200.0

    def status(backlog: float) -> Status:
        return Status(1.0, 2.0, 1000.0, capacity, backlog, cost_s=1 / capacity, headroom=1.0)

    # e(0) = 2, and e(-1) is assumed to be equal; u = 200·(0.4·2 − 0.31·2)
    assert law.admit_per_s(status(0)) == pytest.approx(capacity + 200 * (0.4 * 2 - 0.31 * 2))
    # e(1) = 2 − 36/200
    assert law.admit_per_s(status(36)) == pytest.approx(capacity + 200 * (0.4 * 1.82 - 0.31 * 2) + 0.8 * 36)


def test_ctrl_does_not_wind_up_below_capacity() -> None:
    idle, fresh = controller("ctrl"), controller("ctrl")
    for _ in range(100):
        idle.step(Observation(1.0, 50, 50, 50, 0, 50 / 190))
    fresh.step(Observation(1.0, 50, 50, 50, 0, 50 / 190))
    burst = Observation(1.0, 800, 800, 190, 610, 1.0)
    assert idle.step(burst).shed_ratio == fresh.step(burst).shed_ratio


def test_target_below_the_cost_of_a_row_warns_once() -> None:
    loop = controller("ctrl", target_s=0.1)
    seen = Observation(1.0, 5, 5, 2, 3, 1.0)
    warnings = [loop.step(seen).warning for _ in range(5)]
    assert warnings[0] is not None and "unattainable-delay" in warnings[0]
    assert warnings[1:] == [None] * 4


def test_no_row_is_shed_before_the_cost_is_known() -> None:
    assert controller("ctrl").step(Observation(1.0, 10_000, 10_000, 0, 10_000, 0.0)).shed_ratio == 0.0


def test_cost_is_smoothed() -> None:
    monitor = CostMonitor(smoothing=0.5)
    for work_s in (1.0, 2.0):
        monitor.observe(Observation(1.0, 100, 100, 100, 0, work_s))
    assert monitor.cost_s == pytest.approx(0.015)


def test_headroom_is_measured_only_in_periods_with_a_backlog_throughout() -> None:
    monitor = HeadroomMonitor(0.5)
    monitor.observe(Observation(1.0, 10, 10, 10, 0, 0.1))
    assert monitor.headroom == 0.5
    monitor.observe(Observation(1.0, 500, 500, 100, 400, 0.9))
    assert monitor.headroom == 0.5
    monitor.observe(Observation(1.0, 500, 500, 100, 800, 0.97))
    assert monitor.headroom == pytest.approx(0.97)


def test_target_can_change_while_running() -> None:
    loop = controller("baseline", target_s=1.0)
    seen = Observation(1.0, 400, 200, 200, 200, 1.0)
    before = loop.step(seen).shed_ratio
    loop.retarget(Timeliness(3.0))
    assert before == pytest.approx(0.5)
    assert loop.step(seen).shed_ratio == 0.0
