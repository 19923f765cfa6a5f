"""The clock as a stream: one row per tick, so that time passes for a query even when no data comes."""

from __future__ import annotations

from pyspark.sql import DataFrame, SparkSession

from slackwater.spark.worker.clock_source import FORMAT, ClockSource


def clock_ticks(spark: SparkSession, interval_ms: float, hand: str | None = None) -> DataFrame:
    """A stream of the clock's ticks."""
    spark.dataSource.register(ClockSource)
    reader = spark.readStream.format(FORMAT).option("interval_ms", str(interval_ms))
    if hand is not None:
        reader = reader.option("hand", hand)
    return reader.load()
