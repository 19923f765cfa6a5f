"""How old results are when they are published, and how old the rows are that a query reads."""

from __future__ import annotations

from collections.abc import Iterator

from slackwater.units import DAY_US, MS_US
from slackwater.watching.point import Point
from slackwater.watching.series import RECENT_MS, Series

_RECORDED_MS = DAY_US / MS_US
"""Rows that arrived longer ago than this are a recorded stream or a backfill: only their own clock says an age."""


def arrival_clock_ms(point: Point) -> float | None:
    """The arrival clock at the end of the micro-batch; None before the first heartbeat."""
    return None if point.heartbeat_ms is None or point.wait_ms is None else point.heartbeat_ms + point.wait_ms


def is_recorded(point: Point) -> bool:
    """Whether the rows arrived so long ago that the time of day says nothing about the age of results."""
    clock_ms = arrival_clock_ms(point)
    return clock_ms is not None and point.at_ms - clock_ms > _RECORDED_MS


def publication_delay_ms(point: Point) -> float | None:
    """From the end of the newest window that this micro-batch published to its commit; None if it published none.

    For a recorded stream the time of the commit is that of the arrival clock.
    """
    if point.window_ms is None:
        return None
    clock_ms = arrival_clock_ms(point)
    return (clock_ms if clock_ms is not None and is_recorded(point) else point.at_ms) - point.window_ms[1]


def recent_publication_delays_ms(series: Series, span_ms: float = RECENT_MS) -> Iterator[float]:
    """The publication delays of the last minutes, oldest first."""
    if series.last is not None:
        for point in series.points_since(series.last.at_ms - span_ms):
            if (delay_ms := publication_delay_ms(point)) is not None:
                yield delay_ms
