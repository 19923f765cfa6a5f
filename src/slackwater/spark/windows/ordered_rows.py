"""``ordered``: the rows of a stream in the order of their time, for code of the user's own."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import pandas as pd
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.streaming.state import GroupState, GroupStateTimeout
from pyspark.sql.types import StringType, StructField, StructType

from slackwater.control.choice import Method
from slackwater.control.disorder import DEFAULT_METHOD
from slackwater.errors import InvalidOption
from slackwater.promises import Completeness, Duration
from slackwater.spark.completeness.heartbeat_stream import under_heartbeat
from slackwater.spark.completeness.observation import observed_events
from slackwater.spark.completeness.promise import new_promise
from slackwater.spark.windows.sql import DEFAULT_SHARDS
from slackwater.spark.worker.columns import EVENT_US
from slackwater.spark.worker.delivery_step import deliver_shard
from slackwater.spark.worker.settle import settle_worker

_STATE = StructType([StructField("rows", StringType())])


def ordered(
    events: DataFrame,
    *,
    event_time: str,
    drop_ratio: str | float,
    arrival: str | None = None,
    source: str | list[str] | None = None,
    per: str | list[str] | None = None,
    shards: int = DEFAULT_SHARDS,
    name: str | None = None,
    method: str | Method = DEFAULT_METHOD,
    max_wait: Duration | None = None,
    min_wait: Duration | None = None,
    location: str | None = None,
) -> DataFrame:
    """The same rows, each micro-batch in the order of ``event_time`` and none before one that was delivered earlier.

    A row is held back until the heartbeat has passed it; ties keep the order of their arrival. Late rows are left out
    and counted. Without ``per`` the whole stream is one order, in one task; with ``per`` each of those keys has its
    own, spread over ``shards`` tasks. Rows wait in Spark's state store. The other options are those of
    ``with_drop_ratio``.
    """
    if shards < 1:
        raise InvalidOption("invalid-shards", f"shards={shards!r}", "give one shard or more")
    completeness = Completeness.of(drop_ratio, min_wait=min_wait, max_wait=max_wait)
    promise = new_promise(
        events,
        event_time,
        completeness,
        arrival=arrival,
        source=source,
        name=name,
        method=method,
        location=location,
    )
    spark = events.sparkSession
    keys = [per] if isinstance(per, str) else list(per or [])
    shard = F.pmod(F.xxhash64(*keys), F.lit(shards)) if keys else F.lit(0).cast("bigint")
    on_time = (
        observed_events(spark, events, promise, arrival)
        .where(f"{EVENT_US} >= coalesce(__sw_heartbeat_us, {EVENT_US})")
        .drop("__sw_heartbeat_us")
        .withColumn("__sw_shard", shard)
    )
    held = {"event_time": event_time, "per": ", ".join(keys) or "nothing", "shards": str(shards if keys else 1)}
    held["rows of"] = events.schema.simpleString()
    stream = under_heartbeat(spark, on_time, event_time, promise.mailbox, promise.name, held)
    columns = events.columns

    def deliver(_key: tuple[Any, ...], frames: Iterable[pd.DataFrame], state: GroupState) -> Iterator[pd.DataFrame]:
        settle_worker()
        return deliver_shard(columns, frames, state)

    grouped = stream.groupBy("__sw_shard")
    return grouped.applyInPandasWithState(deliver, events.schema, _STATE, "append", GroupStateTimeout.EventTimeTimeout)
