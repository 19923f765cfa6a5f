"""``sql``: a query with a window in brackets becomes a streaming DataFrame."""

from __future__ import annotations

import dataclasses
import datetime as dt
import itertools
import math

from pyspark.sql import DataFrame, SparkSession

from slackwater.control.choice import Law, Method
from slackwater.control.deferral import Deferral
from slackwater.errors import InvalidOption, InvalidStream
from slackwater.language import Late, Measure, Query, parse
from slackwater.plan import Catalog, Path, Plan, make_plan
from slackwater.plan.names import table_name
from slackwater.plan.shape import template_without_window
from slackwater.spark.completeness.observation import observed_events, promised_events
from slackwater.spark.completeness.promise import new_promise
from slackwater.spark.completeness.source_heartbeats import with_source_heartbeats
from slackwater.spark.runtime.catalog import describe, registration_of, table_of
from slackwater.spark.runtime.number_time import number_time
from slackwater.spark.runtime.results import observe_results
from slackwater.spark.runtime.sharding import MOST_SHARDS
from slackwater.spark.standing.sql import standing_query
from slackwater.spark.timeliness.api import DEFAULT_SPARK_LAW, with_max_delay
from slackwater.spark.windows.late_rows import with_late_rows
from slackwater.spark.windows.native_panes import native_windows
from slackwater.spark.windows.ordered import landmark_us, ordered_windows
from slackwater.spark.worker.columns import NUMBER_TIME

DEFAULT_SHARDS = 16
_VIEWS = itertools.count()


def sql(
    spark: SparkSession,
    text: str,
    *,
    name: str | None = None,
    method: str | Method | None = None,
    law: str | Law | None = None,
    deferral: str | Deferral | None = None,
    shards: int | None = None,
    location: str | None = None,
    allow_code: bool = False,
) -> DataFrame:
    """The streaming DataFrame that a query text says, to be written with ``writeStream`` in append mode.

    The windowed table is a stream named with ``sw.stream``, or any temporary view over a streaming DataFrame.
    Everything outside the brackets is Spark SQL. ``name``, ``method`` and ``location`` are those of
    ``with_drop_ratio``; ``law`` is that of ``with_max_delay``, for DELAY; ``deferral`` is that of ``standing``, for
    WITHIN; ``shards`` is how many tasks share the ordered path, 16 unless given. Functions that run code are refused
    unless ``allow_code``.
    """
    query = parse(text, allow_code=allow_code)
    return run_query(
        spark,
        query,
        name=name,
        method=method,
        law=law,
        deferral=deferral,
        shards=shards,
        location=location,
    )


def run_query(
    spark: SparkSession,
    query: Query,
    *,
    name: str | None = None,
    method: str | Method | None = None,
    law: str | Law | None = None,
    deferral: str | Deferral | None = None,
    shards: int | None = None,
    location: str | None = None,
) -> DataFrame:
    """The streaming DataFrame of a query."""
    if shards is not None and not 1 <= shards <= MOST_SHARDS:
        raise InvalidOption("invalid-shards", f"shards={shards!r}", f"use 1 to {MOST_SHARDS}")
    if query.precision is not None:
        if method is not None or law is not None:
            option, value = ("method", method) if method is not None else ("law", law)
            raise InvalidOption(
                "option-not-used", f"{option}={value!r} has no effect on a query with WITHIN", f"leave out {option}"
            )
        return standing_query(spark, query, name=name, deferral=deferral, shards=shards, location=location)
    if deferral is not None:
        raise InvalidOption(
            "option-not-used", f"deferral={deferral!r} has no effect on a query without WITHIN", "leave out deferral"
        )
    plan, events = plan_query(spark, query)
    assert plan.attribute is not None
    if plan.window.delay_ms is not None:
        # First of all: what is shed costs nothing more.
        events = with_max_delay(
            events,
            dt.timedelta(milliseconds=plan.window.delay_ms),
            arrival=plan.window.arrival,
            name=None if name is None else f"{name}-delay",
            law=law or DEFAULT_SPARK_LAW,
            location=location,
        )
    columns = events.columns
    column, arrival, completeness = plan.attribute, plan.window.arrival, plan.promise
    numeric_order = plan.measure is Measure.NUMBER
    if numeric_order:
        # A number orders the stream as a time would, a millisecond each; its front is its clock.
        events = events.withColumn(NUMBER_TIME, number_time(plan))
        column = arrival = NUMBER_TIME
        completeness = dataclasses.replace(completeness, idle_after_ms=math.inf)
    promise = new_promise(
        events,
        column,
        completeness,
        arrival=arrival,
        source=list(plan.window.sources),
        name=name,
        method=Method.of(method or plan.method).with_options(**plan.method_options),
        location=location,
        numeric_order=numeric_order,
    )
    if plan.window.heartbeat is not None:
        events = with_source_heartbeats(plan, events, promise.name)
    if plan.path is Path.ROWS:
        return _around(spark, query, promised_events(spark, events, promise, arrival))
    observed = observed_events(spark, events, promise, arrival)
    if plan.path is Path.NATIVE:
        found = native_windows(spark, plan, observed, promise)
        result = observe_results(found, promise.name, with_late_panes=plan.late is Late.PANES)
    else:
        result = ordered_windows(spark, plan, observed, promise, shards or DEFAULT_SHARDS)
    if plan.late is Late.ROWS:
        return with_late_rows(plan, result, observed, columns, landmark_us(spark, plan))
    outer = plan.shape.outer if plan.shape is not None else None
    if outer is None:
        return result
    view = f"slackwater_result_{next(_VIEWS)}"
    result.createOrReplaceTempView(view)
    return spark.sql(outer.fill(view))


def plan_query(spark: SparkSession, query: Query) -> tuple[Plan, DataFrame]:
    """The checked plan of a query over what the session knows, and the DataFrame of its stream."""
    windowed = query.windowed()
    if not windowed:
        make_plan(query)  # says that there is no window
    table = windowed[0][0]
    name = table_name(table)
    events = table_of(spark, name)
    plan = make_plan(query, Catalog.of(describe(table.name, events, registration_of(spark, table.name))))
    if not events.isStreaming:
        raise InvalidStream("not-a-stream", f"{name} is a batch", "read it with spark.readStream")
    return plan, events


def _around(spark: SparkSession, query: Query, stream: DataFrame) -> DataFrame:
    """The query as Spark's own, over the stream under its promise."""
    view = f"slackwater_rows_{next(_VIEWS)}"
    stream.createOrReplaceTempView(view)
    return spark.sql(template_without_window(query).fill(view))
