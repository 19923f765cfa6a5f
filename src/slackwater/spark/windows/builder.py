"""``window``: the window clause as a Python call."""

from __future__ import annotations

import dataclasses
import datetime as dt
from collections.abc import Collection
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame

from slackwater.control.choice import Law, Method
from slackwater.errors import InvalidOption
from slackwater.language import Late, Measure, Window, parse, print_clause
from slackwater.language.clause import parse_clause
from slackwater.language.tree import Extent
from slackwater.names import quoted
from slackwater.plan import Catalog, make_plan
from slackwater.plan.name_checks import check_names
from slackwater.spark.runtime.catalog import describe
from slackwater.spark.runtime.checks import require_stream
from slackwater.spark.windows.column_text import column_text
from slackwater.spark.windows.options import QueryOptions
from slackwater.spark.windows.sql import run_plan
from slackwater.units import duration_ms, ratio

ExtentLike = str | int | dt.timedelta
_STREAM = "slackwater_stream"  # stands for the DataFrame in the query text


def window(
    df: DataFrame,
    *,
    range: ExtentLike | None = None,
    slide: ExtentLike | None = None,
    event_time: str,
    drop_ratio: str | float | None = None,
    slack: ExtentLike | None = None,
    arrival: str | None = None,
    source: str | list[str] | None = None,
    per: str | list[str] | None = None,
    landmark: str | int | None = None,
    heartbeat: str | None = None,
    max_delay: str | dt.timedelta | None = None,
    shed_by: str | None = None,
    error: bool = False,
    late: str = "count",
    name: str | None = None,
    method: str | Method | None = None,
    law: str | Law | None = None,
    shards: int | None = None,
    location: str | None = None,
) -> WindowedStream:
    """Put a window on a streaming DataFrame, with the meaning and the checks of the window clause of ``sql``.

    Continue with ``groupBy`` (optional) and ``agg``.

    :param df: a streaming DataFrame.
    :param range: RANGE: ``"5 minutes"``, a timedelta, ``"100 tuples"``, or a number if ``event_time`` is a number.
    :param slide: SLIDE, in the same forms; without it there is one result per row.
    :param event_time: WATTR, the column that orders the stream.
    :param drop_ratio: DRATIO: ``0.01`` or ``"1%"``.
    :param slack: SLACK: a number of rows or a time.
    :param arrival: ARRIVAL, a timestamp column.
    :param source: SOURCE, one or more columns.
    :param per: PER, the columns whose tuples are counted apart.
    :param landmark: LANDMARK: the start of all windows, instead of ``range``.
    :param heartbeat: HEARTBEAT, a column of heartbeats in the stream.
    :param max_delay: DELAY.
    :param shed_by: SHED BY: a column, or an expression in Spark SQL.
    :param error: WITH ERROR.
    :param late: LATE: ``"count"``, ``"panes"`` or ``"rows"``.
    :param name: this and the following options are those of ``sql``.
    """
    require_stream(df, "df")
    try:
        late_choice = Late(late)
    except ValueError:
        raise InvalidOption("unknown-late", f"late={late!r}", "use 'count', 'panes' or 'rows'") from None
    clause = Window(
        range=_extent("RANGE", range),
        slide=_extent("SLIDE", slide),
        attribute=event_time,
        per=_columns(per),
        landmark=landmark,
        slack=_extent("SLACK", slack),
        drop_ratio=None if drop_ratio is None else ratio(drop_ratio, option="drop_ratio"),
        delay_ms=None if max_delay is None else duration_ms(max_delay, option="max_delay"),
        shed_by=None if shed_by is None else _text(shed_by, df.columns),
        arrival=arrival,
        heartbeat=heartbeat,
        sources=_columns(source),
        late=late_choice,
    )
    options = QueryOptions(name=name, method=method, law=law, shards=shards, location=location)
    return WindowedStream(df, clause, (), error, options)


@dataclass(frozen=True, slots=True)
class WindowedStream:
    """A stream with a window; ``agg`` completes the query."""

    df: DataFrame
    clause: Window
    keys: tuple[str, ...]
    error: bool
    options: QueryOptions

    def groupBy(self, *keys: str | Column) -> WindowedStream:
        """Compute the window for each group."""
        return dataclasses.replace(self, keys=tuple(_text(key, self.df.columns) for key in keys))

    def agg(self, *aggregates: str | Column) -> DataFrame:
        """The results: Spark SQL texts (``"MAX(value) AS peak"``) or Columns (``F.max("value").alias("peak")``)."""
        if not aggregates:
            raise InvalidOption("no-aggregate", "agg() has no aggregate", "give one, such as 'COUNT(*)'")
        selected = ", ".join([*self.keys, *map(_text, aggregates)])
        group = f" GROUP BY {', '.join(self.keys)}" if self.keys else ""
        tail = " WITH ERROR" if self.error else ""
        text = f"SELECT {selected} FROM {_STREAM} {print_clause(self.clause)}{group}{tail}"
        query, catalog = parse(text, allow_code=True), Catalog.of(describe(_STREAM, self.df, None))
        check_names(query, catalog, self.df.sparkSession.catalog.functionExists)
        return run_plan(make_plan(query, catalog), self.df, self.options)


def _text(value: str | Column, columns: Collection[str] = ()) -> str:
    """Spark SQL of a name of one of ``columns``, a text or a Column."""
    if isinstance(value, str):
        is_name = value.lower() in {column.lower() for column in columns} or (columns and value.isidentifier())
        return quoted(value) if is_name else value
    return column_text(value)


def _extent(word: str, value: ExtentLike | None) -> Extent | None:
    if value is None:
        return None
    if isinstance(value, dt.timedelta):
        return Extent(value / dt.timedelta(milliseconds=1), Measure.TIME)
    text = f"{word} {value}"
    clause = parse_clause(text, 0, len(text))
    return {"RANGE": clause.range, "SLIDE": clause.slide, "SLACK": clause.slack}[word]


def _columns(value: str | list[str] | None) -> tuple[str, ...]:
    return () if value is None else (value,) if isinstance(value, str) else tuple(value)
