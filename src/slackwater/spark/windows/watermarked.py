"""Marks the end of a window as an event time, so that Spark's operators on the results know the watermark."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql.types import TimestampType

from slackwater.spark.completeness.heartbeat_stream import WATERMARKED

_END = "window_end"


def with_event_time(results: DataFrame) -> DataFrame:
    """The same results; ``window_end`` is their event time.

    A window is published when the heartbeat has reached its end, so an operator above never takes a result for late. It
    publishes its own result in the same micro-batch, unless the heartbeat is exactly that end: then in the next one.
    """
    if not isinstance(results.schema[_END].dataType, TimestampType):
        return results  # an end that is a number
    return results.withMetadata(_END, WATERMARKED)
