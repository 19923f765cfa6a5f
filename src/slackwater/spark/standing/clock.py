"""The clock as a stream: one row per tick, so that time passes even when no data comes."""

from __future__ import annotations

from pyspark.sql import DataFrame, SparkSession

from slackwater.spark.worker.clock_source import ClockSource
from slackwater.spark.worker.data_sources import register_source


def clock_ticks(spark: SparkSession, interval_ms: float, clock_file: str | None = None) -> DataFrame:
    """A stream of clock ticks, ``interval_ms`` apart. ``clock_file`` replaces the machine's clock in tests."""
    name = register_source(spark, ClockSource)
    reader = spark.readStream.format(name).option("interval_ms", str(interval_ms))
    if clock_file is not None:
        reader = reader.option("clock_file", clock_file)
    return reader.load()
