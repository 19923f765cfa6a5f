"""What a window is, by what it says: its kind, its panes, its promise."""

from __future__ import annotations

import math

from slackwater.language import Extent, Measure, Window
from slackwater.plan.plan import Kind
from slackwater.promises import Completeness


def promise_of(window: Window) -> Completeness:
    """The promise; a SLACK in time bounds the wait, and alone it is the wait."""
    ratio = window.drop_ratio or 0.0
    if window.slack is None or window.slack.measure is not Measure.TIME:
        return Completeness(ratio)
    least = 0.0 if window.drop_ratio is not None else window.slack.amount
    return Completeness(ratio, min_wait_ms=least, max_wait_ms=window.slack.amount)


def method_options_of(window: Window) -> dict[str, int]:
    """What a SLACK in tuples says to the method."""
    slack = window.slack
    if slack is None or slack.measure is not Measure.TUPLES or not slack.amount:
        return {}  # SLACK 0 is punctuation mode (Kim 2007, Section 4): nothing is capped
    return {"slack_rows": int(slack.amount)}


def kind_of(window: Window) -> Kind:
    """The kind of the window.

    >>> from slackwater.language import parse
    >>> kind_of(parse("SELECT MAX(v) FROM S [RANGE 1 minute SLIDE 1 second]").windows[0][1]).value
    'sliding'
    """
    if window.landmark is not None:
        return Kind.LANDMARK
    if window.range is None:
        return Kind.NONE
    if window.range.measure is Measure.TUPLES:
        return Kind.TUPLES
    if window.slide is None:
        return Kind.PER_ROW
    return Kind.TUMBLING if window.slide.amount == window.range.amount else Kind.SLIDING


def panes_of(window: Window, kind: Kind) -> tuple[Extent | None, int, float]:
    """The pane, how many make a window, and in how many windows a row is on average."""
    if kind not in (Kind.TUMBLING, Kind.SLIDING) or window.range is None or window.slide is None:
        return None, 0, 0.0
    scale = 1000 if window.range.measure is Measure.TIME else 1  # whole microseconds
    length, step = round(window.range.amount * scale), round(window.slide.amount * scale)
    pane = math.gcd(length, step)  # the pane of Li et al.: the greatest common divisor of RANGE and SLIDE
    amount = pane / scale if window.range.measure is Measure.TIME else pane
    return Extent(amount, window.range.measure), length // pane, length / step


def plural(measure: Measure) -> str:
    """What an extent is counted in, in words."""
    return {Measure.TIME: "time", Measure.TUPLES: "tuples", Measure.NUMBER: "numbers"}[measure]
