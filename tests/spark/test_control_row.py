"""The control row: asked from the driver or read from a file, every micro-batch is judged by Spark's own watermark."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

import slackwater as sw
from slackwater.errors import InvalidOption
from slackwater.spark.completeness.control_row import Control
from slackwater.spark.completeness.handler import METRICS_PREFIX
from slackwater.spark.worker.control_line import UNKNOWN_US
from slackwater.spark.worker.heartbeat_source import BELOW_MS
from slackwater.units import MS_US
from tests.helpers.harness import FileStream, batches, promise_of, settle, start, watermark_ms

pytestmark = pytest.mark.spark
CONTROL_ROW = "spark.slackwater.controlRow"


@pytest.mark.parametrize("where", ["driver", "file"])
def test_every_micro_batch_is_judged_by_sparks_watermark(spark: SparkSession, tmp_path: Path, where: str) -> None:
    stream = FileStream(spark, tmp_path / "in")
    spark.conf.set(CONTROL_ROW, where)
    try:
        events = sw.with_drop_ratio(
            stream.read_stream(), "ts", "5%", arrival="arrived", name=f"kept-in-{where}", max_wait="4 seconds"
        )
    finally:
        spark.conf.unset(CONTROL_ROW)
    query = start(events.groupBy(F.window("ts", "5 seconds")).count(), tmp_path)
    made = batches(seed=3, count=5)
    heartbeats_us = []
    for batch in made:
        before = len(query.recentProgress)
        stream.put(batch)
        settle(query)
        (progress,) = [p for p in query.recentProgress[before:] if p["sources"][1]["numInputRows"]]
        heartbeat_us = progress["observedMetrics"][METRICS_PREFIX + f"kept-in-{where}"]["control_us"][Control.HEARTBEAT]
        expected_ms = heartbeat_us / MS_US - BELOW_MS if heartbeat_us > UNKNOWN_US else 0.0
        assert watermark_ms(progress) == expected_ms
        heartbeats_us.append(heartbeat_us)
    ledger = promise_of(query).ledger
    query.stop()
    event_us = F.unix_micros("ts")
    judged = stream.read_batch().withColumn("batch", F.floor(F.col("id") / len(made[0])).cast("int"))
    late = judged.where(event_us < F.get(F.lit(heartbeats_us), F.col("batch"))).count()
    assert sum(us > UNKNOWN_US for us in heartbeats_us) > 2
    assert (ledger.input, ledger.late) == (judged.count(), late)


def test_another_place_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    spark.conf.set(CONTROL_ROW, "table")
    try:
        with pytest.raises(InvalidOption, match="invalid-setting"):
            sw.with_drop_ratio(FileStream(spark, tmp_path / "in").read_stream(), "ts", "5%")
    finally:
        spark.conf.unset(CONTROL_ROW)
