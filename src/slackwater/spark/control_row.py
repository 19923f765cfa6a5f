"""The control row inside a plan: what judges and places the rows of this micro-batch, read anew in each."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from pyspark.sql import Column, SparkSession
from pyspark.sql import functions as F

from slackwater.spark.exchange import UNKNOWN_US, Exchange

_V1_SOURCES = "spark.sql.sources.useV1SourceList"


def control_row(spark: SparkSession, exchange: Exchange) -> Column:
    """The heartbeat in force and the reference that rows are placed by, in microseconds; null while unknown.

    A struct of ``heartbeat_us`` and ``reference_us``.

    Read through the V2 text source, which costs a micro-batch some 30 ms as a scalar subquery; the V1 source
    would cost several times that.
    """
    with _v2_text(spark):
        line = spark.read.schema("value string").text(str(exchange.control_path))
    heartbeat, reference = (F.substring("value", first, 20).cast("bigint") for first in (1, 22))
    return line.select(
        F.struct(
            F.when(heartbeat > F.lit(UNKNOWN_US), heartbeat).alias("heartbeat_us"),
            F.when(reference > F.lit(UNKNOWN_US), reference).alias("reference_us"),
        )
    ).scalar()


@contextmanager
def _v2_text(spark: SparkSession) -> Iterator[None]:
    before = spark.conf.get(_V1_SOURCES)
    spark.conf.set(_V1_SOURCES, "")
    try:
        yield
    finally:
        spark.conf.set(_V1_SOURCES, before or "")
