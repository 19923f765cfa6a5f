"""``window``: the window clause as Python."""

from __future__ import annotations

import dataclasses
import datetime as dt
import itertools
from dataclasses import dataclass
from typing import Any

from pyspark.sql import Column, DataFrame

from slackwater.control.choice import Law, Method
from slackwater.errors import InvalidOption, InvalidStream
from slackwater.language import Late, Measure, Window, parse, print_clause
from slackwater.language.clause import parse_clause
from slackwater.language.tree import Extent
from slackwater.spark.windows.sql import run_query
from slackwater.units import duration_ms, ratio

_NAMES = itertools.count()
ExtentLike = str | int | dt.timedelta


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
    error: bool = False,
    late: str = "count",
    name: str | None = None,
    method: str | Method | None = None,
    law: str | Law | None = None,
    shards: int | None = None,
    location: str | None = None,
) -> WindowedStream:
    """The window clause on a streaming DataFrame: the same words, checks and plans as in a query text.

    ``range`` and ``slide`` are ``"5 minutes"``, a timedelta, ``"100 tuples"``, or a number for a numeric ``event_time``.
    ``landmark``, ``heartbeat``, ``max_delay`` and ``late`` are LANDMARK, HEARTBEAT, DELAY and LATE; ``error`` is WITH
    ERROR. The rest are the options of ``sql``. Follow it with ``groupBy`` (optional) and ``agg``.
    """
    if not isinstance(df, DataFrame) or not df.isStreaming:
        raise InvalidStream("not-a-stream", "the DataFrame is a batch", "read it with spark.readStream")
    try:
        chosen = Late(late)
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
        arrival=arrival,
        heartbeat=heartbeat,
        sources=_columns(source),
        late=chosen,
    )
    run = {
        "name": name,
        "method": method,
        "law": law,
        "shards": shards,
        "location": location,
    }
    return WindowedStream(df, clause, (), error, run)


@dataclass(frozen=True, slots=True)
class WindowedStream:
    """A stream with a window, waiting for its aggregates."""

    df: DataFrame
    clause: Window
    keys: tuple[str, ...]
    error: bool
    run: dict[str, Any]

    def groupBy(self, *keys: str | Column) -> WindowedStream:
        """The same window for each group."""
        return dataclasses.replace(self, keys=tuple(_text(key, quote=True) for key in keys))

    def agg(self, *aggregates: str | Column) -> DataFrame:
        """The results: Spark SQL texts (``"MAX(value) AS peak"``) or Columns (``F.max("value").alias("peak")``)."""
        if not aggregates:
            raise InvalidOption("no-aggregate", "agg() has no aggregate", "give one, such as 'COUNT(*)'")
        name = f"slackwater_df_{next(_NAMES)}"
        self.df.createOrReplaceTempView(name)
        selected = ", ".join([*self.keys, *(_text(aggregate, quote=False) for aggregate in aggregates)])
        group = f" GROUP BY {', '.join(self.keys)}" if self.keys else ""
        tail = " WITH ERROR" if self.error else ""
        query = parse(f"SELECT {selected} FROM {name} {print_clause(self.clause)}{group}{tail}", allow_code=True)
        return run_query(self.df.sparkSession, query, **self.run)


def _text(value: str | Column, *, quote: bool) -> str:
    if isinstance(value, str):
        return f"`{value}`" if quote and value.isidentifier() else value
    node: Any = value
    return str(node._jc.node().sql())


def _extent(word: str, value: ExtentLike | None) -> Extent | None:
    if value is None:
        return None
    if isinstance(value, dt.timedelta):
        return Extent(value / dt.timedelta(milliseconds=1), Measure.TIME)
    text = f"{word} {value}"
    said = parse_clause(text, 0, len(text))
    return {"RANGE": said.range, "SLIDE": said.slide, "SLACK": said.slack}[word]


def _columns(value: str | list[str] | None) -> tuple[str, ...]:
    return () if value is None else (value,) if isinstance(value, str) else tuple(value)
