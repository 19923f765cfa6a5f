"""Session-wide defaults: a promise takes what ``spark.slackwater.*`` says, and an argument wins."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import slackwater as sw
from slackwater.spark.completeness.handler import CompletenessHandler
from slackwater.spark.completeness.tracker import CompletenessSpec
from slackwater.spark.runtime.listener import listener_of
from slackwater.spark.timeliness.handler import TimelinessHandler
from slackwater.spark.timeliness.tracker import TimelinessSpec
from tests.helpers.harness import FileStream

pytestmark = pytest.mark.spark


@contextmanager
def settings(spark: SparkSession, **values: str) -> Iterator[None]:
    for key, value in values.items():
        spark.conf.set(f"spark.slackwater.{key}", value)
    try:
        yield
    finally:
        for key in values:
            spark.conf.unset(f"spark.slackwater.{key}")


def completeness(spark: SparkSession, name: str) -> CompletenessSpec:
    return listener_of(spark).handler(CompletenessHandler)._specs[name]


def timeliness(spark: SparkSession, name: str) -> TimelinessSpec:
    return listener_of(spark).handler(TimelinessHandler)._specs[name]


def test_settings_are_defaults_and_arguments_win(spark: SparkSession, tmp_path: Path) -> None:
    events = FileStream(spark, tmp_path / "in").read_stream()
    location = str(tmp_path / "promises")
    with settings(spark, method="max-delay", law="aurora", maxWait="2 minutes", idleAfter="30s", location=location):
        sw.with_drop_ratio(events, "ts", 0.01, name="by-setting")
        sw.with_drop_ratio(events, "ts", 0.01, name="by-argument", method="vseq", max_wait="1 hour", idle_after=9)
        sw.with_max_delay(events, "2 seconds", name="law-by-setting")
        sw.with_max_delay(events, "2 seconds", name="law-by-argument", law=sw.Law("baseline"))
    by_setting, by_argument = completeness(spark, "by-setting"), completeness(spark, "by-argument")
    assert (by_setting.method.name, by_argument.method.name) == ("max-delay", "vseq")
    assert (by_setting.completeness.max_wait_ms, by_argument.completeness.max_wait_ms) == (120_000.0, 3_600_000.0)
    assert (by_setting.completeness.idle_after_ms, by_argument.completeness.idle_after_ms) == (30_000.0, 9_000.0)
    assert by_setting.folder == tmp_path / "promises" / "by-setting"
    assert timeliness(spark, "law-by-setting").law == sw.Law("aurora")
    assert timeliness(spark, "law-by-argument").law == sw.Law("baseline")


def test_query_texts_take_the_settings_where_they_say_nothing(spark: SparkSession, tmp_path: Path) -> None:
    sw.stream("Settled", FileStream(spark, tmp_path / "in").read_stream(), event_time="ts")
    text = "SELECT COUNT(*) AS n FROM Settled [RANGE 6 seconds SLIDE 2 seconds {}]"
    location = str(tmp_path / "promises")
    with settings(spark, method="max-delay", minWait="1s", maxWait="2 minutes", location=location):
        sw.sql(spark, text.format("DRATIO 1%"), name="text-by-setting")
        sw.sql(spark, text.format("DRATIO 1% SLACK 9 seconds"), name="text-by-clause")
        sw.ordered(spark.table("Settled"), event_time="ts", drop_ratio=0.01, name="ordered-by-setting")
    by_setting, by_clause = completeness(spark, "text-by-setting"), completeness(spark, "text-by-clause")
    ordered = completeness(spark, "ordered-by-setting")
    assert (by_setting.method.name, ordered.method.name) == ("max-delay", "max-delay")
    assert (by_setting.completeness.min_wait_ms, by_setting.completeness.max_wait_ms) == (1_000.0, 120_000.0)
    assert by_clause.completeness.max_wait_ms == 9_000.0
    assert ordered.completeness.max_wait_ms == 120_000.0


def test_a_setting_that_makes_no_sense_is_refused_by_name(spark: SparkSession, tmp_path: Path) -> None:
    events = FileStream(spark, tmp_path / "in").read_stream()
    with settings(spark, method="guess"), pytest.raises(sw.UnknownName, match=r"\[unknown-method\].*'guess'"):
        sw.with_drop_ratio(events, "ts", 0.01)
    with (
        settings(spark, maxWait="soon"),
        pytest.raises(sw.InvalidOption, match=r"\[invalid-duration\] max_wait='soon'"),
    ):
        sw.with_drop_ratio(events, "ts", 0.01)
