"""A file of one line as a table that Spark reads again in every micro-batch."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

from slackwater.spark.runtime.connect import is_connect

_V1_SOURCES = "spark.sql.sources.useV1SourceList"


def one_line(spark: SparkSession, path: Path) -> DataFrame:
    """The file's line in the column ``value``, for use as a scalar subquery.

    It is read through the V2 text source, which costs some 30 ms per micro-batch. The V1 source costs several times
    that. A server of Spark Connect chooses the source when the query starts, by its own setting.
    """
    if is_connect(spark):
        return spark.read.schema("value string").text(str(path))
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
