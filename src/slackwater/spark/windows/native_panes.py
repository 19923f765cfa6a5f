"""The native path: Spark aggregates by window id. Overlapping windows share panes, and late panes are kept.

Event times, in microseconds, where h is the heartbeat that judges a row:

* Spark's watermark is h − 1 ms, and Spark emits a group whose event time is at or below the watermark. A window [s, e)
  is complete when h ≥ e, so its event time is e − 1 ms. The same holds for a pane.
* A row whose pane was already emitted (its end ≤ h) is *lifted*: its event time becomes h. That is above the watermark,
  so Spark keeps the row and emits it as soon as the heartbeat rises. The true pane is in the group key. Windows that
  are still open take the lifted pane like any other. Windows that were emitted (e ≤ h) are *missed*: the pane is
  published for them as a late pane, or left out.

All aggregations emit in the same micro-batch, so panes add no wait.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import DataType, DoubleType

from slackwater.language import Late
from slackwater.names import quoted
from slackwater.plan import Plan, Shape
from slackwater.plan.aggregates import Part, column_of
from slackwater.spark.completeness.heartbeat_stream import WATERMARKED, under_heartbeat
from slackwater.spark.completeness.tracker import CompletenessSpec
from slackwater.spark.runtime.number_time import edge_sql
from slackwater.spark.runtime.types import type_text
from slackwater.spark.runtime.views import sql_over
from slackwater.spark.windows.checkpoint_guard import state_identity
from slackwater.spark.windows.plain_types import plain_types
from slackwater.spark.windows.reconcile import merged_part, parts_metadata
from slackwater.spark.windows.segments import Sliding, segments_of
from slackwater.spark.windows.watermarked import with_event_time
from slackwater.spark.worker.columns import CLOSE, EVENT_US, HEARTBEAT_US, PANE_END
from slackwater.units import MS_US


def native_windows(spark: SparkSession, plan: Plan, observed: DataFrame, spec: CompletenessSpec) -> DataFrame:
    """The results of a plan on the native path. ``observed`` rows carry their event time and heartbeat."""
    sliding = Sliding.of(plan)
    rows = _with_pane_end(observed, sliding) if plan.in_panes else _copied_to_windows(plan, observed, sliding)
    if not plan.in_panes or (sliding.length == sliding.pane and plan.late is not Late.PANES):
        rows = rows.where(f"{CLOSE} <= {PANE_END} - {MS_US}")  # leave out rows of missed windows
    timed = rows.withColumn(CLOSE, F.timestamp_micros(CLOSE)).drop(EVENT_US, HEARTBEAT_US)
    stream = under_heartbeat(spark, timed, CLOSE, spec.mailbox, spec.name, state_identity(plan))
    if not plan.in_panes:
        return _selected(plan, _aggregated_at_once(plan, stream), sliding)
    types = plain_types(plan, stream).aggregates
    windows = _combined(plan, _aggregated_to_parts(plan, stream, types), sliding)
    return _lowered(plan, windows, sliding, types)


def _with_pane_end(rows: DataFrame, sliding: Sliding) -> DataFrame:
    event = F.col(EVENT_US)
    with_end = rows.withColumn(PANE_END, event - F.pmod(event, F.lit(sliding.pane)) + sliding.pane)
    return with_end.withColumn(CLOSE, _close())


def _copied_to_windows(plan: Plan, rows: DataFrame, sliding: Sliding) -> DataFrame:
    """A copy of each row for each of its windows, for aggregates that cannot be merged."""
    length, slide = sliding.length, sliding.slide
    before = f"({EVENT_US} - {length})"
    first_start = f"({before} - pmod({before}, {slide}) + {slide})"
    last_start = f"({EVENT_US} - pmod({EVENT_US}, {slide}))"
    ends = f"sequence({first_start} + {length}, {last_start} + {length}, {slide}L)"
    return rows.withColumn(PANE_END, F.expr(f"explode({ends})")).withColumns(
        {
            CLOSE: _close(),
            "window_start": F.expr(edge_sql(plan, f"({PANE_END} - {length})")),
            "window_end": F.expr(edge_sql(plan, PANE_END)),
        }
    )


def _close() -> Column:
    """The event time of a row's pane or window. A null heartbeat, before the first one, lifts nothing."""
    end, heartbeat = F.col(PANE_END), F.col(HEARTBEAT_US)
    return F.when(end <= heartbeat, heartbeat).otherwise(end - MS_US)


def _aggregated_at_once(plan: Plan, stream: DataFrame) -> DataFrame:
    """One aggregation by window, to the outputs of the query."""
    shape = _shape(plan)
    values = [f"{sql} AS output_{i}" for i, (_, sql) in enumerate(shape.plain_outputs)]
    values += [f"{shape.plain_having} AS having"] if shape.plain_having else []
    return _first_aggregation(shape, stream, values, by=["window_start", "window_end"])


def _aggregated_to_parts(plan: Plan, stream: DataFrame, types: list[DataType]) -> DataFrame:
    """The first aggregation by pane, to the parts of the aggregates, whose types are ``types``."""
    typed = zip(plan.aggregates, types, strict=True)
    values = [f"{_lift(part, kind)} AS {part.name}" for a, kind in typed for part in a.parts]
    return _first_aggregation(_shape(plan), stream, values, by=[])


def _first_aggregation(shape: Shape, stream: DataFrame, values: list[str], by: list[str]) -> DataFrame:
    """Aggregate in the query's own words: Spark resolves joins, WHERE and keys."""
    close, end = f"{quoted(shape.alias)}.{CLOSE}", f"{quoted(shape.alias)}.{PANE_END}"
    keys = [f"{key} AS {name}" for key, name in zip(shape.keys, shape.key_names, strict=True)]
    selected = ", ".join([f"{close} AS close", f"{end} AS end", *keys, *values])
    groups = ", ".join([close, end, *(f"{quoted(shape.alias)}.{column}" for column in by), *shape.keys])
    return sql_over(stream, lambda view: f"{shape.selecting(selected, view)} GROUP BY {groups}")


def _lift(part: Part, kind: DataType) -> str:
    return part.lift if part.exact_lift is None or isinstance(kind, DoubleType) else part.exact_lift


def _combined(plan: Plan, panes: DataFrame, sliding: Sliding) -> DataFrame:
    """Panes combined to windows, through segments where windows overlap many times."""
    if sliding.length == sliding.pane:
        return panes
    if not plan.windows_per_segment:
        return _in_windows(plan, panes, sliding, sliding.first_end, sliding.last_end)
    return _in_windows(plan, _in_segments(plan, panes, sliding), sliding, "first_end", "last_end")


def _in_segments(plan: Plan, panes: DataFrame, sliding: Sliding) -> DataFrame:
    """An aggregation between panes and windows: each pane goes into its segments."""
    keys, parts = list(_shape(plan).key_names), _parts(plan)
    segments = segments_of(panes, sliding, plan.windows_per_segment, keys, [part.name for part in parts])
    if plan.late is not Late.PANES:
        segments = segments.where("first_end > close_us")
    return _aggregated(segments, ["first_end", "last_end", *keys], parts)


def _in_windows(plan: Plan, pieces: DataFrame, sliding: Sliding, first_end: str, last_end: str) -> DataFrame:
    """The last aggregation: each pane or segment goes into its windows."""
    keys, parts = list(_shape(plan).key_names), _parts(plan)
    copied = pieces.selectExpr(
        "unix_micros(close) AS lifted",
        f"explode(sequence({first_end}, {last_end}, {sliding.slide}L)) AS end",
        *keys,
        *(part.name for part in parts),
    )
    if plan.late is not Late.PANES:
        copied = copied.where("end > lifted")
    close = f"CASE WHEN end <= lifted THEN lifted ELSE end - {MS_US} END AS close_us"
    return _aggregated(copied.selectExpr(close, "*"), ["end", *keys], parts)


def _aggregated(pieces: DataFrame, keys: list[str], parts: list[Part]) -> DataFrame:
    """Combine parts by ``close_us`` and ``keys``; the event time of the result is ``close``."""
    close = F.timestamp_micros("close_us").alias("close", metadata=WATERMARKED)
    timed = pieces.select(close, *keys, *(part.name for part in parts))
    return timed.groupBy("close", *keys).agg(*(merged_part(timed, part.name, part.combine) for part in parts))


def _selected(plan: Plan, windows: DataFrame, sliding: Sliding) -> DataFrame:
    """The outputs of windows that were aggregated at once, filtered by HAVING."""
    shape = _shape(plan)
    edges = _edges(plan, sliding)
    if shape.plain_having is not None:
        windows = windows.where("having")
    outputs = [f"output_{i} AS {quoted(name)}" for i, (name, _) in enumerate(shape.plain_outputs)]
    return with_event_time(windows.selectExpr(*edges, *outputs))


def _lowered(plan: Plan, windows: DataFrame, sliding: Sliding, types: list[DataType]) -> DataFrame:
    """The outputs of windows that consist of parts, filtered by HAVING; with ``late`` and ``parts`` for LATE PANES."""
    shape = _shape(plan)
    answers = _answers(plan, windows, types)
    late = f"unix_micros(close) > end - {MS_US} AS late"
    named = windows.selectExpr("*", *_edges(plan, sliding), late, *answers)
    if shape.having is not None:
        named = named.where(shape.having)
    outputs = [f"{sql} AS {quoted(name)}" for name, sql in shape.outputs]
    if plan.late is not Late.PANES:
        return with_event_time(named).selectExpr("window_start", "window_end", *outputs)
    parts = [*shape.key_names, *(part.name for part in _parts(plan))]
    return named.select(
        "window_start",
        "window_end",
        "late",
        F.struct(*parts).alias("parts", metadata=parts_metadata(plan, answers)),
        *(F.expr(output) for output in outputs),
    )


def _edges(plan: Plan, sliding: Sliding) -> list[str]:
    start, end = edge_sql(plan, f"(end - {sliding.length})"), edge_sql(plan, "end")
    return [f"{start} AS window_start", f"{end} AS window_end"]


def _answers(plan: Plan, windows: DataFrame, types: list[DataType]) -> list[str]:
    """Each aggregate computed from its parts, cast to the type that Spark's own aggregate would have."""
    lowers = [aggregate.lower for aggregate in plan.aggregates]
    actual = [type_text(field.dataType) for field in windows.selectExpr(*lowers).schema.fields]
    wanted = [type_text(kind) for kind in types]
    cast = (
        lower if is_type == to_type else f"CAST({lower} AS {to_type})"
        for lower, is_type, to_type in zip(lowers, actual, wanted, strict=True)
    )
    return [f"{answer} AS {column_of(number)}" for number, answer in enumerate(cast)]


def _parts(plan: Plan) -> list[Part]:
    return [part for aggregate in plan.aggregates for part in aggregate.parts]


def _shape(plan: Plan) -> Shape:
    assert plan.shape is not None
    return plan.shape
