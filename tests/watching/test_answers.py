"""The answers at the top of the page, and what they are computed from."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path

from slackwater.control.ledger import Ledger
from slackwater.units import DAY_US
from slackwater.watching import page_tables
from slackwater.watching.age import publication_delay_ms
from slackwater.watching.meanings import MEANINGS
from slackwater.watching.page_answers import age_text, answers_of, loss_text, why_text
from slackwater.watching.series import ProblemRow, Series, SourceLoss
from tests.helpers.series import DELAY, RATIO, STANDING, delay_point, ratio_point, ratio_series, standing_point

DECISIONS = Path(__file__).parents[2] / "docs" / "howto" / "decisions.md"
TWO_DAYS_MS = 2 * DAY_US / 1000


def test_age_is_from_the_end_of_the_window_to_the_commit() -> None:
    assert publication_delay_ms(ratio_point(3)) == 5000.0
    published = "published 5 s after the end of their window (5 s on average in the last 5 min)"
    assert age_text(ratio_series(10)) == f"{published}, with 4 s of waiting for late rows"


def test_a_recorded_stream_is_measured_by_its_own_clock() -> None:
    point = ratio_point(3)
    recorded = dataclasses.replace(point, at_ms=point.at_ms + TWO_DAYS_MS)
    assert publication_delay_ms(recorded) == 5000.0
    series = Series(RATIO)
    series.add(recorded)
    assert "by the clock of the recorded rows, which arrived 2 d ago" in age_text(series)
    assert "5 s" not in page_tables.windows(series)


def test_without_windows_the_wait_is_the_least_age() -> None:
    series = Series(RATIO)
    series.add(dataclasses.replace(ratio_point(0), window_ms=None))
    assert age_text(series) == "at least 4 s of waiting for late rows"


def test_losses_are_named_by_kind_and_source_and_others_make_up_the_rest() -> None:
    series = Series(RATIO)
    lost = Ledger(on_time=90, late=7, invalid=3)
    series.add(dataclasses.replace(ratio_point(0), ledger=lost, losses=(("a", 5, 1), ("b", 1, 0))))
    assert loss_text(series) == "7 late (7.216%), 3 invalid of 100 rows; most at a (6), b (1)"
    assert series.losses == {"a": SourceLoss(5, 1), "b": SourceLoss(1, 0)}
    table = page_tables.losses(series)
    assert re.findall(r"<td[^>]*>(.*?)</td>", table) == ["a", "5", "1", "b", "1", "0", "all others", "1", "2"]


def test_many_sources_keep_the_greatest_losses() -> None:
    series = Series(RATIO)
    for number in range(200):
        series.add(dataclasses.replace(ratio_point(number), losses=((f"s{number}", number, 0),)))
    assert len(series.losses) == 50 and min(loss.late for loss in series.losses.values()) == 150


def test_the_sample_says_how_to_have_one_and_shows_rows_as_text() -> None:
    series = ratio_series(3, late=0)
    assert "There was none" in page_tables.problem_rows(series)
    series = ratio_series(3)
    assert "spark.slackwater.sampleRows=true" in page_tables.problem_rows(series)
    series.add(dataclasses.replace(ratio_point(3), problem_rows=(("late", '{"k":"<b>"}'),)))
    assert list(series.problem_rows) == [ProblemRow(series.points[-1].at_ms, "late", '{"k":"<b>"}')]
    assert "&lt;b&gt;" in page_tables.problem_rows(series) and "<b>" not in page_tables.problem_rows(series)
    assert Series.resume(series.snapshot()).problem_rows == series.problem_rows


def test_why_says_what_the_cause_means() -> None:
    assert why_text(ratio_series(3)) == "quantile: the wait is the quantile of lateness that the budget allows"
    assert why_text(Series(RATIO)) == "the method is still learning"


def test_every_kind_of_promise_has_answers() -> None:
    for about, point in ((RATIO, ratio_point(0)), (DELAY, delay_point(0)), (STANDING, standing_point(0))):
        series = Series(about)
        series.add(point)
        assert len(answers_of(series)) == 3 and all(answer for _, answer in answers_of(series))


def test_the_page_gives_the_meanings_that_the_docs_give() -> None:
    page = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", DECISIONS.read_text()).replace("`", "")
    missing = [cause for cause, meaning in MEANINGS.items() if cause not in page or meaning not in page]
    assert not missing
