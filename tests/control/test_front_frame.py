"""The limit of the front: what is learned about how far it moves between a decision and the rows that it judges."""

from __future__ import annotations

import json

import numpy as np
import pytest

from slackwater.control.disorder.budgeted.front_frame import FrontFrame
from slackwater.control.disorder.protocol import Batch

ROWS = 100


def batch(first: float, clock: float, decided_at: float | None) -> Batch:
    """Rows in order from ``first`` to ``clock``; without a decision they are measured from their own arrivals."""
    reference = clock if decided_at is None else decided_at
    return Batch(np.linspace(first, clock, ROWS), clock=clock, reference=reference, decided_at=decided_at)


def after_steady_batches(lag: int, count: int = 400) -> tuple[FrontFrame, float]:
    """A stream in order, ten units a batch, judged by the decision ``lag`` batches before."""
    frame = FrontFrame(0.06)
    for k in range(count):
        front = 10.0 * k
        rows = batch(front, front + 10.0, None if k < lag else 10.0 * (k - lag + 1))
        frame.learn(rows, ROWS, front, 0.001)
        frame.decide_at(front + 10.0, front + 10.0)
    return frame, 10.0 * count


@pytest.mark.parametrize("lag", [1, 2, 3])
def test_limit_is_where_the_rows_that_it_judges_begin(lag: int) -> None:
    frame, front = after_steady_batches(lag)
    first_judged = front + 10.0 * (lag - 1)
    assert frame.limit(front, rate=0.0, margin=0.0, balance=ROWS) == pytest.approx(first_judged, abs=0.2)


def test_limit_stays_near_the_front_while_the_budget_does_not_cover_a_standstill() -> None:
    frame, front = after_steady_batches(lag=3)
    sure, doubted = (frame.limit(front, 0.0, 0.0, balance) for balance in (ROWS, 0.0))
    assert front < doubted < sure
    assert doubted - front == pytest.approx((sure - front) / 2.0)


def test_nothing_learned_limits_the_heartbeat_to_the_front() -> None:
    frame = FrontFrame(0.06)
    frame.learn(batch(0.0, 10.0, None), ROWS, 0.0, 0.0)
    assert frame.limit(10.0, rate=0.01, margin=5.0, balance=9.0) == 10.0


def test_snapshot_resumes_the_same_limit() -> None:
    frame, front = after_steady_batches(lag=2)
    resumed = FrontFrame(0.06)
    resumed.resume(json.loads(json.dumps(frame.snapshot())))
    following = batch(front, front + 10.0, front - 10.0)
    for each in (frame, resumed):
        each.learn(following, ROWS, front, 0.001)
    assert resumed.limit(front, 0.01, 0.0, 50.0) == frame.limit(front, 0.01, 0.0, 50.0)
