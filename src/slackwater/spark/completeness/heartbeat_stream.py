"""Streams under the heartbeat: the heartbeat source joined to the events, as Spark's watermark."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable

from pyspark.errors import AnalysisException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructField, StructType

from slackwater.errors import MissingRequirement
from slackwater.spark.worker.heartbeat_source import BELOW_MS, FORMAT, HeartbeatSource
from slackwater.spark.worker.mailbox import Mailbox

WALL_PREFIX = "slackwater-wall:"
_BEFORE_ALL_EVENTS = "1900-01-01"


def with_heartbeats(spark: SparkSession, events: DataFrame, column: str, mailbox: Mailbox) -> DataFrame:
    """The events under a watermark that is exactly the heartbeat, as long as no filter can get below the union.

    A filter of the user's that slid below the watermark operator would remove the heartbeat rows and freeze the
    watermark: something that Spark moves no filter through (``observe``) has to stand on this. The heartbeat branch
    goes first, since a union keeps the first child's watermark.
    """
    return _heartbeats(spark, events, column, mailbox, {}).where(_no_row(column)).unionByName(events)


def under_heartbeat(
    spark: SparkSession, events: DataFrame, column: str, mailbox: Mailbox, name: str, held: dict[str, str]
) -> DataFrame:
    """The events under a watermark that is exactly the heartbeat, whatever is done with them afterwards.

    ``held`` says what the state above it is made of, in the user's words: a checkpoint that says otherwise is refused.
    """
    walled = _walled(_heartbeats(spark, events, column, mailbox, held), name)
    return walled.where(_no_row(column)).unionByName(events)


def with_heartbeat_rows(
    spark: SparkSession,
    events: DataFrame,
    column: str,
    mailbox: Mailbox,
    name: str,
    held: dict[str, str],
    told: Callable[[DataFrame, Column], DataFrame],
) -> DataFrame:
    """The same, and among the events rows that tell the heartbeat: ``told`` makes them, of the row and its microsecond.

    A heartbeat is told one micro-batch before it is the watermark. What is told is in force all the same: the rows of
    this micro-batch are here, whatever judged them, and those of the next one are judged by it.
    """
    walled = _walled(_heartbeats(spark, events, column, mailbox, held), name)
    heartbeat_us = (F.unix_millis(column) + F.lit(BELOW_MS)) * 1000
    return told(walled, heartbeat_us).unionByName(events)


def _walled(beats: DataFrame, name: str) -> DataFrame:
    """The wall (``observe``) in the heartbeat branch itself."""
    return beats.observe(WALL_PREFIX + name, F.count(F.lit(1)).alias("heartbeats"))


def _heartbeats(
    spark: SparkSession, events: DataFrame, column: str, mailbox: Mailbox, held: dict[str, str]
) -> DataFrame:
    schema = StructType([StructField(f.name, f.dataType, True, f.metadata) for f in events.schema.fields])
    spark.dataSource.register(HeartbeatSource)
    source = spark.readStream.format(FORMAT).options(
        folder=str(mailbox.folder), column=column, schema=schema.json(), held=json.dumps(held)
    )
    try:
        beats = source.load()
    except AnalysisException as error:
        if "No module named 'slackwater'" not in str(error):
            raise
        raise MissingRequirement(
            "workers-without-slackwater",
            f"Spark's Python workers ({spark.sparkContext.pythonExec}) cannot import slackwater",
            f"set PYSPARK_PYTHON={sys.executable} before Spark is started, or install slackwater where they run",
        ) from None
    return beats.withWatermark(column, "0 seconds")


def _no_row(column: str) -> Column:
    return F.col(column) < F.lit(_BEFORE_ALL_EVENTS).cast("timestamp")
