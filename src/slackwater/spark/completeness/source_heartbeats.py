"""``HEARTBEAT column``: heartbeats that the stream itself carries."""

from __future__ import annotations

import math
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from slackwater.language import Measure
from slackwater.names import quoted
from slackwater.plan import Plan
from slackwater.spark.completeness.histogram import source_number
from slackwater.spark.runtime.number_time import origin_of
from slackwater.units import MS_US

SOURCE_HEARTBEAT_PREFIX = "slackwater-source-heartbeat:"
_BETWEEN = ":"
_MOST_KEPT = 10_000
"""Different heartbeats per micro-batch. Beyond that rare ones are left out, which can only lower the heartbeat."""


def with_source_heartbeats(plan: Plan, events: DataFrame, name: str) -> DataFrame:
    """The events; the highest heartbeat they carry is observed in every micro-batch, for each source if there are any.

    A row with a value in its heartbeat column asserts that no rows below that value will follow (from its source). If
    the row has no windowing attribute it carries nothing else: it is removed here and not counted.
    """
    assert plan.window.heartbeat is not None and plan.attribute is not None
    heartbeat, attribute = quoted(plan.window.heartbeat), quoted(plan.attribute)
    carried_us, sources = _heartbeat_us(plan, heartbeat), list(plan.window.sources)
    if sources:
        of_source = F.concat_ws(_BETWEEN, source_number(sources).cast("string"), carried_us.cast("string"))
        item = F.when(carried_us.isNotNull(), of_source)
        highest = F.call_function("approx_top_k", item, F.lit(_MOST_KEPT), F.lit(_MOST_KEPT)).alias("by_source")
    else:
        highest = F.max(carried_us).alias("heartbeat_us")
    observed = events.observe(SOURCE_HEARTBEAT_PREFIX + name, highest)
    return observed.where(f"{attribute} IS NOT NULL OR {heartbeat} IS NULL")


def carried_heartbeats(metrics: dict[str, Any] | None) -> dict[int | None, float]:
    """The highest heartbeat in milliseconds that the rows of a micro-batch carried, by source; by None without sources.

    >>> carried = [("7:9000", 1), ("7:2000", 3), ("8:4000", 1), (None, 5)]
    >>> carried_heartbeats({"by_source": carried})
    {7: 9.0, 8: 4.0}
    >>> carried_heartbeats({"by_source": [{"item": "7:9000", "count": 1}]})
    {7: 9.0}
    >>> carried_heartbeats({"heartbeat_us": 9000})
    {None: 9.0}
    """
    if metrics is None:
        return {}
    if "heartbeat_us" in metrics:
        return {} if metrics["heartbeat_us"] is None else {None: metrics["heartbeat_us"] / 1000.0}
    highest: dict[int | None, float] = {}
    for counted in metrics["by_source"] or []:
        # In Spark Connect a nested row is a dict.
        item, _ = counted.values() if isinstance(counted, dict) else counted
        if item is not None:
            source, _, us = item.partition(_BETWEEN)
            highest[int(source)] = max(highest.get(int(source), -math.inf), int(us) / 1000.0)
    return highest


def _heartbeat_us(plan: Plan, heartbeat: str) -> Column:
    if plan.measure is Measure.NUMBER:
        return (F.col(heartbeat).cast("bigint") + F.lit(origin_of(plan))) * F.lit(MS_US)
    return F.unix_micros(F.col(heartbeat))
