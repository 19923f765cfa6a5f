"""A stream that outruns the method is said, with the remedy; a stream that does not is left alone."""

from __future__ import annotations

import dataclasses

import pytest

from slackwater.control.ledger import Ledger
from slackwater.watching.metrics import MEASURES
from slackwater.watching.outrun import outrun
from slackwater.watching.page_html import headline
from slackwater.watching.point import Lateness
from slackwater.watching.report_text import series_json, series_lines
from slackwater.watching.series import Series
from tests.helpers.series import RATIO, START_MS, ratio_point, ratio_series


def with_late_rows(late: int, wait_ms: float, batches: int = 10, later_on_time: int = 0) -> Series:
    """A promise of 1 %: ``late`` of 1 000 rows in each micro-batch; then, after an hour, one batch without any."""
    series = Series(RATIO)
    for batch in range(batches):
        before = series.ledger
        point = dataclasses.replace(ratio_point(batch), wait_ms=wait_ms)
        series.add(dataclasses.replace(point, ledger=before + Ledger(on_time=1000 - late, late=late)))
    if later_on_time:
        hour = dataclasses.replace(ratio_point(batches), at_ms=START_MS + 3_600_000.0, wait_ms=wait_ms)
        lateness = Lateness((100.0, 200.0, 500.0, 900.0), ())
        series.add(dataclasses.replace(hour, ledger=series.ledger + Ledger(on_time=later_on_time), lateness=lateness))
    return series


def test_promise_that_is_kept_needs_no_warning() -> None:
    assert outrun(ratio_series(10, late=5)) is None
    assert outrun(with_late_rows(late=25, wait_ms=500.0)) is None, "over the promise, but less than threefold"


def test_rows_lost_at_a_multiple_of_the_promise_are_said_with_the_remedy() -> None:
    problem = outrun(with_late_rows(late=60, wait_ms=500.0))
    assert problem is not None
    assert "6% of the last 5 min" in problem
    assert "SOURCE" in problem


def test_few_late_rows_say_nothing() -> None:
    assert outrun(with_late_rows(late=10, wait_ms=500.0, batches=1)) is None


@pytest.mark.parametrize(("wait_ms", "expected"), [(60_000.0, "max_wait"), (9_000.0, None), (4_000.0, None)])
def test_long_wait_that_earns_losses_back_is_said(wait_ms: float, expected: str | None) -> None:
    problem = outrun(with_late_rows(late=60, wait_ms=wait_ms, later_on_time=1000))
    assert (problem is None) if expected is None else (problem is not None and expected in problem)


def test_long_wait_of_a_promise_that_is_kept_is_left_alone() -> None:
    assert outrun(with_late_rows(late=60, wait_ms=60_000.0, later_on_time=100_000)) is None


def test_report_page_and_metrics_say_the_same() -> None:
    series = with_late_rows(late=60, wait_ms=500.0)
    problem = outrun(series)
    assert problem is not None
    assert any(problem in line for line in series_lines(series))
    assert series_json(series)["outrun"] == problem
    assert problem in headline(series, START_MS)
    measure = next(measure for measure in MEASURES if measure.name == "slackwater_outrun")
    assert [value for _, value in measure.read(series)] == [True]
    assert [value for _, value in measure.read(ratio_series(10, late=5))] == [False]
