"""The control row inside a plan: what judges, places and sheds the rows of this micro-batch, read anew in each."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from slackwater.spark.exchange import UNKNOWN_US, Exchange

CONTROL_PREFIX = "slackwater-control:"
_V1_SOURCES = "spark.sql.sources.useV1SourceList"


def control_row(spark: SparkSession, exchange: Exchange, name: str) -> Column:
    """As an array: the heartbeat that judges this micro-batch, what its rows are placed by, now, where thinning begins.

    All in microseconds. Rows are placed by the heartbeat, or before it by the clock as last heard. Each of these two is
    null while it is not known. What places and thins them is also observed, under the promise's ``name``: there is one
    row here, and as a column it would cost every row. Every mention of the result is planned anew in each micro-batch
    (some 10 ms): mention it once, as a column.

    An array, since a number that changes with the micro-batch would stand in the generated code, which Spark would
    compile, and Java warm up, anew for each; what comes out of an array is data. For the same reason now is no
    ``current_timestamp()`` in the rows' own plan.
    """
    judge, reference, thin_from = (F.substring("value", first, 20).cast("bigint") for first in (1, 22, 43))
    known = (F.when(us > F.lit(UNKNOWN_US), us) for us in (judge, reference))
    row = F.concat(F.array(*known), F.array(F.unix_micros(F.current_timestamp())), F.array(thin_from))
    line = _line(spark, exchange.control_path).select(row.alias("row"))
    placed_by = [F.first(F.col("row")[1]).alias("reference_us"), F.first(F.col("row")[3]).alias("thin_from_us")]
    return line.observe(CONTROL_PREFIX + name, *placed_by).scalar()


def shed_row(spark: SparkSession, exchange: Exchange) -> Column:
    """The share of this micro-batch's rows to leave out, and now in microseconds; an array like the control row."""
    ratio, now = F.col("value").cast("double"), F.unix_micros(F.current_timestamp()).cast("double")
    return _line(spark, exchange.shed_path).select(F.concat(F.array(ratio), F.array(now))).scalar()


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
