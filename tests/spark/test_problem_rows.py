"""Losses by source add up to the ledger, and sampled rows are late or invalid ones, if the session asks for them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import slackwater as sw
from slackwater.errors import InvalidOption
from slackwater.watching.series import Series
from tests.helpers.harness import FileStream, batches, settle, start

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("known_controllers")]
SETTING = "spark.slackwater.sampleRows"
GOOD = batches(5, count=4, each=50)


@pytest.fixture
def sampling(spark: SparkSession) -> Iterator[SparkSession]:
    spark.conf.set(SETTING, "true")
    yield spark
    spark.conf.unset(SETTING)


def series_after(spark: SparkSession, folder: Path) -> Series:
    """The series of a promise with sources, after four micro-batches with an invalid row of sensor s1 in each."""
    stream = FileStream(spark, folder / "in")
    method = sw.Method("test-trailing", wait_ms=3000.0)
    rows = stream.read_stream()
    query = start(sw.with_drop_ratio(rows, "ts", "5%", arrival="arrived", source="sensor", method=method), folder)
    for number, batch in enumerate(GOOD):
        stream.put([*batch, {**batch[0], "id": -1 - number, "ts": None, "sensor": "s1"}])
        settle(query)
    series = sw.report(query).completeness[0].series
    query.stop()
    assert series is not None
    return series


def test_a_sample_shows_late_and_invalid_rows_and_losses_add_up(sampling: SparkSession, tmp_path: Path) -> None:
    series = series_after(sampling, tmp_path)
    assert series.ledger.late and series.ledger.invalid == 4
    assert sum(loss.late for loss in series.losses.values()) == series.ledger.late
    assert {name: loss.invalid for name, loss in series.losses.items() if loss.invalid} == {"s1": 4}
    sampled = [(row.problem, json.loads(row.row)) for row in series.problem_rows]
    assert [values["id"] for problem, values in sampled if problem == "null"] == [-1, -2, -3, -4]
    late = [values for problem, values in sampled if problem == "late"]
    put = {row["id"]: row["sensor"] for batch in GOOD for row in batch}
    assert late and all(put[values["id"]] == values["sensor"] for values in late)
    assert not any(name.startswith("__sw_") for _, values in sampled for name in values)


def test_without_the_setting_no_row_is_kept(spark: SparkSession, tmp_path: Path) -> None:
    series = series_after(spark, tmp_path)
    assert series.ledger.late and not series.problem_rows
    assert "-1" not in "".join(path.read_text() for path in tmp_path.rglob("series-*.jsonl"))


def test_another_value_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    spark.conf.set(SETTING, "yes")
    try:
        with pytest.raises(
            InvalidOption, match=r"\[invalid-setting\] spark.slackwater.sampleRows='yes'.*true or false"
        ):
            sw.with_drop_ratio(FileStream(spark, tmp_path / "in").read_stream(), "ts", "5%")
    finally:
        spark.conf.unset(SETTING)
