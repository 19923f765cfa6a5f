"""Sums over the rings equal sums over the rows themselves."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from slackwater.control.deferral.recent_rows import RecentRows

K = 8


def by_formula(times: list[float], values: list[float]) -> tuple[float, float, float]:
    """The span, the rise and the residual of rows by Zhu 2004, Eq. (15), (16) as printed."""
    gaps, steps = np.diff(times[-K:]), np.diff(values[-K:])
    drift = steps.sum() / gaps.sum()
    return gaps.sum(), steps.sum(), float(np.sum(np.square(steps - drift * gaps) / gaps))


@given(
    st.lists(st.tuples(st.integers(0, 2), st.integers(1, 30), st.integers(-99, 99)), max_size=70), st.integers(0, 70)
)
def test_sums_over_a_ring_are_sums_over_the_rows(came: list[tuple[int, int, int]], cut: int) -> None:
    rows = RecentRows(3, K)
    times: list[list[float]] = [[], [], []]
    values: list[list[float]] = [[], [], []]
    for number, (stream, gap, value) in enumerate(came):
        if number == cut:  # a restart from the saved rows
            again = RecentRows(0, K)
            again.resume(rows.items, rows.times, rows.values)
            assert np.array_equal(again.gaps, rows.gaps)
            rows = again
        times[stream].append((times[stream][-1] if times[stream] else 5.0) + gap / 8)
        values[stream].append(float(value))
        rows.put(np.array([stream]), np.array(times[stream][-1:]), np.array(values[stream][-1:]))
    many = np.flatnonzero(rows.items >= 2)
    span, rise = rows.gaps[many].sum(axis=1), rows.rise(many)
    residual = rows.residual(many, rise / span, span)
    for at, stream in enumerate(many.tolist()):
        expected = by_formula(times[stream], values[stream])
        assert (span[at], rise[at], residual[at]) == pytest.approx(expected, rel=1e-9, abs=1e-9)
        in_order = rows.in_order(stream)
        assert [part.tolist() for part in in_order] == [times[stream][-K:], values[stream][-K:]]
        assert rows.buffered(many)[at] == min(len(times[stream]), K)


def test_a_straight_line_leaves_no_residual() -> None:
    rows = RecentRows(2, K)
    for tick in range(20):
        rows.put(np.arange(2), np.full(2, float(tick)), np.array([0.1 * tick, 1e9 * tick]))
    every, span = np.arange(2), np.full(2, K - 1.0)
    drift = rows.rise(every) / span
    assert np.all(np.sqrt(rows.residual(every, drift, span)) <= 1e-14 * np.abs(drift))


def test_values_whose_squares_overflow() -> None:
    rows = RecentRows(1, K)
    for tick in range(K):
        rows.put(np.arange(1), np.array([float(tick)]), np.array([(-1.0) ** tick * 1e200]))
    every, span = np.arange(1), np.array([K - 1.0])
    assert rows.residual(every, rows.rise(every) / span, span).tolist() == [np.inf]


def test_streams_can_be_added() -> None:
    rows = RecentRows(1, K)
    rows.put(np.arange(1), np.ones(1), np.ones(1))
    rows.grow(3)
    rows.put(np.arange(3), np.full(3, 2.0), np.full(3, 4.0))
    assert rows.items.tolist() == [2, 1, 1]
    assert rows.gaps.sum(axis=1).tolist() == [1.0, 0.0, 0.0]
