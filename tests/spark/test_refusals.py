"""Arguments and streams that cannot carry the promise are refused at once, with the value and a remedy."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any
from weakref import WeakSet

import pytest
from pyspark.sql import DataFrame, SparkSession

import slackwater as sw
from slackwater.spark.runtime import workers

pytestmark = pytest.mark.spark


@pytest.fixture
def events(spark: SparkSession) -> DataFrame:
    return (
        spark.readStream.format("rate")
        .load()
        .selectExpr("timestamp AS ts", "value AS id", "'a' AS sensor", "CAST(timestamp AS timestamp_ntz) AS naive")
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            {"event_time": "when"},
            r"\[no-such-column\] event_time='when' is not a column; use one of: ts, id, sensor, naive",
        ),
        ({"event_time": "sensor"}, r"\[not-a-timestamp\] event_time='sensor' is a string; cast it first"),
        ({"drop_ratio": 1.0}, r"\[invalid-ratio\] drop_ratio=1.0 is not a ratio"),
        ({"drop_ratio": "-1%"}, r"\[invalid-ratio\] drop_ratio='-1%'"),
        ({"event_time": "naive"}, r"\[not-a-timestamp\] event_time='naive' is a timestamp_ntz; cast it first"),
        ({"arrival": "id"}, r"\[not-a-timestamp\] arrival='id' is a bigint"),
        ({"source": ["sensor", "host"]}, r"\[no-such-column\] source='host'"),
        ({"max_wait": "ten minutes"}, r"\[invalid-duration\] max_wait='ten minutes'"),
        ({"min_wait": "2 s", "max_wait": "1 s"}, r"\[empty-wait-range\]"),
        ({"method": "guess"}, r"\[unknown-method\] there is no method 'guess'; use one of: .*budgeted-quantile"),
        ({"method": sw.Method("budgeted-quantile", colour=3)}, r"\[unknown-method-option\]"),
        ({"name": "a/b"}, r"\[invalid-name\] name='a/b'"),
        ({"location": "s3://bucket/x"}, r"\[invalid-location\] Spark cannot open 's3://bucket/x/.* No FileSystem"),
        ({"invalid": "drop"}, r"\[invalid-choice\] invalid='drop'"),
        ({"late": "Sensor"}, r"\[late-taken\] late='Sensor': there is a column 'sensor' already; choose another name"),
        ({"late": "__sw_why"}, r"\[invalid-late-column\] late='__sw_why' cannot be a column's name; name a column"),
        ({"late": ""}, r"\[invalid-late-column\] late=''"),
        ({"late": True}, r"\[invalid-late-column\] late=True"),
    ],
)
def test_refused_with_the_value_and_a_remedy(events: DataFrame, arguments: dict[str, Any], message: str) -> None:
    call: dict[str, Any] = {"event_time": "ts", "drop_ratio": 0.01, **arguments}
    with pytest.raises(sw.SlackwaterError, match=message):
        sw.with_drop_ratio(events, **call)


def test_a_batch_is_refused(spark: SparkSession) -> None:
    with pytest.raises(sw.SlackwaterError, match=r"\[not-a-stream\]"):
        sw.with_drop_ratio(spark.sql("SELECT current_timestamp() AS ts"), "ts", 0.01)


def test_a_second_watermark_is_refused(events: DataFrame) -> None:
    with pytest.raises(sw.SlackwaterError, match=r"\[second-watermark\]"):
        sw.with_drop_ratio(events.withWatermark("ts", "1 minute"), "ts", 0.01)
    with pytest.raises(sw.SlackwaterError, match=r"\[second-watermark\]"):
        sw.with_drop_ratio(sw.with_drop_ratio(events, "ts", 0.01), "ts", 0.01)


def test_anything_but_a_dataframe_is_refused() -> None:
    with pytest.raises(sw.SlackwaterError, match=r"\[not-a-dataframe\] events is a str"):
        sw.with_drop_ratio("events", "ts", 0.01)  # type: ignore[arg-type]


def test_workers_that_cannot_import_us(
    spark: SparkSession, events: DataFrame, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    elsewhere = str(Path(sys.base_prefix, "bin", "python3"))  # outside the virtual environment
    monkeypatch.setattr(spark.sparkContext, "pythonExec", elsewhere)
    monkeypatch.setattr(workers, "_CHECKED", WeakSet())
    with pytest.raises(sw.SlackwaterError, match=rf"\[workers-without-slackwater\] .*\({elsewhere}\).*PYSPARK_PYTHON="):
        sw.ordered(events, event_time="ts", drop_ratio="1%", location=str(tmp_path))
