"""Columns named as people name them: with spaces, dots, other letters, and in another case."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import slackwater as sw
from slackwater.errors import InvalidStream, QueryTextError
from tests.helpers.harness import FileStream, batches, collected, settle, start, values

pytestmark = pytest.mark.spark
NAMES = {"ts": "a.b", "arrived": "Zeit_über", "sensor": "Sensor Name", "value": "v`1"}


@pytest.fixture
def source(spark: SparkSession, tmp_path: Path) -> FileStream:
    found = FileStream(spark, tmp_path / "in")
    for batch in batches(3, count=3, each=20):
        found.put(batch)
    return found


def renamed(frame: DataFrame) -> DataFrame:
    return frame.select("id", *(F.col(name).alias(other) for name, other in NAMES.items()))


def finished(result: DataFrame, tmp_path: Path) -> DataFrame:
    query = start(result, tmp_path)
    settle(query)
    assert sw.report(query).ledger.input == 60
    query.stop()
    return collected(result.sparkSession, tmp_path)


def test_a_promise_takes_any_column_in_any_case(source: FileStream, tmp_path: Path) -> None:
    events = renamed(source.read_stream())
    promised = sw.with_drop_ratio(events, "A.B", 0.01, arrival="zeit_über", source="sensor name", late="why late")
    found = finished(promised, tmp_path).drop("why late")
    assert values(found) == values(renamed(source.read_batch()))


def test_a_query_takes_any_column_in_any_case(spark: SparkSession, source: FileStream, tmp_path: Path) -> None:
    sw.stream("Odd Names", renamed(source.read_stream()), event_time="`a.b`")
    result = sw.sql(
        spark,
        "SELECT `sensor name`, SUM(`v``1`) AS `t.v`, MAX(`v``1`) FILTER (WHERE `A.B` IS NOT NULL) AS most "
        "FROM `Odd Names` [RANGE 4 s SLIDE 2 s ARRIVAL `zeit_über` SOURCE `Sensor Name` DRATIO 1% LATE ROWS]"
        " GROUP BY `sensor name`",
    )
    assert "sensor name" in result.columns and "t.v" in result.columns
    assert sw.on_time(finished(result, tmp_path)).count()


@pytest.mark.parametrize("kind", ["sliding", "per row", "tuples"])
def test_a_window_takes_any_column_in_any_case(source: FileStream, tmp_path: Path, kind: str) -> None:
    windowed = sw.window(
        renamed(source.read_stream()),
        range="4 seconds" if kind != "tuples" else "3 tuples",
        slide="2 seconds" if kind == "sliding" else None,
        event_time="A.B",
        arrival="zeit_über",
        source="Sensor Name" if kind == "sliding" else None,
        per="sensor name" if kind == "tuples" else None,
        drop_ratio="1%",
        late="panes" if kind == "sliding" else "count",
    )
    result = windowed.groupBy("sensor name").agg(F.sum(F.col("`v``1`")).alias("t.v"), "MAX(`v``1`) AS `most of all`")
    assert {"sensor name", "t.v", "most of all"} <= set(result.columns)
    found = finished(result, tmp_path)
    assert found.count() and {row["sensor name"] for row in found.collect()} == {"s0", "s1", "s2", "s3"}


def test_ordered_refuses_names_that_pyspark_would_split(source: FileStream) -> None:
    with pytest.raises(InvalidStream, match=r"unsupported-column.*'a\.b'"):
        sw.ordered(renamed(source.read_stream()), event_time="A.B", drop_ratio=0.01, per="sensor name")


def test_a_wrong_name_gets_the_nearest_one(spark: SparkSession, source: FileStream) -> None:
    events = renamed(source.read_stream())
    with pytest.raises(InvalidStream, match=r"event_time='Zeit' is not a column \(did you mean Zeit_über\?\)"):
        sw.with_drop_ratio(events, "Zeit", 0.01)
    sw.stream("Names", events, event_time="a.b")
    for text, condition, problem in (
        ("SELECT SUM(`v``2`) FROM Names [RANGE 1 minute]", "unknown-column", "did you mean v`1?"),
        ("SELECT COUNT(*) FROM Nams [RANGE 1 minute]", "unknown-table", "did you mean names?"),
        ("SELECT SUMM(id) FROM Names [RANGE 1 minute]", "unknown-function", "did you mean sum?"),
        ("SELECT SUM(`Sensor Name` + array(1)) FROM Names [RANGE 1 minute]", "wrong-query", "Spark rejects the query"),
    ):
        with pytest.raises(QueryTextError) as found:
            sw.sql(spark, text)
        assert found.value.condition == condition and problem in str(found.value)


def test_a_time_without_a_zone_is_refused_with_the_cast(spark: SparkSession, source: FileStream) -> None:
    events = source.read_stream().withColumn("local", F.col("ts").cast("timestamp_ntz"))
    with pytest.raises(InvalidStream, match=r"timestamp_ntz; cast it first, as in CAST\(local AS TIMESTAMP\)"):
        sw.with_drop_ratio(events, "local", 0.01)
    sw.stream("Zoneless", events)
    with pytest.raises(QueryTextError, match="timestamp-without-zone"):
        sw.sql(spark, "SELECT COUNT(*) FROM Zoneless [RANGE 1 minute WATTR local]")
