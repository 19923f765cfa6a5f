"""Nexmark's queries: accepted and equal to their batch, or refused with a form that works."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from tests.helpers.controllers import registered
from tests.nexmark.page import PAGE, forms, refusal, shown, table_line
from tests.nexmark.suite import NUMBERS, Suite

QUICK = {5, 8, 11}


@pytest.fixture(scope="module")
def suite(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Suite]:
    with registered():
        yield Suite(spark, tmp_path_factory.mktemp("nexmark"))


@pytest.mark.spark
@pytest.mark.parametrize(
    "number", [number if number in QUICK else pytest.param(number, marks=pytest.mark.full) for number in NUMBERS]
)
def test_a_query_equals_its_batch(suite: Suite, number: int) -> None:
    outcome = suite.run(number)
    assert outcome.streamed == outcome.batch
    assert outcome.streamed
    assert table_line(number, len(outcome.streamed)) in PAGE.read_text(encoding="utf-8")


@pytest.mark.parametrize("number", [4, 6, 9, 12, 15, 16, 17, 18, 19])
def test_an_original_that_is_never_final_is_refused(number: int) -> None:
    error = refusal(number)
    assert error is not None and error.condition in ("aggregate-without-window", "not-in-a-stream")


@pytest.mark.parametrize("number", [15, 16, 17])
def test_a_day_as_a_key_is_answered_with_a_window_of_a_day(number: int) -> None:
    assert "write [RANGE 1 day SLIDE 1 day], and group by the other columns only" in str(refusal(number))


def test_the_page_shows_every_query() -> None:
    text = PAGE.read_text(encoding="utf-8")
    for number in NUMBERS:
        assert table_line(number, None) in text
    assert "| no |" not in text
    assert forms() in text and shown() in text
