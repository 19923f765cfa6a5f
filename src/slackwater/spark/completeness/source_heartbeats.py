"""``HEARTBEAT column``: heartbeats that the stream itself carries."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from slackwater.language import Measure
from slackwater.names import quoted
from slackwater.plan import Plan
from slackwater.spark.runtime.number_time import origin_of
from slackwater.units import MS_US

PUNCTUATION_PREFIX = "slackwater-punctuation:"


def with_punctuations(plan: Plan, events: DataFrame, name: str) -> DataFrame:
    """The events, the highest heartbeat among them reported with every micro-batch.

    A row whose heartbeat column is not null says that rows below it will come no more. If its windowing attribute is
    null it says nothing else: it is taken out here, and in no count.
    """
    assert plan.window.heartbeat is not None and plan.attribute is not None
    beat, attribute = quoted(plan.window.heartbeat), quoted(plan.attribute)
    observed = events.observe(PUNCTUATION_PREFIX + name, F.max(_us(plan, beat)).alias("heartbeat_us"))
    return observed.where(f"{attribute} IS NOT NULL OR {beat} IS NULL")


def _us(plan: Plan, beat: str) -> Column:
    if plan.measure is Measure.NUMBER:
        return (F.col(beat).cast("bigint") + F.lit(origin_of(plan))) * F.lit(MS_US)
    return F.unix_micros(F.col(beat))
