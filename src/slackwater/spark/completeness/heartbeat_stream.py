"""Streams under the heartbeat: the heartbeat source joined to the events, so that it is Spark's watermark."""

from __future__ import annotations

import json
from collections.abc import Callable

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructField, StructType

from slackwater.names import quoted
from slackwater.spark.runtime.driver_lines import asks_driver
from slackwater.spark.runtime.starting import NO_CONTINUOUS_MODE
from slackwater.spark.worker.columns import CELL, WATERMARK_TIME
from slackwater.spark.worker.data_sources import register_source
from slackwater.spark.worker.heartbeat_source import BELOW_MS, HeartbeatSource
from slackwater.spark.worker.mailbox import Mailbox
from slackwater.units import MS_US

WATERMARKED = {"spark.watermarkDelayMs": 0}
"""The metadata by which Spark recognises an event-time column."""
WALL_PREFIX = "slackwater-wall:"
HEARTBEAT_CELL = -(1 << 20)
"""The cell of a heartbeat row; no event has it."""
_BEFORE_ALL_EVENTS = "1900-01-01"


def with_heartbeats(spark: SparkSession, events: DataFrame, mailbox: Mailbox) -> DataFrame:
    """The events with the heartbeats among them, under the watermark of ``WATERMARK_TIME``; no heartbeat row is left.

    That column says how high a row may raise the watermark, so it equals the heartbeat. The caller must put an
    ``observe`` on top. Without it a filter of the user's could slide below the watermark operator, remove rows and
    freeze the watermark. Spark moves no filter through ``observe``. Our own filter reads the column of the watermark,
    so it stays above the operator.
    """
    heartbeats = _heartbeat_rows(spark, events, WATERMARK_TIME, mailbox, {})
    marked = heartbeats.withColumn(CELL, F.lit(HEARTBEAT_CELL).cast(events.schema[CELL].dataType))
    both = marked.alias(NO_CONTINUOUS_MODE).unionByName(events).withWatermark(WATERMARK_TIME, "0 seconds")
    is_heartbeat = F.col(CELL).eqNullSafe(HEARTBEAT_CELL) & F.col(WATERMARK_TIME).isNotNull()
    return both.where(~is_heartbeat).drop(WATERMARK_TIME)


def under_heartbeat(
    spark: SparkSession, events: DataFrame, column: str, mailbox: Mailbox, name: str, state: dict[str, str]
) -> DataFrame:
    """The events under a watermark that equals the heartbeat, whatever is done with them afterwards.

    ``column`` is their event time and never null. With ``WATERMARK_TIME`` they raise the watermark themselves.
    ``state`` describes what the state above is made of, in the user's words; a checkpoint with another value is
    refused.
    """
    if WATERMARK_TIME not in events.columns:
        walled = _walled(_heartbeats(spark, events, column, mailbox, state), name)
        return walled.where(_no_row(column)).unionByName(events)
    heartbeats = _heartbeat_rows(spark, events, WATERMARK_TIME, mailbox, state).alias(NO_CONTINUOUS_MODE)
    both = heartbeats.unionByName(events).withWatermark(WATERMARK_TIME, "0 seconds")
    # Spark moves no filter through one that is not deterministic, and does not move that one.
    is_event = F.when(F.spark_partition_id() >= 0, F.col(quoted(column)).isNotNull())
    return both.where(is_event).drop(WATERMARK_TIME).withMetadata(column, WATERMARKED)


def with_heartbeat_rows(
    spark: SparkSession,
    events: DataFrame,
    column: str,
    mailbox: Mailbox,
    name: str,
    state: dict[str, str],
    to_rows: Callable[[DataFrame, Column], DataFrame],
) -> DataFrame:
    """Like ``under_heartbeat``, but also emits the heartbeat as data rows.

    ``to_rows`` makes them from the heartbeat stream and the heartbeat in microseconds. A heartbeat arrives as a row one
    micro-batch before it is the watermark. Acting on it at once is safe: all rows of this micro-batch are here, and
    those of the next one are judged by it.
    """
    walled = _walled(_heartbeats(spark, events, column, mailbox, state), name)
    heartbeat_us = (F.unix_millis(column) + F.lit(BELOW_MS)) * MS_US
    return to_rows(walled, heartbeat_us).unionByName(events)


def _walled(heartbeats: DataFrame, name: str) -> DataFrame:
    """The heartbeats below an ``observe``, through which Spark moves no filter."""
    return heartbeats.observe(WALL_PREFIX + name, F.count(F.lit(1)).alias("heartbeats"))


def _heartbeat_rows(
    spark: SparkSession, events: DataFrame, column: str, mailbox: Mailbox, state: dict[str, str]
) -> DataFrame:
    """The heartbeats as rows of the events' schema: the heartbeat in ``column``, null in the others."""
    schema = StructType([StructField(f.name, f.dataType, True, f.metadata) for f in events.schema.fields])
    name = register_source(spark, HeartbeatSource, with_code=True)
    source = spark.readStream.format(name).options(
        folder=str(mailbox.folder),
        column=column,
        schema=schema.json(),
        state=json.dumps(state),
        row_file=str(not asks_driver(spark)).lower(),
    )
    return source.load()


def _heartbeats(
    spark: SparkSession, events: DataFrame, column: str, mailbox: Mailbox, state: dict[str, str]
) -> DataFrame:
    heartbeats = _heartbeat_rows(spark, events, column, mailbox, state).alias(NO_CONTINUOUS_MODE)
    if "." not in column:
        return heartbeats.withWatermark(column, "0 seconds")
    # withWatermark takes a dot for a field of a struct, and no quotes
    watermarked = heartbeats.withColumnRenamed(column, WATERMARK_TIME).withWatermark(WATERMARK_TIME, "0 seconds")
    return watermarked.withColumnRenamed(WATERMARK_TIME, column)


def _no_row(column: str) -> Column:
    """A filter that removes every heartbeat row and that Spark cannot prove empty."""
    return F.col(quoted(column)) < F.lit(_BEFORE_ALL_EVENTS).cast("timestamp")
