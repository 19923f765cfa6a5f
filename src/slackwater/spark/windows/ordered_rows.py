"""``ordered``: the rows of a stream in the order of their event time, for the user's own code."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import pandas as pd
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.streaming.state import GroupState, GroupStateTimeout
from pyspark.sql.types import StringType, StructField, StructType

from slackwater.control.choice import Method
from slackwater.errors import InvalidStream
from slackwater.names import quoted
from slackwater.promises import Duration
from slackwater.spark.completeness.api import completeness_of
from slackwater.spark.completeness.heartbeat_stream import under_heartbeat
from slackwater.spark.completeness.observation import observed_events
from slackwater.spark.completeness.promise import new_promise
from slackwater.spark.runtime.checks import find_column, find_columns, require_stream
from slackwater.spark.runtime.workers import require_slackwater_on_workers
from slackwater.spark.windows.options import QueryOptions
from slackwater.spark.windows.ordered import rows_on_time
from slackwater.spark.worker.columns import SHARD
from slackwater.spark.worker.delivery_step import DeliveryState, deliver_shard
from slackwater.spark.worker.settle import settle_worker

_STATE = StructType([StructField(name, StringType()) for name in DeliveryState._fields])


def ordered(
    events: DataFrame,
    *,
    event_time: str,
    drop_ratio: str | float,
    arrival: str | None = None,
    source: str | list[str] | None = None,
    per: str | list[str] | None = None,
    shards: int | None = None,
    name: str | None = None,
    method: str | Method | None = None,
    max_wait: Duration | None = None,
    min_wait: Duration | None = None,
    location: str | None = None,
) -> DataFrame:
    """The same rows in the order of ``event_time``: inside a micro-batch, and from one to the next.

    A row waits in Spark's state store until the heartbeat has passed it. Rows of the same time keep the order of their
    arrival. Late rows are left out and counted.

    :param per: one or more key columns; each key then has an order of its own. Without it the whole stream is one
        order, computed by one task.
    :param shards: the number of tasks that share the keys of ``per``. Default: ``spark.slackwater.shards``, else 16.

    The other options are those of ``with_drop_ratio``.
    """
    require_stream(events, "events")
    event_time = find_column(events, "event_time", event_time)
    arrival = None if arrival is None else find_column(events, "arrival", arrival)
    keys = find_columns(events, "per", per)
    _refuse_split_names(events)
    options = QueryOptions(name=name, method=method, shards=shards, location=location)
    if not keys:
        options.refuse_several_shards("without per=: the whole stream is one order")
    completeness = completeness_of(events, drop_ratio, min_wait=min_wait, max_wait=max_wait)
    spark = events.sparkSession
    require_slackwater_on_workers(spark)
    count = options.shards_or_default(spark) if keys else 1
    promise = new_promise(
        events,
        event_time,
        completeness,
        arrival=arrival,
        source=find_columns(events, "source", source),
        name=options.name,
        method=options.method,
        location=options.location,
    )
    shard = F.pmod(F.xxhash64(*(F.col(quoted(key)) for key in keys)), F.lit(count)) if keys else F.lit(0).cast("bigint")
    on_time = rows_on_time(observed_events(spark, events, promise, arrival)).withColumn(SHARD, shard)
    identity = {"event_time": event_time, "per": ", ".join(keys) or "nothing", "shards": str(count)}
    identity["rows of"] = events.schema.simpleString()
    stream = under_heartbeat(spark, on_time, event_time, promise.mailbox, promise.name, identity)
    return _delivered(stream, events.columns, events.schema)


def _refuse_split_names(events: DataFrame) -> None:
    """Refuse names that ``applyInPandasWithState`` of PySpark would take for fields of a struct, or for quoted."""
    for column in events.columns:
        if "." in column or "`" in column:
            problem = f"PySpark cannot pass the column {column!r} to Python: its name has a dot or a backquote"
            raise InvalidStream("unsupported-column", problem, "rename it before ordered()")


def _delivered(stream: DataFrame, columns: list[str], schema: StructType) -> DataFrame:
    """The rows that each shard delivers."""

    def deliver(_key: tuple[Any, ...], frames: Iterable[pd.DataFrame], state: GroupState) -> Iterator[pd.DataFrame]:
        settle_worker()
        return deliver_shard(columns, frames, state)

    by_shard = stream.groupBy(SHARD)
    return by_shard.applyInPandasWithState(deliver, schema, _STATE, "append", GroupStateTimeout.EventTimeTimeout)
