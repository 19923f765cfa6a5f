"""Streams by name: the DataFrame behind ``FROM name`` and what the user said about it."""

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
    StructType,
    TimestampNTZType,
    TimestampType,
)

from slackwater.errors import InvalidStream
from slackwater.language import Measure
from slackwater.names import quoted
from slackwater.plan import Catalog, Stream
from slackwater.plan.sql_types import UNKNOWN, StructClass
from slackwater.spark.runtime.checks import find_column, require_stream


@dataclass(frozen=True, slots=True)
class Registration:
    """The columns that the user named when registering a stream."""

    event_time: str | None
    key: str | None
    value: str | None


_CLASSES = {
    "boolean": "b", "byte": "i", "short": "i", "integer": "i", "long": "l", "decimal": "c", "float": "d", "double": "d",
    "string": "s", "timestamp": "t", "timestamp_ntz": "n", "date": "e", "binary": "x", "array": "a", "map": "m",
}  # fmt: skip
_REGISTERED: WeakKeyDictionary[SparkSession, dict[str, Registration]] = WeakKeyDictionary()


def stream(
    name: str, df: DataFrame, *, event_time: str | None = None, key: str | None = None, value: str | None = None
) -> DataFrame:
    """Register a streaming DataFrame under a name that queries can read from.

    It becomes an ordinary temporary view. The DataFrame is returned unchanged.

    :param event_time: the column that orders the stream where a query names none (``WATTR``).
    :param key: the column that tells the streams of a standing query apart.
    :param value: the column that standing queries aggregate.
    """
    require_stream(df, name)
    named = {"event_time": event_time, "key": key, "value": value}
    spelled = {o: None if column is None else find_column(df, o, column) for o, column in named.items()}
    # Spark parses the name, so one with a space must be quoted
    df.createOrReplaceTempView(name if name.startswith("`") or name.isidentifier() else quoted(name))
    _REGISTERED.setdefault(df.sparkSession, {})[_bare(name)] = Registration(**spelled)
    return df


def catalog_of(spark: SparkSession, names: list[str]) -> Catalog:
    """A catalog of these streams, from their schemas and registrations."""
    return Catalog.of(*(describe(name, table_of(spark, name), registration_of(spark, name)) for name in names))


def describe(name: str, df: DataFrame, registration: Registration | None) -> Stream:
    """A DataFrame as the planner sees it."""
    columns = {field.name: measure_of(field.dataType) for field in df.schema.fields}
    times = [column for column, measure in columns.items() if measure is Measure.TIME]
    time = registration.event_time if registration is not None else None
    if time is None and len(times) == 1:
        time = times[0]
    zoneless = (field.name for field in df.schema.fields if isinstance(field.dataType, TimestampNTZType))
    types = {field.name: _class_of(field.dataType) for field in df.schema.fields}
    return Stream(name, columns, time, frozenset(zoneless), types)


def _class_of(kind: DataType) -> str:
    if isinstance(kind, StructType):
        return StructClass({field.name: _class_of(field.dataType) for field in kind.fields})
    return _CLASSES.get(kind.typeName().partition("(")[0], UNKNOWN)


def table_of(spark: SparkSession, name: str) -> DataFrame:
    """The DataFrame behind a name."""
    try:
        return spark.table(name)
    except AnalysisException as error:
        raise InvalidStream(
            "no-such-stream", f"there is no stream {name!r}", "name it with sw.stream, or make a temporary view"
        ) from error


def registration_of(spark: SparkSession, name: str) -> Registration | None:
    """The registration of a stream; None if it was not registered."""
    return _REGISTERED.get(spark, {}).get(_bare(name))


def _bare(name: str) -> str:
    """A name without quotes, in lower case: Spark quotes the names of views where they need it."""
    inner = name[1:-1].replace("``", "`") if name.startswith("`") and name.endswith("`") else name
    return inner.lower()


def measure_of(kind: DataType) -> Measure | None:
    """What a column of that type can order a stream by."""
    if isinstance(kind, TimestampType):
        return Measure.TIME
    return Measure.NUMBER if isinstance(kind, LongType | IntegerType | ShortType | ByteType) else None
