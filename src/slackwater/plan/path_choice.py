"""Chooses how windows are computed: the kind of window, the path, and the panes."""

from __future__ import annotations

import math

from slackwater.language import Extent, Late, Measure, Window
from slackwater.plan.aggregates import Aggregate
from slackwater.plan.plan import Kind, Path, Shape
from slackwater.plan.windowed_stream import WindowedStream


def window_kind(window: Window) -> Kind:
    """Return the kind of window that the clause describes."""
    if window.landmark is not None:
        return Kind.LANDMARK
    if window.session_ms is not None:
        return Kind.SESSION
    if window.range is None:
        return Kind.NONE
    if window.range.measure is Measure.TUPLES:
        return Kind.TUPLES
    if window.slide is None:
        return Kind.PER_ROW
    return Kind.TUMBLING if window.slide.amount == window.range.amount else Kind.SLIDING


def choose_path(kind: Kind, slack_by_row: bool) -> Path:
    """Return the path for a kind of window."""
    if kind is Kind.NONE:
        return Path.ROWS
    if slack_by_row:
        return Path.ORDERED  # Kim 2007, §3: a slack buffer presents the rows to the window in order
    return Path.NATIVE if kind in (Kind.TUMBLING, Kind.SLIDING, Kind.SESSION) else Path.ORDERED


def slack_in_rows(window: Window) -> bool:
    """Test whether SLACK gives a buffer as a number of rows."""
    slack = window.slack
    return slack is not None and slack.measure is Measure.TUPLES and not window.by_punctuations


def slack_obstacle(window: Window, aggregates: tuple[Aggregate, ...], shape: Shape | None) -> str | None:
    """Return why SLACK in rows cannot be kept row by row; None if it can."""
    if shape is None:
        return "there is no RANGE"
    if window.late in (Late.ROWS, Late.PANES):
        return "late rows are published"
    if window.session_ms is not None:
        return "of SESSION"
    if shape.outer is not None:
        return "a query around the window reads its results"
    if shape.narrowed:
        return "of WHERE or a join"
    for aggregate in aggregates:
        if not aggregate.operator:
            return f"the window operator does not support {aggregate.sql}"
    return None


def pane_layout(window: Window, kind: Kind) -> tuple[Extent | None, int, float]:
    """Return the pane, the number of panes per window, and the mean number of windows per row."""
    if kind not in (Kind.TUMBLING, Kind.SLIDING) or window.range is None or window.slide is None:
        return None, 0, 0.0
    scale = 1000 if window.range.measure is Measure.TIME else 1  # whole microseconds
    length, step = round(window.range.amount * scale), round(window.slide.amount * scale)
    pane = math.gcd(length, step)  # Li et al.: the greatest common divisor of RANGE and SLIDE
    amount = pane / scale if window.range.measure is Measure.TIME else pane
    return Extent(amount, window.range.measure), length // pane, length / step


def is_sharded(window: Window, kind: Kind, shape: Shape | None) -> bool:
    """Test whether groups can be computed in several shards."""
    return bool(window.per or (kind is not Kind.TUPLES and shape is not None and shape.keys))


def check_ordered_path(stream: WindowedStream, aggregates: tuple[Aggregate, ...], shape: Shape | None) -> None:
    """Refuse what the window operator does not support: other aggregates, and PER without the same GROUP BY."""
    for aggregate in aggregates:
        if not aggregate.operator:
            raise stream.window_error(
                "unordered-aggregate",
                f"the window operator does not support {aggregate.sql}",
                "use COUNT, SUM, AVG, MIN, MAX, VARIANCE, STDDEV, FIRST or LAST, or add SLIDE",
            )
    if stream.window.per and shape is not None:
        keys = {key.replace("`", "").rpartition(".")[2].lower() for key in shape.keys}
        if keys != {column.lower() for column in stream.window.per}:
            problem = "PER and GROUP BY name different columns"
            raise stream.clause_error("PER", "per-without-group", problem, "GROUP BY the columns of PER")
