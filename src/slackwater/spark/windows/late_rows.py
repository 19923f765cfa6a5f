"""``LATE ROWS``: the rows that missed a window, with the windows and by how much, beside the results.

Results and late rows leave by one query, so that both are committed together: ``late`` tells them apart, and
``on_time`` and ``late_rows`` part them, in ``foreachBatch`` or once they are read back. The source is read twice a
micro-batch for it.
"""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from slackwater.errors import InvalidStream
from slackwater.language import Measure
from slackwater.names import quoted
from slackwater.plan import Kind, Path, Plan
from slackwater.spark.runtime.number_time import edge_sql
from slackwater.units import MS_US

_ROW = "late_row"
_MISSED = "missed"


def with_late_rows(
    plan: Plan, results: DataFrame, observed: DataFrame, columns: list[str], landmark: int | None
) -> DataFrame:
    """The results, and every row that came too late for a window.

    ``observed`` are the rows with their event time and the heartbeat that judges them, ``columns`` what they had when
    they came. WHERE has not seen them.
    """
    late = observed.where("__sw_event_us < __sw_heartbeat_us")
    late = late.withColumn(_MISSED, F.expr(_missed(plan, landmark)))
    if landmark is not None:
        late = late.where(f"__sw_event_us >= {landmark}")
    by, name = "(__sw_heartbeat_us - __sw_event_us)", "late_by_ms"
    if plan.measure is Measure.NUMBER:
        by, name = f"({by} DIV {MS_US})", "late_by"
    else:
        by = f"({by} / {MS_US}D)"
    told = late.where(f"size({_MISSED}) > 0").select(
        F.expr(f"{_MISSED}[0].window_start AS window_start"),
        F.expr(f"{_MISSED}[0].window_end AS window_end"),
        F.lit(True).alias("late"),
        F.expr(by).alias(name),
        F.col(_MISSED),
        F.struct(*(F.col(quoted(column)) for column in columns)).alias(_ROW),
    )
    edges = ["window_start", "window_end"]
    outputs = [column for column in results.columns if column not in edges]
    both = results.withColumn("late", F.lit(False)).unionByName(told, allowMissingColumns=True)
    return both.select(*edges, "late", *(F.col(quoted(column)) for column in outputs), name, _MISSED, _ROW)


def _missed(plan: Plan, landmark: int | None) -> str:
    """The windows of a row that had been emitted before it came, first to last, as an array."""
    window = plan.window
    if plan.path is Path.NATIVE:
        assert window.range is not None and window.slide is not None
        length, slide = round(window.range.amount * MS_US), round(window.slide.amount * MS_US)
        before = f"(__sw_event_us - {length})"
        least = f"({before} - pmod({before}, {slide}) + {slide} + {length})"
        most = f"least(__sw_event_us - pmod(__sw_event_us, {slide}) + {length}, __sw_heartbeat_us)"
        ends = f"IF({least} <= {most}, sequence({least}, {most}, {slide}L), array())"
        return f"transform({ends}, e -> {_window(plan, f'(e - {length})', 'e')})"
    if landmark is not None:
        end = "__sw_event_us"
        if window.slide is not None:
            slide = round(window.slide.amount * MS_US)
            end = f"({landmark} + ((__sw_event_us - {landmark}) DIV {slide} + 1) * {slide})"
        return f"array({_window(plan, f'{landmark}L', end)})"
    start = "CAST(NULL AS BIGINT)"  # the first of the last n tuples: nobody knows any more which it was
    if plan.kind is not Kind.TUPLES:
        assert window.range is not None
        start = f"(__sw_event_us - {round(window.range.amount * MS_US)})"
    return f"array({_window(plan, start, '__sw_event_us')})"


def _window(plan: Plan, start: str, end: str) -> str:
    return f"named_struct('window_start', {edge_sql(plan, start)}, 'window_end', {edge_sql(plan, end)})"


def on_time(published: DataFrame) -> DataFrame:
    """The results of a query with ``LATE ROWS`` or ``LATE PANES``, without what was late."""
    _check(published)
    kept = published.where("NOT late")
    return kept.drop("late", _MISSED, _ROW, "late_by_ms", "late_by") if _ROW in published.columns else kept


def late_rows(published: DataFrame) -> DataFrame:
    """What was late: rows as they came with the windows that they missed (``LATE ROWS``), or panes (``LATE PANES``)."""
    _check(published)
    late = published.where("late")
    if _ROW not in published.columns:
        return late
    by = next(column for column in ("late_by_ms", "late_by") if column in published.columns)
    return late.select(f"{_ROW}.*", by, _MISSED)


def _check(published: DataFrame) -> None:
    if "late" not in published.columns:
        raise InvalidStream("nothing-late", "there is no column 'late'", "write LATE ROWS or LATE PANES in the query")
