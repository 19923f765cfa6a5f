"""The plan of a completeness promise: rows get their histogram cell, which is observed in every micro-batch."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructField

from slackwater.control.disorder.controller import FUTURE_TOLERANCE_MS
from slackwater.names import quoted
from slackwater.spark.completeness.control_row import Control, control_row, known
from slackwater.spark.completeness.handler import METRICS_PREFIX
from slackwater.spark.completeness.heartbeat_stream import WATERMARKED, with_heartbeats
from slackwater.spark.completeness.histogram import cell_column, count_cells, is_drawn, is_valid, named_sources
from slackwater.spark.completeness.late_reason import late_reason
from slackwater.spark.completeness.lateness import count_lateness, lateness_column
from slackwater.spark.completeness.problem_rows import problem_row, sample_metrics, samples_rows
from slackwater.spark.completeness.tracker import CompletenessSpec
from slackwater.spark.worker.columns import (
    ARRIVAL_US,
    CELL,
    CLOCK_US,
    CONTROL,
    EVENT_US,
    HEARTBEAT_US,
    LATENESS,
    PROBLEM_ROW,
    WATERMARK_TIME,
)
from slackwater.spark.worker.control_line import NEVER_US
from slackwater.spark.worker.heartbeat_source import BELOW_MS
from slackwater.units import DAY_US, MS_US

FUTURE_US = round(FUTURE_TOLERANCE_MS) * MS_US
"""A row that is further ahead of its arrival never raises the watermark."""


def promised_events(
    spark: SparkSession,
    events: DataFrame,
    spec: CompletenessSpec,
    arrival: str | None,
    *,
    keep_invalid: bool = False,
    late: str | None = None,
) -> DataFrame:
    """The events under the heartbeat; their histogram around it is observed in every micro-batch.

    ``late`` names a column to add: why the row is late or invalid.
    Heartbeats join the events below the one ``observe``. A second one would break the generated code once more, and
    each break copies every row.
    """
    row = control_row(spark, spec.mailbox, follows_rows=spec.follows_rows)
    marked, metrics = marked_events(events, spec, arrival, row, raises_watermark=True, late=late)
    observed = _observed(with_heartbeats(spark, marked, spec.mailbox), spec, row, metrics, keep_invalid)
    return observed.select([_column(field, spec.event_time) for field in observed.schema])


def observed_events(spark: SparkSession, events: DataFrame, spec: CompletenessSpec, arrival: str | None) -> DataFrame:
    """The valid events without a watermark; their histogram is observed in every micro-batch.

    Each row carries its event time and the heartbeat that judges it (``EVENT_US``, ``HEARTBEAT_US``). If rows can raise
    the heartbeat, ``WATERMARK_TIME`` says how high.
    """
    row = control_row(spark, spec.mailbox, follows_rows=spec.follows_rows)
    raises = spec.follows_rows
    marked, metrics = marked_events(events, spec, arrival, row, keep_heartbeat=True, raises_watermark=raises)
    return _observed(marked, spec, row, metrics, keep_invalid=False)


def marked_events(
    events: DataFrame,
    spec: CompletenessSpec,
    arrival: str | None,
    row: Column,
    *,
    keep_heartbeat: bool = False,
    raises_watermark: bool = False,
    late: str | None = None,
) -> tuple[DataFrame, list[Column]]:
    """The events with their cells, and the metrics to observe. ``row`` is the control row that judges them.

    ``raises_watermark`` adds how high each row may raise Spark's watermark.
    ``observe`` copies every row, so the result has no column that is not needed above it.
    """
    marked = events.select("*", F.unix_micros(F.col(quoted(spec.event_time))).alias(EVENT_US), row.alias(CONTROL))
    event, control = F.col(EVENT_US), F.col(CONTROL)
    now_us = control[Control.NOW]
    metrics: list[Column] = []
    unset_clock = (event >= 0) & (event < DAY_US)
    arrived, impossible = now_us, unset_clock
    if arrival is not None:
        marked = marked.withColumn(ARRIVAL_US, F.coalesce(F.unix_micros(F.col(quoted(arrival))), now_us))
        arrived = F.col(ARRIVAL_US)
        impossible = unset_clock & (arrived >= 365 * DAY_US)
        # An arrival from the future must not move the clock, and neither must the fallback to now: in a backlog it is
        # far ahead, and one value that cannot be parsed would make every other row late.
        has_clock = event.isNotNull() if spec.numeric_order else F.col(quoted(arrival)).isNotNull()
        marked = marked.withColumn(CLOCK_US, F.when(has_clock & (arrived <= now_us + DAY_US), arrived))
        metrics += [F.max(CLOCK_US).alias("clock_us"), F.min(CLOCK_US).alias("began_us")]
    # In the first micro-batch there is no reference: rows are measured from their own arrival.
    margin = event - F.coalesce(known(control[Control.REFERENCE]), arrived)
    plausible = event <= arrived + DAY_US
    sampled = (event >= control[Control.SAMPLE_FROM]) & plausible
    cell = cell_column(event, margin, plausible & ~impossible, sampled, spec.sources)
    marked = marked.withColumns({CELL: cell, HEARTBEAT_US: known(control[Control.HEARTBEAT])})
    if arrival is not None and not spec.numeric_order:
        counted = is_drawn(event) | (control[Control.SAMPLE_FROM] == NEVER_US)
        marked = marked.withColumn(LATENESS, lateness_column(event, arrived, counted & plausible & ~impossible))
        metrics.append(count_lateness(F.col(LATENESS)).alias("lateness"))
    if raises_watermark:
        came = arrived if arrival is None else F.col(CLOCK_US)
        marked = marked.withColumn(WATERMARK_TIME, _allowed_watermark(event, came, ~impossible, control))
    reason = late_reason(event, arrived, impossible, F.col(HEARTBEAT_US))
    if late is not None:
        marked = marked.withColumn(late, reason)
    if samples_rows(events.sparkSession):
        marked = marked.withColumn(PROBLEM_ROW, problem_row(events.columns, reason))
        metrics += sample_metrics()
    metrics += count_cells(F.col(CELL), spec.sources, events.sparkSession.version)
    if spec.sources:
        metrics += named_sources(spec.event_time, spec.sources)
    unused = [CONTROL, ARRIVAL_US]
    unused += [] if keep_heartbeat else [EVENT_US, HEARTBEAT_US]
    return marked.drop(*unused), metrics


def _column(field: StructField, event_time: str) -> Column:
    """The column of a field; Spark knows that of the event time by its metadata."""
    column = F.col(quoted(field.name))
    if field.name != event_time:
        return column
    return column.alias(field.name, metadata={**field.metadata, **WATERMARKED})


def _allowed_watermark(event: Column, arrived: Column, possible: Column, control: Column) -> Column:
    """How high a row may raise Spark's watermark; null for one from the future, or if no row may raise it.

    In the control row, times that are not known are so low that one must not calculate with them.
    """
    ceiling = known(control[Control.CEILING])
    newest = F.least(event, arrived)
    allowed = F.least(newest - control[Control.BEHIND], arrived - control[Control.WAIT], ceiling)
    trusted = ceiling.isNotNull() & possible & (event <= arrived + FUTURE_US)
    return F.when(trusted, F.timestamp_micros(allowed - BELOW_MS * MS_US))


def _observed(
    marked: DataFrame, spec: CompletenessSpec, row: Column, metrics: list[Column], keep_invalid: bool
) -> DataFrame:
    # Spark asks for the metrics of a plan that it has not run when the file sink already has the micro-batch. A
    # subquery without a value then fails the query, and again at each restart. F.first would look at every row.
    control = F.when(F.count(F.lit(1)) > 0, row).alias("control_us")
    observed = marked.observe(METRICS_PREFIX + spec.name, control, *metrics)
    if not keep_invalid:
        observed = observed.where(is_valid(F.col(CELL), spec.sources))
    return observed.drop(CLOCK_US, CELL, LATENESS, PROBLEM_ROW)
