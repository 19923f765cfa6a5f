"""The native path: window ids, panes shared by overlapping windows, late panes; all in Catalyst.

Event times, in microseconds, with ``h`` the heartbeat that judges a row:

* Spark's watermark is h − 1 ms, and it emits a group whose event time is at or below the watermark. A window
  [s, e) is complete when h ≥ e, so its event time is e − 1 ms. A pane is treated alike.
* A row whose pane was already emitted (its end ≤ h) is lifted: its event time becomes h, which is above the watermark,
  so Spark keeps it and emits it as soon as the heartbeat rises; its true pane travels in the group key. Its
  windows that are still open take it like any other pane. Those that had been emitted (e ≤ h) are *missed*: the
  lifted pane is published for them as a late pane, or left out.

Both aggregations emit in the same micro-batch, so panes cost no further wait.
"""

from __future__ import annotations

import itertools
import math

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import DataType, DoubleType

from slackwater.language import Late
from slackwater.names import quoted
from slackwater.plan import Plan
from slackwater.plan.aggregates import Part, column_of
from slackwater.spark.completeness.heartbeat_stream import under_heartbeat
from slackwater.spark.completeness.tracker import CompletenessSpec
from slackwater.spark.runtime.number_time import edge_sql
from slackwater.spark.runtime.types import type_text
from slackwater.spark.windows.checkpoint_guard import state_identity
from slackwater.spark.windows.plain_types import plain_types
from slackwater.spark.windows.reconcile import merged_part, parts_metadata
from slackwater.spark.windows.segments import Sliding, segments_of
from slackwater.units import MS_US

_WATERMARKED = {"spark.watermarkDelayMs": 0}
_VIEWS = itertools.count()


def native_windows(spark: SparkSession, plan: Plan, observed: DataFrame, spec: CompletenessSpec) -> DataFrame:
    """The results of a plan on the native path, from rows that carry their event time and their heartbeat."""
    assert plan.shape is not None and plan.window.range is not None and plan.window.slide is not None
    # A time is in milliseconds, and so is a number, by its event time.
    length, slide = round(plan.window.range.amount * MS_US), round(plan.window.slide.amount * MS_US)
    pane = math.gcd(length, slide)
    shared, one_step = plan.in_panes, length == pane
    rows = _with_pane(observed, pane) if shared else _with_windows(plan, observed, length, slide)
    if not shared or (one_step and plan.late is not Late.PANES):
        rows = rows.where(f"__sw_close <= __sw_end - {MS_US}")  # a missed window gets nothing more
    times = rows.withColumn("__sw_close", F.timestamp_micros("__sw_close"))
    stream = under_heartbeat(
        spark,
        times.drop("__sw_event_us", "__sw_heartbeat_us"),
        "__sw_close",
        spec.mailbox,
        spec.name,
        state_identity(plan),
    )
    kinds = plain_types(spark, plan, stream)[1] if shared else []
    grouped = _grouped(spark, plan, stream, kinds)
    if shared and not one_step:
        sliding = Sliding(length, slide, pane)
        if plan.windows_per_segment:
            segments = _in_segments(plan, grouped, sliding)
            grouped = _in_windows(plan, segments, sliding, "first_end", "last_end")
        else:
            grouped = _in_windows(plan, grouped, sliding, sliding.first_end, sliding.last_end)
    return _lowered(plan, grouped, length, kinds)


def _with_pane(rows: DataFrame, pane: int) -> DataFrame:
    event, heartbeat = F.col("__sw_event_us"), F.col("__sw_heartbeat_us")
    end = event - F.pmod(event, F.lit(pane)) + pane
    with_end = rows.withColumn("__sw_end", end)
    return with_end.withColumn("__sw_close", _close(F.col("__sw_end"), heartbeat))


def _with_windows(plan: Plan, rows: DataFrame, length: int, slide: int) -> DataFrame:
    """The plain route: a copy of the row for each of its windows."""
    before = f"(__sw_event_us - {length})"
    least = f"({before} - pmod({before}, {slide}) + {slide})"
    most = f"(__sw_event_us - pmod(__sw_event_us, {slide}))"
    copied = rows.withColumn("__sw_end", F.expr(f"explode(sequence({least} + {length}, {most} + {length}, {slide}L))"))
    return copied.withColumns(
        {
            "__sw_close": _close(F.col("__sw_end"), F.col("__sw_heartbeat_us")),
            "window_start": F.expr(edge_sql(plan, f"(__sw_end - {length})")),
            "window_end": F.expr(edge_sql(plan, "__sw_end")),
        }
    )


def _close(end: Column, heartbeat: Column) -> Column:
    """The event time of a pane or window that ends at ``end``: before the first heartbeat nothing is lifted."""
    return F.when(end <= heartbeat, heartbeat).otherwise(end - MS_US)


def _grouped(spark: SparkSession, plan: Plan, stream: DataFrame, kinds: list[DataType]) -> DataFrame:
    """The first aggregation, in the query's own words: joins, WHERE and keys are Spark's business.

    In panes it makes parts of the aggregates, whose types are ``kinds``; else their answers at once.
    """
    shape = plan.shape
    assert shape is not None
    view = f"slackwater_{next(_VIEWS)}"
    stream.createOrReplaceTempView(view)
    own = quoted(shape.alias)
    keys = [f"{key} AS {name}" for key, name in zip(shape.keys, shape.key_names, strict=True)]
    if plan.in_panes:
        with_kinds = zip(plan.aggregates, kinds, strict=True)
        values = [f"{_lift(part, kind)} AS {part.name}" for a, kind in with_kinds for part in a.parts]
    else:
        values = [f"{sql} AS output_{i}" for i, (_, sql) in enumerate(shape.plain_outputs)]
        values += [f"{shape.plain_having} AS having"] if shape.plain_having else []
    selected = ", ".join([f"{own}.__sw_close AS close", f"{own}.__sw_end AS end", *keys, *values])
    edges = [] if plan.in_panes else [f"{own}.window_start", f"{own}.window_end"]
    groups = ", ".join([f"{own}.__sw_close", f"{own}.__sw_end", *edges, *shape.keys])
    return spark.sql(f"{shape.selecting(selected, view)} GROUP BY {groups}")


def _lift(part: Part, kind: DataType) -> str:
    return part.lift if part.exact_lift is None or isinstance(kind, DoubleType) else part.exact_lift


def _in_segments(plan: Plan, panes: DataFrame, sliding: Sliding) -> DataFrame:
    """An aggregation between panes and windows: each pane into its segments, parts combined."""
    keys, parts = _columns(plan)
    segments = segments_of(panes, sliding, plan.windows_per_segment, keys, [part.name for part in parts])
    if plan.late is not Late.PANES:
        segments = segments.where("first_end > close_us")
    return _aggregated(segments, ["first_end", "last_end", *keys], parts)


def _in_windows(plan: Plan, pieces: DataFrame, sliding: Sliding, first_end: str, last_end: str) -> DataFrame:
    """The last aggregation: each pane or segment into its windows, parts combined."""
    keys, parts = _columns(plan)
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


def _columns(plan: Plan) -> tuple[list[str], list[Part]]:
    keys = list(plan.shape.key_names) if plan.shape is not None else []
    return keys, [part for aggregate in plan.aggregates for part in aggregate.parts]


def _aggregated(pieces: DataFrame, keys: list[str], parts: list[Part]) -> DataFrame:
    """Parts combined by ``close_us`` and ``keys``; the event time of the result is ``close``."""
    close = F.timestamp_micros("close_us").alias("close", metadata=_WATERMARKED)
    timed = pieces.select(close, *keys, *(part.name for part in parts))
    return timed.groupBy("close", *keys).agg(*(merged_part(timed, part.name, part.combine) for part in parts))


def _lowered(plan: Plan, windows: DataFrame, length: int, kinds: list[DataType]) -> DataFrame:
    """The answer out of parts: window, late, outputs; HAVING."""
    shape = plan.shape
    assert shape is not None
    start, end = edge_sql(plan, f"(end - {length})"), edge_sql(plan, "end")
    answers = _answers(plan, windows, kinds) if plan.in_panes else []
    late = f"unix_micros(close) > end - {MS_US} AS late"
    named = windows.selectExpr("*", f"{start} AS window_start", f"{end} AS window_end", late, *answers)
    if plan.in_panes:
        if shape.having is not None:
            named = named.where(shape.having)
        outputs = [f"{sql} AS {quoted(name)}" for name, sql in shape.outputs]
    else:
        if shape.plain_having is not None:
            named = named.where("having")
        outputs = [f"output_{i} AS {quoted(name)}" for i, (name, _) in enumerate(shape.plain_outputs)]
    if plan.late is not Late.PANES:
        return named.selectExpr("window_start", "window_end", *outputs)
    parts = [*shape.key_names, *(part.name for aggregate in plan.aggregates for part in aggregate.parts)]
    return named.select(
        "window_start",
        "window_end",
        "late",
        F.struct(*parts).alias("parts", metadata=parts_metadata(plan, answers)),
        *(F.expr(output) for output in outputs),
    )


def _answers(plan: Plan, windows: DataFrame, kinds: list[DataType]) -> list[str]:
    """Each aggregate out of its parts, in a column of its own, of the type that plain Spark would give it."""
    lowers = [aggregate.lower for aggregate in plan.aggregates]
    own = [type_text(field.dataType) for field in windows.selectExpr(*lowers).schema.fields]
    plain = [type_text(kind) for kind in kinds]
    cast = (
        lower if mine == meant else f"CAST({lower} AS {meant})"
        for lower, mine, meant in zip(lowers, own, plain, strict=True)
    )
    return [f"{answer} AS {column_of(number)}" for number, answer in enumerate(cast)]
