"""Standing queries over a disordered stream: rows wait in their shard until the heartbeat is past them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from slackwater.control.choice import Method
from slackwater.names import quoted
from slackwater.spark.completeness.api import completeness_of
from slackwater.spark.completeness.heartbeat_stream import with_heartbeat_rows
from slackwater.spark.completeness.observation import observed_events
from slackwater.spark.completeness.open_windows import WindowGrid
from slackwater.spark.completeness.promise import new_promise
from slackwater.spark.completeness.tracker import CompletenessSpec
from slackwater.spark.runtime.sharding import shard_keys
from slackwater.spark.worker.columns import EVENT_US, HEARTBEAT_US
from slackwater.spark.worker.standing_step import BEAT_US

_TIME = "time"


@dataclass(frozen=True, slots=True)
class Disorder:
    """The completeness promise of a standing query; the options are those of ``with_drop_ratio``."""

    drop_ratio: str | float
    arrival: str | None = None
    source: str | list[str] | None = None
    method: str | Method | None = None

    def promise(self, values: DataFrame, event_time: str, name: str, location: str | None) -> CompletenessSpec:
        """Register the promise, beside the precision promise ``name``."""
        completeness = completeness_of(values, self.drop_ratio, min_wait=None, max_wait=None)
        return new_promise(
            values,
            event_time,
            completeness,
            arrival=self.arrival,
            source=self.source,
            name=f"{name}-dratio",
            method=self.method,
            location=location,
            grid=WindowGrid(0.0),  # rows wait in their shard for the heartbeat alone
        )

    def on_time(self, values: DataFrame, promise: CompletenessSpec) -> DataFrame:
        """The rows that are not late; all rows are counted."""
        observed = observed_events(values.sparkSession, values, promise, self.arrival)
        return observed.where(f"{EVENT_US} >= coalesce({HEARTBEAT_US}, {EVENT_US})").drop(HEARTBEAT_US, EVENT_US)


def with_beats(rows: DataFrame, event_time: Column, promise: CompletenessSpec, shards: int) -> DataFrame:
    """The rows for the shards, and every heartbeat for each of them, in the column ``BEAT_US``."""
    keys = shard_keys(shards)
    timed = rows.select(event_time.alias(_TIME), "shard", "stream", "at_us", "value")
    timed = timed.withColumn(BEAT_US, F.lit(None).cast("long"))
    beats = with_heartbeat_rows(
        rows.sparkSession,
        timed,
        _TIME,
        promise.mailbox,
        promise.name,
        {"shards": str(shards)},
        partial(_to_shards, keys),
    )
    return beats.drop(_TIME)


def _to_shards(keys: list[int], beats: DataFrame, heartbeat_us: Column) -> DataFrame:
    shard = F.explode(F.array(*(F.lit(key) for key in keys)))
    return beats.select(_TIME, shard.alias("shard"), "stream", "at_us", "value", heartbeat_us.alias(BEAT_US))


def time_column(event_time: str) -> Column:
    """The event time as a timestamp."""
    return F.col(quoted(event_time)).cast("timestamp")
