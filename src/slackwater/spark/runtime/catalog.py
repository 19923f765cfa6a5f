"""Streams by name: what ``FROM name`` means, and what is known about it."""

from __future__ import annotations

from dataclasses import dataclass
from weakref import WeakKeyDictionary

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import (
    ByteType,
    DataType,
    IntegerType,
    LongType,
    ShortType,
    TimestampType,
)

from slackwater.errors import InvalidStream
from slackwater.language import Measure
from slackwater.plan import Catalog, Stream


@dataclass(frozen=True, slots=True)
class Registration:
    """What was said about a stream when it was given a name."""

    event_time: str | None
    key: str | None
    value: str | None


_REGISTERED: WeakKeyDictionary[SparkSession, dict[str, Registration]] = WeakKeyDictionary()


def stream(
    name: str, df: DataFrame, *, event_time: str | None = None, key: str | None = None, value: str | None = None
) -> DataFrame:
    """Give a streaming DataFrame a name that queries can read from, and say which column is its time.

    It is a temporary view like any other. ``event_time`` is the windowing attribute where a query names none (WATTR);
    ``key`` and ``value`` say what standing queries aggregate. The DataFrame comes back unchanged.
    """
    if not df.isStreaming:
        raise InvalidStream("not-a-stream", f"{name} is a batch", "read it with spark.readStream")
    for option, column in (("event_time", event_time), ("key", key), ("value", value)):
        if column is not None and column not in df.columns:
            raise InvalidStream(
                "no-such-column", f"{option}={column!r} is not a column", f"use one of: {', '.join(df.columns)}"
            )
    df.createOrReplaceTempView(name)
    _REGISTERED.setdefault(df.sparkSession, {})[_bare(name)] = Registration(event_time, key, value)
    return df


def catalog_of(spark: SparkSession, names: list[str]) -> Catalog:
    """What Spark and the registrations know about these streams."""
    return Catalog.of(*(describe(name, table_of(spark, name), registration_of(spark, name)) for name in names))


def describe(name: str, df: DataFrame, registration: Registration | None) -> Stream:
    """A DataFrame as the planner sees it."""
    columns = {field.name: measure_of(field.dataType) for field in df.schema.fields}
    times = [column for column, measure in columns.items() if measure is Measure.TIME]
    time = registration.event_time if registration is not None else None
    if time is None and len(times) == 1:
        time = times[0]
    return Stream(name, columns, time)


def table_of(spark: SparkSession, name: str) -> DataFrame:
    """The DataFrame behind a name."""
    try:
        return spark.table(name)
    except AnalysisException as error:
        raise InvalidStream(
            "no-such-stream", f"there is no stream {name!r}", "name it with sw.stream, or make a temporary view"
        ) from error


def registration_of(spark: SparkSession, name: str) -> Registration | None:
    """What was said about a stream, or None if nothing was."""
    return _REGISTERED.get(spark, {}).get(_bare(name))


def _bare(name: str) -> str:
    """A name without its quotes, in any case: Spark's views have theirs in quotes where they need them."""
    inner = name[1:-1].replace("``", "`") if name.startswith("`") and name.endswith("`") else name
    return inner.lower()


def measure_of(kind: DataType) -> Measure | None:
    """What a column of that type can order a stream by."""
    if isinstance(kind, TimestampType):
        return Measure.TIME
    return Measure.NUMBER if isinstance(kind, LongType | IntegerType | ShortType | ByteType) else None
