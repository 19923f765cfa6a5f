"""Numbers as event times: what orders a stream by a number instead of a time.

A number is so many milliseconds after an origin, so that Spark's whole event-time machinery works on order IDs. The
origin lies well above the epoch, below which Spark takes every row for late; and it is a multiple of SLIDE, so that
windows start at multiples of SLIDE in numbers too.
"""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as F

from slackwater.language import Measure
from slackwater.names import quoted
from slackwater.plan import Plan
from slackwater.units import MS_US

NUMBER_TIME = "__sw_number_time"
_ORIGIN = 100_000_000_000


def origin_of(plan: Plan) -> int:
    """The number's origin, in milliseconds."""
    slide = plan.window.slide
    if slide is None or slide.measure is not Measure.NUMBER:
        return _ORIGIN
    return _ORIGIN // int(slide.amount) * int(slide.amount)


def number_time(plan: Plan) -> Column:
    """The windowing attribute as an event time."""
    assert plan.attribute is not None
    return F.timestamp_millis(F.col(quoted(plan.attribute)).cast("bigint") + F.lit(origin_of(plan)))


def edge_sql(plan: Plan, event_us: str) -> str:
    """An event time in microseconds, as the user's own: a timestamp, or a number."""
    if plan.measure is Measure.NUMBER:
        return f"({event_us} DIV {MS_US} - {origin_of(plan)})"
    return f"timestamp_micros({event_us})"
