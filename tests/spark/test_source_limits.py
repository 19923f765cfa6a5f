"""Shedding behind a source that limits its micro-batches: the limit is noticed and named, and its backlog counted."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, ReadMaxRows

import slackwater as sw
from slackwater.spark.timeliness.source_limits import source_limits
from tests.helpers.harness import FileStream, collected, same_rows, settle, start, timestamp
from tests.spark.test_delay import delay_of

pytestmark = pytest.mark.spark

FILES, ROWS = 8, 100


def sensor_rows(number: int) -> list[dict[str, Any]]:
    """The rows of one file, which arrived within 100 µs: faster than any micro-batch can read files."""
    first = number * ROWS
    return [
        {
            "id": first + i,
            "ts": timestamp((first + i) / 1e6),
            "arrived": timestamp((first + i) / 1e6),
            "sensor": "a",
            "value": 1.0,
        }
        for i in range(ROWS)
    ]


def test_nothing_is_shed_where_a_limit_on_files_decides(
    spark: SparkSession, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    stream = FileStream(spark, tmp_path / "in")
    for number in range(FILES):
        stream.put(sensor_rows(number))
    # 1 ms: any micro-batch takes longer, and without regard to the limit nearly every row would be shed
    events = sw.with_max_delay(stream.read_stream(), "1 millisecond", arrival="arrived", weight=None)
    query = start(events, tmp_path)
    with caplog.at_level(logging.WARNING, "slackwater"):
        settle(query)
        delay = delay_of(query)
    query.stop()
    assert (delay.ledger.input, delay.ledger.shed) == (FILES * ROWS, 0)
    same_rows(collected(spark, tmp_path), stream.read_batch())
    source = query.lastProgress["sources"][0]["description"]  # type: ignore[index]
    assert delay.limit == f"maxFilesPerTrigger=1 of {source}"
    assert not delay.kept
    assert f"{delay.limit} decides the delay; nothing is shed" in str(delay)
    warnings = [record.getMessage() for record in caplog.records if "[source-limit]" in record.getMessage()]
    assert len(warnings) == 1 and "maxFilesPerTrigger=1" in warnings[0]
    assert delay.series is not None and delay.series.latest("limit_decides") is True
    assert delay.series.decisions[-1].cause == f"nothing shed: {delay.limit} decides the delay"


def test_the_backlog_behind_a_limit_is_unknown_without_arrivals(spark: SparkSession, tmp_path: Path) -> None:
    stream = FileStream(spark, tmp_path / "in")
    for number in range(3):
        stream.put(sensor_rows(number))
    query = start(sw.with_max_delay(stream.read_stream(), "1 hour", weight=None), tmp_path)
    settle(query)
    delay = delay_of(query)
    query.stop()
    assert delay.load_per_s is not None and delay.backlog_rows is None and delay.limit is None
    assert "backlog     unknown" in str(delay)


def lagging(spark: SparkSession, rows: int, growth: int, calls: int) -> DataFrame:
    """A source that hands over ``rows`` rows per micro-batch and says its latest offset, as Kafka does.

    ``growth`` rows arrive whenever it is asked, ``calls`` times in all.
    """

    class Reader(DataSourceStreamReader):
        def __init__(self) -> None:
            self.latest, self.called = 0, 0

        def initialOffset(self) -> dict[str, Any]:
            return {"topic": {"0": 0}}

        def getDefaultReadLimit(self) -> ReadLimit:
            return ReadMaxRows(rows)

        def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:
            if self.called < calls:
                self.called += 1
                self.latest += growth
            most = self.latest if isinstance(limit, ReadAllAvailable) else start["topic"]["0"] + rows
            end = min(self.latest, most) if self.called < calls else start["topic"]["0"]
            return {"topic": {"0": end}}

        def reportLatestOffset(self) -> dict[str, Any]:
            return {"topic": {"0": self.latest}}

        def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> list[InputPartition]:
            return [InputPartition((start["topic"]["0"], end["topic"]["0"]))]

        def read(self, partition: InputPartition) -> Iterator[tuple[int]]:
            return ((i,) for i in range(*partition.value))

    class Lagging(DataSource):
        @classmethod
        def name(cls) -> str:
            return "test_lagging"

        def schema(self) -> str:
            return "id bigint"

        def streamReader(self, schema: object) -> Reader:
            return Reader()

    spark.dataSource.register(Lagging)
    return spark.readStream.format("test_lagging").load()


def test_the_lag_that_a_source_reports_is_its_backlog(spark: SparkSession, tmp_path: Path) -> None:
    # a million times more rows arrive than are handed over: no micro-batch is short enough to keep up
    rows = 10
    stream = lagging(spark, rows, growth=rows * 1_000_000, calls=7)
    query = start(sw.with_max_delay(stream, "1 millisecond"), tmp_path)
    settle(query)
    delay = delay_of(query)
    progress = [p for p in query.recentProgress if p["numInputRows"]]
    query.stop()
    assert len(progress) > 3
    assert (delay.ledger.input, delay.ledger.shed) == (rows * len(progress), 0)
    end, latest = (json.loads(progress[-1]["sources"][0][key])["topic"]["0"] for key in ("endOffset", "latestOffset"))
    assert delay.series is not None and delay.series.last is not None
    assert delay.limit is not None and delay.limit.startswith("limit per micro-batch of ")
    assert delay.backlog_rows is not None and delay.load_per_s is not None and delay.series.last.duration_s is not None
    assert delay.backlog_rows == pytest.approx(latest - end + delay.load_per_s * delay.series.last.duration_s)


def test_limits_are_found_in_the_plan(spark: SparkSession, tmp_path: Path) -> None:
    stream = FileStream(spark, tmp_path / "in").read_stream()
    assert source_limits(stream.where("value > 0").select("id")) == ("maxFilesPerTrigger=1",)
    rate = spark.readStream.format("rate").option("MAXROWSPERTRIGGER", "5").load()
    assert source_limits(rate) == ("MAXROWSPERTRIGGER=5",)
    assert source_limits(stream.select("ts").union(rate.select("timestamp"))) == (
        "maxFilesPerTrigger=1",
        "MAXROWSPERTRIGGER=5",
    )
    assert source_limits(spark.readStream.format("rate").load()) == ()
