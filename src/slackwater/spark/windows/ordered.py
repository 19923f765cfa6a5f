"""The ordered path: the window operator in Spark's state, sharded by group.

Rows travel to their shard packed, and wait in Spark's state store, so a checkpoint contains them. The heartbeat travels
to every shard in the same way whenever it rises. A shard runs when the heartbeat rises or rows arrive for it.
"""

from __future__ import annotations

import datetime as dt
import itertools
from collections.abc import Iterable, Iterator
from functools import partial
from typing import Any
from zoneinfo import ZoneInfo

import pandas as pd
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.state import GroupState, GroupStateTimeout
from pyspark.sql.types import NumericType, StringType, StructField, StructType

from slackwater.errors import InvalidStream
from slackwater.kernel.windows import WindowSpec, panes_of, takes_panes
from slackwater.language import Measure
from slackwater.names import quoted
from slackwater.plan import Kind, Plan
from slackwater.plan.aggregates import column_of
from slackwater.spark.completeness.heartbeat_stream import with_heartbeat_rows
from slackwater.spark.completeness.tracker import CompletenessSpec
from slackwater.spark.runtime.number_time import edge_sql, origin_of
from slackwater.spark.runtime.results import observe_packed, observe_results, observe_slack
from slackwater.spark.runtime.sharding import shard_keys
from slackwater.spark.runtime.types import type_text
from slackwater.spark.runtime.views import sql_over
from slackwater.spark.runtime.workers import require_slackwater_on_workers
from slackwater.spark.windows.checkpoint_guard import state_identity
from slackwater.spark.windows.group_key import GroupKey, group_key
from slackwater.spark.windows.plain_types import PlainTypes, plain_types
from slackwater.spark.worker.columns import EVENT_US, HEARTBEAT_US
from slackwater.spark.worker.packed_rows import PACKED_SCHEMA, RESULTS_SCHEMA, results_unpacker, rows_packer
from slackwater.spark.worker.settle import settle_worker
from slackwater.spark.worker.shard_step import ShardState, Slack, advance_shard
from slackwater.units import MS_US

_STATE = StructType([StructField(name, StringType()) for name in ShardState._fields])


def ordered_windows(
    spark: SparkSession, plan: Plan, observed: DataFrame, promise: CompletenessSpec, shards: int
) -> DataFrame:
    """The results of a plan on the ordered path. ``observed`` rows carry their event time and heartbeat."""
    assert plan.shape is not None
    types = _checked_types(plan, observed)
    group = group_key(plan, [type_text(kind) for kind in types.keys])
    window = _window_spec(spark, plan)
    packed = _packed(plan, rows_on_time(observed), group, window, shard_keys(shards if plan.sharded else 1), promise)
    slack = _slack(plan)
    results = _advanced(packed, window, len(_inputs(plan)), plan.measure is Measure.TIME, slack)
    if slack is not None:
        results = observe_slack(results, promise.name)
    if plan.shape.having is None:
        results = observe_packed(results, promise.name)
    lowered = _lowered(plan, _unpacked(results, window, group), group, types)
    # HAVING removes single results, and those must not be counted.
    return lowered if plan.shape.having is None else observe_results(lowered, promise.name)


def rows_on_time(observed: DataFrame) -> DataFrame:
    """The rows that are not late; before the first heartbeat no row is."""
    return observed.where(f"{EVENT_US} >= coalesce({HEARTBEAT_US}, {EVENT_US})").drop(HEARTBEAT_US)


def _packed(
    plan: Plan, on_time: DataFrame, group: GroupKey, window: WindowSpec, shards: list[int], promise: CompletenessSpec
) -> DataFrame:
    """The rows, packed by shard, and the heartbeat for every shard."""
    require_slackwater_on_workers(on_time.sparkSession)
    # The task that reads the rows reduces them to panes if the window takes panes, so little travels and waits.
    # A slack buffer needs the rows themselves.
    reduce = partial(panes_of, window) if takes_panes(window) and not plan.slack_by_row else None
    rows = _operator_rows(plan, on_time, group)
    packed = rows.mapInArrow(rows_packer(shards, window.grouped, reduce), PACKED_SCHEMA)
    identity = state_identity(plan) | {"shards": str(len(shards))}
    return with_heartbeat_rows(
        on_time.sparkSession, packed, "time", promise.mailbox, promise.name, identity, partial(_for_shards, shards)
    )


def _for_shards(shards: list[int], beats: DataFrame, heartbeat_us: Column) -> DataFrame:
    """The heartbeat in the schema of packed rows, once per shard: ``first`` is the heartbeat, ``rows`` is null."""
    shard = F.explode(F.array([F.lit(number) for number in shards]))
    return beats.select("time", shard.alias("shard"), heartbeat_us.alias("first"), "rows")


def _slack(plan: Plan) -> Slack | None:
    """SLACK in rows, where the operator judges row by row."""
    if not plan.slack_by_row:
        return None
    assert plan.window.slack is not None
    return Slack(int(plan.window.slack.amount), plan.window.arrival is not None)


def _advanced(packed: DataFrame, window: WindowSpec, columns: int, with_edges: bool, slack: Slack | None) -> DataFrame:
    """The packed results of every shard."""

    # The closure must not refer to the plan, which would be pickled with it.
    def advance(_key: tuple[Any, ...], frames: Iterable[pd.DataFrame], state: GroupState) -> Iterator[pd.DataFrame]:
        settle_worker()
        return advance_shard(window, columns, frames, state, with_edges=with_edges, slack=slack)

    by_shard = packed.drop("time").groupBy("shard")
    return by_shard.applyInPandasWithState(advance, RESULTS_SCHEMA, _STATE, "append", GroupStateTimeout.NoTimeout)


def _unpacked(results: DataFrame, window: WindowSpec, group: GroupKey) -> DataFrame:
    """The results as rows of ``start``, ``end``, ``key`` and ``value_0`` …

    Only a text key can be null; NOT NULL saves Spark the checks. A start that follows from the end is not unpacked.
    """
    key = "key bigint NOT NULL" if group.is_integer else "key string"
    values = [f"value_{i} double NOT NULL" for i in range(len(window.aggregates))]
    columns = ["end bigint NOT NULL", key, *values]
    if window.tuples or window.landmark is not None:
        schema = ", ".join(["start bigint NOT NULL", *columns])
        return results.mapInArrow(results_unpacker(group.is_integer), schema)
    unpacked = results.mapInArrow(results_unpacker(group.is_integer, starts=False), ", ".join(columns))
    return unpacked.selectExpr("*", f"end - {window.length}L AS start")


def _operator_rows(plan: Plan, on_time: DataFrame, group: GroupKey) -> DataFrame:
    """The rows as the operator takes them: the attribute, the group, the inputs of the aggregates."""
    shape = plan.shape
    assert shape is not None
    inputs = [f"{value} AS input_{i}" for i, value in enumerate(_inputs(plan))]
    if plan.slack_by_row and plan.window.arrival is not None:
        arrival = f"{quoted(shape.alias)}.{quoted(plan.window.arrival)}"
        inputs.append(f"CAST(unix_micros({arrival}) AS double) AS arrival")  # exact until the year 2255
    selected = ", ".join([f"{quoted(shape.alias)}.{EVENT_US} AS at", f"{group.encode} AS key", *inputs])
    return sql_over(on_time, lambda view: shape.selecting(selected, view))


def _inputs(plan: Plan) -> list[str]:
    """The distinct inputs of the aggregates."""
    return list(dict.fromkeys(v for a in plan.aggregates for _, v in a.operator if v is not None))


def _window_spec(spark: SparkSession, plan: Plan) -> WindowSpec:
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
    """The landmark as an event time in microseconds. A time without a zone is in the session's zone."""
    landmark = plan.window.landmark
    if landmark is None:
        return None
    if not isinstance(landmark, str):
        return (int(landmark) + origin_of(plan)) * MS_US
    at = dt.datetime.fromisoformat(landmark)
    if at.tzinfo is None:
        at = at.replace(tzinfo=ZoneInfo(spark.conf.get("spark.sql.session.timeZone") or "UTC"))
    return round((at - dt.datetime.fromtimestamp(0, dt.UTC)) / dt.timedelta(microseconds=1))


def _lowered(plan: Plan, results: DataFrame, group: GroupKey, types: PlainTypes) -> DataFrame:
    """The outputs of the query from the results of the operator, in the types of Spark's own aggregates."""
    shape = plan.shape
    assert shape is not None
    columns = [f"{edge_sql(plan, 'start')} AS window_start", f"{edge_sql(plan, 'end')} AS window_end"]
    number = itertools.count()
    for i, (aggregate, kind) in enumerate(zip(plan.aggregates, types.aggregates, strict=True)):
        values = [f"IF(isnan(value_{n}), NULL, value_{n})" for n in itertools.islice(number, len(aggregate.operator))]
        columns.append(f"CAST({aggregate.operator_lower.format(*values)} AS {type_text(kind)}) AS {column_of(i)}")
    columns += [f"{key} AS {name}" for key, name in zip(group.decode, shape.key_names, strict=True)]
    named = results.selectExpr(*columns)
    if shape.having is not None:
        named = named.where(shape.having)
    outputs = [f"{sql} AS {quoted(name)}" for name, sql in shape.outputs]
    return named.selectExpr("window_start", "window_end", *outputs)


def _checked_types(plan: Plan, rows: DataFrame) -> PlainTypes:
    """The types of keys and aggregates; refuses an aggregate that is not a number."""
    types = plain_types(plan, rows)
    for kind, aggregate in zip(types.aggregates, plan.aggregates, strict=True):
        if not isinstance(kind, NumericType):
            where = "SLACK in rows takes" if plan.slack_by_row else "windows without SLIDE take"
            remedy = "write SLACK as a time" if plan.slack_by_row else "add SLIDE"
            raise InvalidStream(
                "not-a-number",
                f"{aggregate.sql} is a {kind.simpleString()}, and {where} numbers",
                f"{remedy}, or turn it into a number",
            )
    return types
