"""Counts of what a micro-batch published: results, late panes, and the newest window."""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.streaming.listener import StreamingQueryProgress
from pyspark.sql.types import StructType, TimestampType

RESULTS_PREFIX = "slackwater-results:"
SLACK_PREFIX = "slackwater-slack:"


@dataclass(frozen=True, slots=True)
class Results:
    """What one micro-batch published; ``window_ms`` is the newest window, ``results`` None where nobody counts them."""

    results: int | None
    late_panes: int
    window_ms: tuple[float, float] | None


def observe_results(results: DataFrame, name: str, *, with_late_panes: bool = False) -> DataFrame:
    """The same results, counted with every micro-batch as the observed metrics ``slackwater-results:<name>``.

    The window comes from ``window_start`` and ``window_end``, or from Spark's own ``window``. It costs one more pass
    over the results, which are few.
    """
    start, end = _edges(results)
    # A late pane belongs to a window that closed before: it is not the newest one.
    late = F.col("late") if with_late_panes else F.lit(False)
    return results.observe(
        RESULTS_PREFIX + name,
        F.count(F.lit(1)).alias("results"),
        F.coalesce(F.sum(late.cast("bigint")), F.lit(0)).alias("late_panes"),
        F.max(F.when(~late, end)).alias("end_us"),
        F.max(F.when(~late, start)).alias("start_us"),
    )


def observe_packed(packed_rows: DataFrame, name: str) -> DataFrame:
    """Like ``observe_results`` for packed results, which carry their counts: costs nothing per result."""
    return packed_rows.observe(
        RESULTS_PREFIX + name,
        F.coalesce(F.sum("count"), F.lit(0)).alias("results"),
        (F.count(F.lit(1)) * 0).alias("late_panes"),
        F.max("end_us").alias("end_us"),
        F.max("start_us").alias("start_us"),
    )


def observe_slack(packed_rows: DataFrame, name: str) -> DataFrame:
    """Packed results without the counts of the slack buffer, which are observed as ``slackwater-slack:<name>``."""
    observed = packed_rows.observe(SLACK_PREFIX + name, F.sum("late").alias("late"), F.max("held").alias("held"))
    return observed.where("results IS NOT NULL")


def late_in_slack(progress: StreamingQueryProgress, name: str) -> int:
    """How many rows the slack buffer of a promise judged late."""
    observed = progress.observedMetrics.get(SLACK_PREFIX + name)
    return 0 if observed is None else observed.asDict()["late"] or 0


def results_of(progress: StreamingQueryProgress, name: str) -> Results:
    """What was published under a promise: as observed, else as the sink reports."""
    observed = progress.observedMetrics.get(RESULTS_PREFIX + name)
    if observed is None:
        rows = progress.sink.numOutputRows
        return Results(None if rows is None or rows < 0 else rows, 0, None)
    values = observed.asDict()
    start, end = values["start_us"], values["end_us"]
    window = None if start is None or end is None else (start / 1e3, end / 1e3)
    return Results(values["results"] or 0, values["late_panes"] or 0, window)


def _edges(results: DataFrame) -> tuple[Column, Column]:
    types = {field.name: field.dataType for field in results.schema.fields}
    if isinstance(types.get("window_start"), TimestampType) and isinstance(types.get("window_end"), TimestampType):
        return F.unix_micros("window_start"), F.unix_micros("window_end")
    window = types.get("window")
    if isinstance(window, StructType) and {"start", "end"} <= set(window.names):
        return F.unix_micros("window.start"), F.unix_micros("window.end")
    nothing = F.lit(None).cast("bigint")
    return nothing, nothing
