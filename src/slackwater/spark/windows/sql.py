"""``sql``: a query text with a window in brackets becomes a streaming DataFrame."""

from __future__ import annotations

import dataclasses
import datetime as dt
import math

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession

from slackwater.control.choice import Law, Method
from slackwater.control.deferral import Deferral
from slackwater.control.disorder import DEFAULT_METHOD
from slackwater.errors import InvalidStream, QueryTextError
from slackwater.language import Late, Measure, Query, parse
from slackwater.plan import (
    Catalog,
    CombinedPlan,
    Kind,
    Path,
    Plan,
    explain,
    explain_combined,
    is_combined,
    make_combined_plan,
    make_plan,
)
from slackwater.plan.combined import Copies
from slackwater.plan.names import table_name
from slackwater.plan.shape import template_without_window
from slackwater.spark.completeness.observation import observed_events, promised_events
from slackwater.spark.completeness.open_windows import WindowGrid
from slackwater.spark.completeness.promise import default_method, new_promise, with_session_waits
from slackwater.spark.completeness.source_heartbeats import with_source_heartbeats
from slackwater.spark.completeness.tracker import CompletenessSpec
from slackwater.spark.runtime.catalog import describe, registration_of, table_of
from slackwater.spark.runtime.error_summary import error_summary
from slackwater.spark.runtime.number_time import number_time
from slackwater.spark.runtime.results import observe_results
from slackwater.spark.runtime.views import sql_over, sql_over_all
from slackwater.spark.standing.sql import standing_query
from slackwater.spark.timeliness.api import with_max_delay
from slackwater.spark.windows.copied_rows import copied_to_windows
from slackwater.spark.windows.late_rows import with_late_rows
from slackwater.spark.windows.native_panes import native_windows
from slackwater.spark.windows.options import QueryOptions
from slackwater.spark.windows.ordered import landmark_us, ordered_windows
from slackwater.spark.windows.session_names import check_session_names
from slackwater.spark.windows.sessions import session_windows
from slackwater.spark.worker.columns import NUMBER_TIME


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
    """Turn a query text into a streaming DataFrame; write it with ``writeStream`` in append mode.

    The table with the window is a stream named with ``sw.stream``, or any temporary view of a streaming DataFrame.
    Everything outside the brackets is Spark SQL. An option that the query cannot use is refused.

    :param name: the name of the promise, as in ``with_drop_ratio``.
    :param method: how the wait is found, as in ``with_drop_ratio``; with WITHIN only for DRATIO.
    :param law: how the shed ratio is found, as in ``with_max_delay``; only for DELAY.
    :param deferral: how evaluations are deferred, as in ``standing``; only for WITHIN.
    :param shards: the number of tasks that share the ordered path. Default: ``spark.slackwater.shards``, else 16. For
        WITHIN it is that of ``standing``.
    :param location: the folder of the promise, as in ``with_drop_ratio``.
    :param allow_code: allow functions that run code, such as ``reflect``.
    """
    options = QueryOptions(name=name, method=method, law=law, deferral=deferral, shards=shards, location=location)
    return run_query(spark, parse(text, allow_code=allow_code), options)


def run_query(spark: SparkSession, query: Query, options: QueryOptions) -> DataFrame:
    """The streaming DataFrame of a parsed query over the tables of the session."""
    check_session_names(spark, query)
    try:
        return _run_checked(spark, query, options)
    except AnalysisException as error:
        remedy = "correct the query; Spark names the part of it"
        raise QueryTextError("wrong-query", f"Spark rejects the query: {error_summary(error)}", remedy) from error


def _run_checked(spark: SparkSession, query: Query, options: QueryOptions) -> DataFrame:
    if query.precision is not None:
        options.refuse_unused_by_within(query)
        return standing_query(
            spark,
            query,
            name=options.name,
            deferral=options.deferral,
            method=options.method,
            law=options.law,
            shards=options.shards,
            location=options.location,
        )
    if is_combined(query):
        return run_combined(spark, plan_combined(spark, query), options)
    plan, events = plan_query(spark, query)
    return run_plan(plan, events, options)


def plan_of(spark: SparkSession, query: Query) -> tuple[Plan | CombinedPlan, str]:
    """The plan of a query without WITHIN over the tables of the session, and the same as text."""
    if is_combined(query):
        combined = plan_combined(spark, query)
        return combined, explain_combined(combined)
    plan, _ = plan_query(spark, query)
    return plan, explain(plan)


def plan_combined(spark: SparkSession, query: Query) -> CombinedPlan:
    """The checked plan of a query with several windows over the tables of the session."""
    names = {table.name: table_name(table) for table, _ in query.windowed()}
    streams = []
    for bare, name in names.items():
        streams.append(describe(bare, table_of(spark, name), registration_of(spark, bare)))
    return make_combined_plan(query, Catalog.of(*streams))


def run_combined(spark: SparkSession, plan: CombinedPlan, options: QueryOptions) -> DataFrame:
    """The streaming DataFrame of a query with several windows; each part has a promise of its own."""
    for part in plan.parts:
        options.refuse_unused_by(part.plan)
    frames = []
    for number, part in enumerate(plan.parts, 1):
        name = None if options.name is None else f"{options.name}-{number}-{part.name}"
        own = dataclasses.replace(options, name=name)
        frames.append(run_plan(part.plan, _stream_of(spark, part.plan.stream), own, part.copies))
    return sql_over_all(frames, plan.text.fill)


def _stream_of(spark: SparkSession, name: str) -> DataFrame:
    events = table_of(spark, name)
    if not events.isStreaming:
        raise InvalidStream("not-a-stream", f"{name} is a batch", "read it with spark.readStream")
    return events


def plan_query(spark: SparkSession, query: Query) -> tuple[Plan, DataFrame]:
    """The checked plan of a query over the tables of the session, and the DataFrame of its stream."""
    windowed = query.windowed()
    if not windowed:
        make_plan(query)  # raises the error for a query without a window
    table = windowed[0][0]
    name = table_name(table)
    events = table_of(spark, name)
    plan = make_plan(query, Catalog.of(describe(table.name, events, registration_of(spark, table.name))))
    return plan, _stream_of(spark, name)


def run_plan(plan: Plan, events: DataFrame, options: QueryOptions, copies: Copies | None = None) -> DataFrame:
    """The streaming DataFrame of a plan over the DataFrame of its stream; ``copies`` is for joined windows."""
    options.refuse_unused_by(plan)
    spark = events.sparkSession
    if plan.window.delay_ms is not None:
        events = _with_shedding(plan, events, options)  # before everything else, so that shed rows cost nothing more
    columns = events.columns
    arrival = plan.window.arrival
    if plan.measure is Measure.NUMBER:
        events = events.withColumn(NUMBER_TIME, number_time(plan))
        arrival = NUMBER_TIME  # the highest number is the clock
    aggregates_natively = plan.kind is Kind.SESSION or plan.path in (Path.ROWS, Path.NATIVE)
    promise = _promise(plan, events, arrival, options, follows_rows=copies is None and aggregates_natively)
    if plan.window.heartbeat is not None:
        events = with_source_heartbeats(plan, events, promise.name)
    if copies is not None:
        return copied_to_windows(observed_events(spark, events, promise, arrival), copies, promise)
    if plan.kind is Kind.SESSION:
        results = session_windows(plan, promised_events(spark, events, promise, arrival))
        return _finished(plan, observe_results(results, promise.name))
    if plan.path is Path.ROWS:
        template = template_without_window(plan.query, plan.attribute)
        return sql_over(promised_events(spark, events, promise, arrival), template.fill)
    observed = observed_events(spark, events, promise, arrival)
    if plan.path is Path.NATIVE:
        results = native_windows(spark, plan, observed, promise)
        results = observe_results(results, promise.name, with_late_panes=plan.late is Late.PANES)
    else:
        results = ordered_windows(spark, plan, observed, promise, options.shards_or_default(spark))
    if plan.late is Late.ROWS:
        return with_late_rows(plan, results, observed, columns, landmark_us(spark, plan))
    return _finished(plan, results)


def _finished(plan: Plan, results: DataFrame) -> DataFrame:
    """The query around the window, over its results."""
    outer = None if plan.shape is None else plan.shape.outer
    return results if outer is None else sql_over(results, outer.fill)


def _with_shedding(plan: Plan, events: DataFrame, options: QueryOptions) -> DataFrame:
    """The events under the timeliness promise of DELAY; with AFTER WHERE those that pass its conditions."""
    assert plan.window.delay_ms is not None
    for condition in plan.filter_first:
        events = events.where(condition)
    return with_max_delay(
        events,
        dt.timedelta(milliseconds=plan.window.delay_ms),
        arrival=plan.window.arrival,
        name=None if options.name is None else f"{options.name}-delay",
        law=options.law,
        shed_by=plan.window.shed_by,
        location=options.location,
    )


def _promise(
    plan: Plan, events: DataFrame, arrival: str | None, options: QueryOptions, *, follows_rows: bool
) -> CompletenessSpec:
    """Register the completeness promise of a plan."""
    assert plan.attribute is not None
    numeric_order = plan.measure is Measure.NUMBER
    if numeric_order:
        column, completeness = NUMBER_TIME, dataclasses.replace(plan.promise, idle_after_ms=math.inf)
    else:
        column, completeness = plan.attribute, with_session_waits(events.sparkSession, plan.promise)
    return new_promise(
        events,
        column,
        completeness,
        arrival=arrival,
        source=list(plan.window.sources),
        name=options.name,
        method=_method(plan, events.sparkSession, options),
        location=options.location,
        numeric_order=numeric_order,
        grid=WindowGrid.of(plan),
        counts_all=plan.window.heartbeat is None,
        slack_by_row=plan.slack_by_row,
        follows_rows=follows_rows,
    )


def _method(plan: Plan, spark: SparkSession, options: QueryOptions) -> Method:
    """The method that the user gave, else the one of the window clause, else the session's."""
    if options.method is not None:
        method = Method.of(options.method)
    else:
        method = default_method(spark) if plan.method == DEFAULT_METHOD else Method(plan.method)
    return method.with_options(**plan.method_options)
