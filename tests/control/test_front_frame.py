"""The limit of the front: what is learned about how far it moves between a decision and the rows that it judges."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from slackwater.control.disorder.budgeted.front_frame import FrontFrame
from slackwater.control.disorder.protocol import Batch

ROWS = 100


def batch(first: float, clock: float, decided_at: float | None) -> Batch:
    """Rows in order from ``first`` to ``clock``; without a decision they are measured from their own arrivals."""
    reference = clock if decided_at is None else decided_at
    return Batch(np.linspace(first, clock, ROWS), clock=clock, reference=reference, decided_at=decided_at)


def after_steady_batches(lag: int, count: int = 400, *, follows_rows: bool = False) -> tuple[FrontFrame, float]:
    """A stream in order, ten units a batch, judged by the decision ``lag`` batches before."""
    frame = FrontFrame(0.06)
    for k in range(count):
        front = 10.0 * k
        rows = batch(front, front + 10.0, None if k < lag else 10.0 * (k - lag + 1))
        frame.learn(replace(rows, follows_rows=follows_rows), ROWS, front, 0.001)
        frame.decide_at(front + 10.0, front + 10.0)
    return frame, 10.0 * count


@pytest.mark.parametrize("lag", [1, 2, 3])
def test_limit_is_where_the_rows_that_it_judges_begin(lag: int) -> None:
    frame, front = after_steady_batches(lag)
    first_judged = front + 10.0 * (lag - 1)
    assert front - frame.behind(rate=0.0, margin=0.0, balance=ROWS) == pytest.approx(first_judged, abs=0.2)
    assert not frame.goes_on(ROWS)


def test_limit_stays_near_the_front_while_the_budget_does_not_cover_a_standstill() -> None:
    frame, _ = after_steady_batches(lag=3)
    sure, doubted = (-frame.behind(0.0, 0.0, balance) for balance in (ROWS, 0.0))
    assert 0.0 < doubted < sure
    assert doubted == pytest.approx(sure / 2.0)


def test_rows_raise_the_heartbeat_up_to_the_front_and_no_further() -> None:
    frame, _ = after_steady_batches(lag=2, follows_rows=True)
    assert frame.behind(rate=0.0, margin=0.0, balance=ROWS) == 0.0
    late = replace(batch(3900.0, 4010.0, 4000.0), follows_rows=True)
    frame.learn(late, ROWS, 3900.0, 0.001)
    assert frame.behind(rate=0.0, margin=0.0, balance=ROWS) == pytest.approx(100.0)


def test_rows_are_trusted_once_the_budget_covers_a_batch_after_a_break() -> None:
    frame, _ = after_steady_batches(lag=1, count=50, follows_rows=True)
    assert frame.goes_on(ROWS / 50)
    assert not frame.goes_on(ROWS / 51)
    assert not FrontFrame(0.06).goes_on(ROWS)


def test_nothing_learned_limits_the_heartbeat_to_the_front() -> None:
    frame = FrontFrame(0.06)
    frame.learn(batch(0.0, 10.0, None), ROWS, 0.0, 0.0)
    assert frame.behind(rate=0.01, margin=5.0, balance=9.0) == 0.0


@pytest.mark.parametrize("follows_rows", [False, True])
def test_snapshot_resumes_the_same_limit(follows_rows: bool) -> None:
    frame, front = after_steady_batches(lag=2, follows_rows=follows_rows)
    resumed = FrontFrame(0.06)
    resumed.resume(json.loads(json.dumps(frame.snapshot())))
    following = batch(front, front + 10.0, front - 10.0)
    assert resumed.behind(0.01, 0.0, 50.0) == frame.behind(0.01, 0.0, 50.0)
    assert resumed.goes_on(50.0) == frame.goes_on(50.0) == follows_rows
    for each in (frame, resumed):
        each.learn(following, ROWS, front, 0.001)
    assert resumed.behind(0.01, 0.0, 50.0) == frame.behind(0.01, 0.0, 50.0)
