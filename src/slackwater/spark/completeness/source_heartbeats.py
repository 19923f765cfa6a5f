"""``HEARTBEAT column``: heartbeats that the stream itself carries."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from slackwater.language import Measure
from slackwater.names import quoted
from slackwater.plan import Plan
from slackwater.spark.runtime.number_time import origin_of
from slackwater.units import MS_US

SOURCE_HEARTBEAT_PREFIX = "slackwater-source-heartbeat:"


def with_source_heartbeats(plan: Plan, events: DataFrame, name: str) -> DataFrame:
    """The events; the highest heartbeat they carry is observed in every micro-batch.

    A row with a value in its heartbeat column asserts that no rows below that value will follow. If the row has no
    windowing attribute it carries nothing else: it is removed here and not counted.
    """
    assert plan.window.heartbeat is not None and plan.attribute is not None
    heartbeat, attribute = quoted(plan.window.heartbeat), quoted(plan.attribute)
    highest = F.max(_heartbeat_us(plan, heartbeat)).alias("heartbeat_us")
    observed = events.observe(SOURCE_HEARTBEAT_PREFIX + name, highest)
    return observed.where(f"{attribute} IS NOT NULL OR {heartbeat} IS NULL")


def _heartbeat_us(plan: Plan, heartbeat: str) -> Column:
    if plan.measure is Measure.NUMBER:
        return (F.col(heartbeat).cast("bigint") + F.lit(origin_of(plan))) * F.lit(MS_US)
    return F.unix_micros(F.col(heartbeat))
