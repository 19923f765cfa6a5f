"""The control row inside a plan: what judges, places and sheds the rows of this micro-batch, read anew in each."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from slackwater.spark.exchange import UNKNOWN_US, Exchange

_V1_SOURCES = "spark.sql.sources.useV1SourceList"


def heartbeat_us(spark: SparkSession, exchange: Exchange) -> Column:
    """The heartbeat that judges this micro-batch, in microseconds; null while there is none."""
    return _field(spark, exchange, 1)


def reference_us(spark: SparkSession, exchange: Exchange) -> Column:
    """What this micro-batch's rows are placed by, in microseconds: the heartbeat, or before it the clock as last heard.

    Null while nothing is known.
    """
    return _field(spark, exchange, 22)


def shed_ratio(spark: SparkSession, exchange: Exchange) -> Column:
    """The share of this micro-batch's rows to leave out."""
    return _line(spark, exchange.shed_path).select(F.col("value").cast("double")).scalar()


def _field(spark: SparkSession, exchange: Exchange, first: int) -> Column:
    us = F.substring("value", first, 20).cast("bigint")
    return _line(spark, exchange.control_path).select(F.when(us > F.lit(UNKNOWN_US), us)).scalar()


def _line(spark: SparkSession, path: Path) -> DataFrame:
    """The file of one line, for a scalar subquery.

    Read through the V2 text source, which costs a micro-batch some 30 ms; the V1 source would cost several times that.
    """
    with _v2_text(spark):
        return spark.read.schema("value string").text(str(path))


@contextmanager
def _v2_text(spark: SparkSession) -> Iterator[None]:
    before = spark.conf.get(_V1_SOURCES)
    spark.conf.set(_V1_SOURCES, "")
    try:
        yield
    finally:
        spark.conf.set(_V1_SOURCES, before or "")
