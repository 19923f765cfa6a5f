"""Chooses the disorder control method and its completeness promise from the window clause."""

from __future__ import annotations

from slackwater.control.disorder import DEFAULT_METHOD
from slackwater.language import Measure, Window
from slackwater.promises import Completeness

FIXED_SLACK = "fixed-slack"
SOURCE_HEARTBEATS = "source-heartbeat"


def choose_method(window: Window) -> str:
    """Return the name of the method that moves the heartbeat."""
    if window.heartbeat is not None:
        return SOURCE_HEARTBEATS
    slack = window.slack
    if slack is not None and slack.measure is Measure.TUPLES and window.drop_ratio is None:
        return FIXED_SLACK  # Kim 2007, Section 4: SLACK alone is Aurora's fixed buffer
    return DEFAULT_METHOD


def method_options(window: Window) -> dict[str, int]:
    """Return the options of the method: the size of the buffer, if SLACK gives it in tuples."""
    slack = window.slack
    if slack is None or slack.measure is not Measure.TUPLES or window.by_punctuations:
        return {}
    return {"slack_rows": int(slack.amount)}


def completeness_promise(window: Window) -> Completeness:
    """Return the promise. SLACK as a time limits the wait; without DRATIO it is the wait itself."""
    ratio = window.drop_ratio or 0.0
    if window.slack is None or window.slack.measure is not Measure.TIME or window.by_punctuations:
        return Completeness(ratio)
    min_wait_ms = 0.0 if window.drop_ratio is not None else window.slack.amount
    return Completeness(ratio, min_wait_ms=min_wait_ms, max_wait_ms=window.slack.amount)
