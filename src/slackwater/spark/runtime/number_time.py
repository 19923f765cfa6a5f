"""Event times for streams that are ordered by a number.

The number is taken as milliseconds after an origin, so that Spark's event-time operators work on order IDs. The origin
lies well above the epoch, because Spark treats every row below the epoch as late. It is a multiple of SLIDE, so that
windows start at multiples of SLIDE.
"""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as F

from slackwater.language import Measure
from slackwater.names import quoted
from slackwater.plan import Plan
from slackwater.units import MS_US

_ORIGIN = 100_000_000_000


def origin_of(plan: Plan) -> int:
    """The event time of the number 0, in milliseconds."""
    slide = plan.window.slide
    if slide is None or slide.measure is not Measure.NUMBER:
        return _ORIGIN
    return _ORIGIN // int(slide.amount) * int(slide.amount)


def number_time(plan: Plan) -> Column:
    """The numeric windowing attribute as an event time."""
    assert plan.attribute is not None
    return F.timestamp_millis(F.col(quoted(plan.attribute)).cast("bigint") + F.lit(origin_of(plan)))


def edge_sql(plan: Plan, event_us: str) -> str:
    """Spark SQL that turns an event time in microseconds into a timestamp, or back into the user's number."""
    if plan.measure is Measure.NUMBER:
        return f"({event_us} DIV {MS_US} - {origin_of(plan)})"
    return f"timestamp_micros({event_us})"
