"""The ordered path: the window operator under Spark's state, one shard a task, under the heartbeat.

Rows travel to their shard in parcels, and wait in Spark's state store as they came, so a checkpoint holds them. So does
the heartbeat, each time it rises: a shard is asked when it rises, and when rows come for it.
"""

from __future__ import annotations

import datetime as dt
import itertools
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any
from zoneinfo import ZoneInfo

import pandas as pd
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.state import GroupState, GroupStateTimeout
from pyspark.sql.types import (
    NumericType,
    StringType,
    StructField,
    StructType,
)

from slackwater.errors import InvalidStream
from slackwater.kernel.windows import WindowSpec, panes_of, takes_panes
from slackwater.language import Measure
from slackwater.names import quoted
from slackwater.plan import Kind, Plan
from slackwater.plan.aggregates import column_of
from slackwater.spark.completeness.heartbeat_stream import with_heartbeat_rows
from slackwater.spark.completeness.tracker import CompletenessSpec
from slackwater.spark.runtime.json_key import as_json, from_json
from slackwater.spark.runtime.number_time import edge_sql, origin_of
from slackwater.spark.runtime.results import observe_packed, observe_results
from slackwater.spark.runtime.sharding import shard_keys
from slackwater.spark.runtime.types import type_text
from slackwater.spark.windows.checkpoint_guard import state_identity
from slackwater.spark.windows.plain_types import plain_types
from slackwater.spark.worker.packed_rows import PACKED_SCHEMA, RESULTS_SCHEMA, results_unpacker, rows_packer
from slackwater.spark.worker.settle import settle_worker
from slackwater.spark.worker.shard_step import ShardState, advance_shard
from slackwater.units import MS_US

_NO_NUMBER = "(-9223372036854775807L - 1L)"  # a null among whole numbers
_VIEWS = itertools.count()
_STATE = StructType([StructField(name, StringType()) for name in ShardState._fields])


def ordered_windows(
    spark: SparkSession, plan: Plan, observed: DataFrame, promise: CompletenessSpec, shards: int
) -> DataFrame:
    """The results of a plan on the ordered path, from rows that carry their event time and their heartbeat."""
    shape = plan.shape
    assert shape is not None
    on_time = observed.where("__sw_event_us >= coalesce(__sw_heartbeat_us, __sw_event_us)")
    keys, types = _types(spark, plan, observed)
    group = group_key(plan, keys)
    rows, inputs = _rows(spark, plan, on_time.drop("__sw_heartbeat_us"), group)
    window = _spec(spark, plan)
    # Where panes will do, the task that read the rows makes them: next to nothing travels, and waits.
    reduce = partial(panes_of, window) if takes_panes(window) else None
    numbers = shard_keys(shards if plan.sharded else 1)
    pack = rows_packer(numbers, window.grouped, reduce)
    packed_rows = rows.select("at", "key", *inputs).mapInArrow(pack, PACKED_SCHEMA)
    held = state_identity(plan) | {"shards": str(len(numbers))}
    told = partial(_to_every_shard, numbers)
    stream = with_heartbeat_rows(spark, packed_rows, "time", promise.mailbox, promise.name, held, told)

    columns, with_edges = len(inputs), plan.measure is Measure.TIME  # the plan itself would travel with the function

    def advance(_key: tuple[Any, ...], frames: Iterable[pd.DataFrame], state: GroupState) -> Iterator[pd.DataFrame]:
        settle_worker()
        return advance_shard(window, columns, frames, state, with_edges=with_edges)

    packed_rows = (
        stream.drop("time")
        .groupBy("shard")
        .applyInPandasWithState(advance, RESULTS_SCHEMA, _STATE, "append", GroupStateTimeout.NoTimeout)
    )
    if shape.having is None:
        packed_rows = observe_packed(packed_rows, promise.name)
    # Nothing is null but a text for a key, and Spark need not look for it; a start that is known does not travel.
    values = [f"value_{i} double NOT NULL" for i in range(len(window.aggregates))]
    known = not window.tuples and window.landmark is None
    opening = ["end bigint NOT NULL", "key bigint NOT NULL" if group.whole else "key string", *values]
    if known:
        opened = packed_rows.mapInArrow(results_unpacker(group.whole, starts=False), ", ".join(opening))
        opened = opened.selectExpr("*", f"end - {window.length}L AS start")
    else:
        opened = packed_rows.mapInArrow(results_unpacker(group.whole), ", ".join(["start bigint NOT NULL", *opening]))
    results = _lowered(plan, opened, group, types)
    # HAVING judges results one by one, and what it leaves out is not published
    return results if shape.having is None else observe_results(results, promise.name)


def _to_every_shard(numbers: list[int], beats: DataFrame, heartbeat_us: Column) -> DataFrame:
    """The heartbeat as parcels are: no rows, and none to come that is below it."""
    shard = F.explode(F.array([F.lit(number) for number in numbers]))
    return beats.select("time", shard.alias("shard"), heartbeat_us.alias("first"), "rows")


@dataclass(frozen=True, slots=True)
class GroupKey:
    """How the group of a row travels to the operator and back: as one number or one text."""

    into: str
    out: tuple[str, ...]
    whole: bool = False


def group_key(plan: Plan, kinds: list[str]) -> GroupKey:
    """A whole number or a text travels as itself, which costs next to nothing a row; everything else as JSON."""
    shape = plan.shape
    assert shape is not None
    if not kinds:
        return GroupKey("0L", (), whole=True)
    if len(kinds) == 1 and kinds[0] == "string":
        return GroupKey(f"({shape.keys[0]})", ("key",))
    if len(kinds) == 1 and kinds[0] in ("bigint", "int", "smallint", "tinyint"):
        return GroupKey(
            f"COALESCE(CAST({shape.keys[0]} AS BIGINT), {_NO_NUMBER})",
            (f"CAST(NULLIF(key, {_NO_NUMBER}) AS {kinds[0]})",),
            whole=True,
        )
    keys = ", ".join(f"{key} AS {name}" for key, name in zip(shape.keys, shape.key_names, strict=True))
    schema = ", ".join(f"{name} {kind}" for name, kind in zip(shape.key_names, kinds, strict=True))
    parsed = from_json("key", schema)
    return GroupKey(as_json(f"struct({keys})"), tuple(f"{parsed}.{name}" for name in shape.key_names))


def _rows(spark: SparkSession, plan: Plan, on_time: DataFrame, group: GroupKey) -> tuple[DataFrame, list[str]]:
    """The rows as the operator takes them: the attribute, the group, the aggregates' inputs."""
    shape = plan.shape
    assert shape is not None
    view = f"slackwater_ordered_{next(_VIEWS)}"
    on_time.createOrReplaceTempView(view)
    values = _inputs(plan)
    inputs = [f"input_{i}" for i in range(len(values))]
    named = [f"{value} AS {name}" for value, name in zip(values, inputs, strict=True)]
    selected = ", ".join([f"{quoted(shape.alias)}.__sw_event_us AS at", f"{group.into} AS key", *named])
    return spark.sql(shape.selecting(selected, view)), inputs


def _inputs(plan: Plan) -> list[str]:
    """What the aggregates take of a row, each once."""
    return list(dict.fromkeys(v for a in plan.aggregates for _, v in a.operator if v is not None))


def _spec(spark: SparkSession, plan: Plan) -> WindowSpec:
    window = plan.window
    inputs = _inputs(plan)
    aggregates = tuple(
        (name, -1 if value is None else inputs.index(value)) for a in plan.aggregates for name, value in a.operator
    )
    tuples = plan.kind is Kind.TUPLES
    scale = 1 if tuples else MS_US
    slide = None if window.slide is None else round(window.slide.amount * scale)
    length = 0 if window.range is None else round(window.range.amount * scale)
    return WindowSpec(length, slide, tuples, bool(window.per), aggregates, landmark_us(spark, plan))


def landmark_us(spark: SparkSession, plan: Plan) -> int | None:
    """Where a landmark window begins, on the event time; a time without a zone is in the session's."""
    landmark = plan.window.landmark
    if landmark is None:
        return None
    if not isinstance(landmark, str):
        return (int(landmark) + origin_of(plan)) * MS_US
    at = dt.datetime.fromisoformat(landmark)
    if at.tzinfo is None:
        at = at.replace(tzinfo=ZoneInfo(spark.conf.get("spark.sql.session.timeZone") or "UTC"))
    return round((at - dt.datetime.fromtimestamp(0, dt.UTC)) / dt.timedelta(microseconds=1))


def _lowered(plan: Plan, results: DataFrame, group: GroupKey, kinds: list[str]) -> DataFrame:
    """Results with the types that Spark's own aggregates have, and the query's outputs."""
    shape = plan.shape
    assert shape is not None
    columns = [f"{edge_sql(plan, 'start')} AS window_start", f"{edge_sql(plan, 'end')} AS window_end"]
    column = itertools.count()
    for i, (aggregate, kind) in enumerate(zip(plan.aggregates, kinds, strict=True)):
        values = [f"IF(isnan(value_{n}), NULL, value_{n})" for n in itertools.islice(column, len(aggregate.operator))]
        columns.append(f"CAST({aggregate.operator_lower.format(*values)} AS {kind}) AS {column_of(i)}")
    columns += [f"{out} AS {name}" for out, name in zip(group.out, shape.key_names, strict=True)]
    named = results.selectExpr(*columns)
    if shape.having is not None:
        named = named.where(shape.having)
    outputs = [f"{sql} AS {quoted(name)}" for name, sql in shape.outputs]
    return named.selectExpr("window_start", "window_end", *outputs)


def _types(spark: SparkSession, plan: Plan, rows: DataFrame) -> tuple[list[str], list[str]]:
    """The types that Spark would give keys and aggregates; refuses what is no number."""
    keys, kinds = plain_types(spark, plan, rows)
    for kind, aggregate in zip(kinds, plan.aggregates, strict=True):
        if not isinstance(kind, NumericType):
            raise InvalidStream(
                "not-a-number",
                f"{aggregate.sql} is a {kind.simpleString()}, and windows without SLIDE take numbers",
                "add SLIDE, or turn it into a number",
            )
    return [type_text(key) for key in keys], [type_text(kind) for kind in kinds]
