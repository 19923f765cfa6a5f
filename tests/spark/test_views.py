"""Queries leave no temporary view behind, and their text reaches Spark unchanged."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession

import slackwater as sw
from slackwater.spark.runtime.views import sql_over
from tests.helpers.harness import FileStream

pytestmark = pytest.mark.spark
TEXTS = {
    "panes": "SELECT sensor, SUM(value) AS s FROM Viewed [RANGE 6 seconds SLIDE 2 seconds] GROUP BY sensor",
    "copies": "SELECT sensor, MODE(value) AS s FROM Viewed [RANGE 6 seconds SLIDE 2 seconds] GROUP BY sensor",
    "ordered": "SELECT sensor, MAX(value) AS s FROM Viewed [RANGE 6 seconds] GROUP BY sensor",
    "outer": "SELECT 2 * s AS s FROM (SELECT SUM(value) AS s FROM Viewed [RANGE 6 seconds SLIDE 2 seconds])",
    "rows": "SELECT sensor, value FROM Viewed [DRATIO 1%]",
    "late rows": "SELECT SUM(value) AS s FROM Viewed [RANGE 6 seconds SLIDE 2 seconds LATE ROWS]",
}


@pytest.fixture
def events(spark: SparkSession, tmp_path: Path) -> DataFrame:
    return FileStream(spark, tmp_path / "in").read_stream()


def views(spark: SparkSession) -> set[str]:
    return {table.name for table in spark.catalog.listTables() if table.isTemporary}


def test_no_temporary_view_remains(spark: SparkSession, events: DataFrame) -> None:
    sw.stream("Viewed", events, event_time="ts")
    before = views(spark)
    for text in TEXTS.values():
        sw.sql(spark, text)
    windowed = sw.window(events, range="6 seconds", slide="2 seconds", event_time="ts", arrival="arrived")
    windowed.groupBy("sensor").agg("SUM(value) AS s")
    sw.ordered(events, event_time="ts", drop_ratio=0.01)
    assert "viewed" in before and views(spark) == before


def test_braces_in_a_text_are_kept(spark: SparkSession) -> None:
    rows = spark.createDataFrame([(1, "{rows}")], "number int, word string")
    found = sql_over(rows, lambda table: f"SELECT number, '{{}} {{x}}' AS text FROM {table} WHERE word = '{{rows}}'")
    assert [tuple(row) for row in found.collect()] == [(1, "{} {x}")]
