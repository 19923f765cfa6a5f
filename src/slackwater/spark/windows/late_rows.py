"""``LATE ROWS``: rows that missed a window, with the windows and their lateness, beside the results.

One query writes results and late rows, so that both are committed together. The column ``late`` tells them apart;
``on_time`` and ``late_rows`` separate them, in ``foreachBatch`` or in a table that is read back. The cost is a second
read of the source in every micro-batch.
"""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from slackwater.errors import InvalidStream
from slackwater.language import Measure
from slackwater.names import quoted
from slackwater.plan import Kind, Path, Plan
from slackwater.spark.runtime.number_time import edge_sql
from slackwater.spark.windows.segments import Sliding
from slackwater.spark.worker.columns import EVENT_US, HEARTBEAT_US
from slackwater.units import MS_US

_ROW = "late_row"
_MISSED = "missed"
_LATE_BY_MS = "late_by_ms"  # for times
_LATE_BY = "late_by"  # for numbers


def with_late_rows(
    plan: Plan, results: DataFrame, observed: DataFrame, columns: list[str], landmark: int | None
) -> DataFrame:
    """The results, and every row that was late for at least one window.

    :param observed: the rows with their event time and heartbeat; WHERE has not been applied to them.
    :param columns: the columns of the source.
    :param landmark: the start of a landmark window, in microseconds.
    """
    late = observed.where(f"{EVENT_US} < {HEARTBEAT_US}")
    late = late.withColumn(_MISSED, F.expr(_missed_windows(plan, landmark)))
    if landmark is not None:
        late = late.where(f"{EVENT_US} >= {landmark}")
    late_by, late_by_name = f"(({HEARTBEAT_US} - {EVENT_US}) / {MS_US}D)", _LATE_BY_MS
    if plan.measure is Measure.NUMBER:
        late_by, late_by_name = f"(({HEARTBEAT_US} - {EVENT_US}) DIV {MS_US})", _LATE_BY
    rows = late.where(f"size({_MISSED}) > 0").select(
        F.expr(f"{_MISSED}[0].window_start AS window_start"),
        F.expr(f"{_MISSED}[0].window_end AS window_end"),
        F.lit(True).alias("late"),
        F.expr(late_by).alias(late_by_name),
        F.col(_MISSED),
        F.struct(*(F.col(quoted(column)) for column in columns)).alias(_ROW),
    )
    edges = ["window_start", "window_end"]
    outputs = [column for column in results.columns if column not in edges]
    both = results.withColumn("late", F.lit(False)).unionByName(rows, allowMissingColumns=True)
    return both.select(*edges, "late", *(F.col(quoted(column)) for column in outputs), late_by_name, _MISSED, _ROW)


def _missed_windows(plan: Plan, landmark: int | None) -> str:
    """Spark SQL: the windows of a row that were emitted before it arrived, first to last, as an array."""
    window = plan.window
    if plan.path is Path.NATIVE:
        sliding = Sliding.of(plan)
        length, slide = sliding.length, sliding.slide
        before = f"({EVENT_US} - {length})"
        first = f"({before} - pmod({before}, {slide}) + {slide} + {length})"
        last = f"least({EVENT_US} - pmod({EVENT_US}, {slide}) + {length}, {HEARTBEAT_US})"
        ends = f"IF({first} <= {last}, sequence({first}, {last}, {slide}L), array())"
        return f"transform({ends}, e -> {_window_struct(plan, f'(e - {length})', 'e')})"
    if landmark is not None:
        end = EVENT_US
        if window.slide is not None:
            slide = round(window.slide.amount * MS_US)
            end = f"({landmark} + (({EVENT_US} - {landmark}) DIV {slide} + 1) * {slide})"
        return f"array({_window_struct(plan, f'{landmark}L', end)})"
    start = "CAST(NULL AS BIGINT)"  # the first of the last n tuples is no longer known
    if plan.kind is not Kind.TUPLES:
        assert window.range is not None
        start = f"({EVENT_US} - {round(window.range.amount * MS_US)})"
    return f"array({_window_struct(plan, start, EVENT_US)})"


def _window_struct(plan: Plan, start: str, end: str) -> str:
    return f"named_struct('window_start', {edge_sql(plan, start)}, 'window_end', {edge_sql(plan, end)})"


def on_time(published: DataFrame) -> DataFrame:
    """The on-time results of a query with ``LATE ROWS`` or ``LATE PANES``."""
    _check(published)
    results = published.where("NOT late")
    return results.drop("late", _MISSED, _ROW, _LATE_BY_MS, _LATE_BY) if _ROW in published.columns else results


def late_rows(published: DataFrame) -> DataFrame:
    """What was late: for ``LATE ROWS`` the rows and the windows that they missed, for ``LATE PANES`` the late panes."""
    _check(published)
    late = published.where("late")
    if _ROW not in published.columns:
        return late
    late_by = next(column for column in (_LATE_BY_MS, _LATE_BY) if column in published.columns)
    return late.select(f"{_ROW}.*", late_by, _MISSED)


def _check(published: DataFrame) -> None:
    if "late" not in published.columns:
        raise InvalidStream("nothing-late", "there is no column 'late'", "write LATE ROWS or LATE PANES in the query")
