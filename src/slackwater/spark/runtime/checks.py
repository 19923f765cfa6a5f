"""Checks of a user's DataFrame that every entry point shares."""

from __future__ import annotations

from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql.types import DataType, NumericType, TimestampType

from slackwater.errors import InvalidStream, PromiseConflict
from slackwater.names import find_name, near, quoted

_WATERMARK_METADATA = "spark.watermarkDelayMs"
WATERMARK_POLICY = "spark.sql.streaming.multipleWatermarkPolicy"


def require_stream(df: Any, what: str) -> None:
    """Refuse anything but a streaming DataFrame."""
    if not isinstance(df, DataFrame):
        raise InvalidStream("not-a-dataframe", f"{what} is a {type(df).__name__}", "pass a streaming DataFrame")
    if not df.isStreaming:
        raise InvalidStream("not-a-stream", f"{what} is a batch DataFrame", "read it with spark.readStream")


def require_columns(df: DataFrame, **options: str | None) -> None:
    """Refuse an option that names a column the DataFrame does not have in any case; ``None`` is not given."""
    for option, column in options.items():
        if column is not None and column not in df.columns:
            find_column(df, option, column)


def find_column(df: DataFrame, option: str, name: str) -> str:
    """The column of that name as the DataFrame spells it, in any case; refuses a name that no column has.

    Backquotes around the name are left out, so a name may be written as in SQL.
    """
    found = find_name(name, df.columns)
    if found is not None:
        return found
    problem = f"{option}={name!r} is not a column{near(name, df.columns)}"
    raise InvalidStream("no-such-column", problem, f"use one of: {', '.join(df.columns)}")


def find_columns(df: DataFrame, option: str, names: str | list[str] | None) -> list[str]:
    """The columns of an option that takes one or more, as the DataFrame spells them."""
    given = [names] if isinstance(names, str) else list(names or [])
    return [find_column(df, option, name) for name in given]


def require_timestamps(df: DataFrame, **options: str | None) -> None:
    """Refuse an option whose column is not a timestamp."""
    _require_type(df, TimestampType, "not-a-timestamp", "TIMESTAMP", options)


def require_numbers(df: DataFrame, **options: str | None) -> None:
    """Refuse an option whose column is not a number."""
    _require_type(df, NumericType, "not-a-number", "DOUBLE", options)


def _require_type(
    df: DataFrame, wanted: type[DataType], condition: str, sql_type: str, options: dict[str, str | None]
) -> None:
    for option, column in options.items():
        if column is not None and not isinstance(df.schema[column].dataType, wanted):
            kind = df.schema[column].dataType.simpleString()
            raise InvalidStream(
                condition,
                f"{option}={column!r} is a {kind}",
                f"cast it first, as in CAST({_shown(column)} AS {sql_type})",
            )


def _shown(column: str) -> str:
    return column if column.isidentifier() else quoted(column)


def refuse_watermark(df: DataFrame) -> None:
    """Refuse a DataFrame that has a watermark already.

    A file that a query with a watermark wrote marks the column too, but a stream that reads it has no watermark.
    """
    marked = any(_WATERMARK_METADATA in field.metadata for field in df.schema.fields)
    if marked and _watermark_in_plan(df):
        raise PromiseConflict(
            "second-watermark",
            "the DataFrame has a watermark already, and Spark would take the smaller of the two",
            "leave out withWatermark (or the first with_drop_ratio)",
        )


def _watermark_in_plan(df: DataFrame) -> bool:
    """Whether the plan has a watermark; True where it cannot be read (Spark Connect)."""
    frame: Any = df
    try:
        plan = str(frame._jdf.queryExecution().analyzed().toString())
    except Exception:
        return True
    return "EventTimeWatermark" in plan


def refuse_max_policy(policy: str | None) -> None:
    """Refuse the policy under which the watermark of a query with several streams is that of the most advanced one.

    Spark would drop rows of the others that their promises count as on time.
    """
    if policy is not None and policy.lower() == "max":
        raise PromiseConflict(
            "watermark-policy",
            f"{WATERMARK_POLICY}={policy}: Spark would drop rows by the highest heartbeat of the query, "
            "also rows that are on time by their own",
            "set it to min before the promise is made and the query starts; it is stored in the checkpoint, "
            "so a query that ran under max needs a new one",
        )
