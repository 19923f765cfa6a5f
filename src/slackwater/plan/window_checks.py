"""Checks of the window clause: its columns, its windowing attribute and its extents."""

from __future__ import annotations

import dataclasses
import datetime as dt

from slackwater.language import Measure, Window
from slackwater.names import near, quoted, unquoted
from slackwater.plan.windowed_stream import WindowedStream

_MEASURE_WORDS = {Measure.TIME: "time", Measure.TUPLES: "tuples", Measure.NUMBER: "numbers"}


def resolve_columns(stream: WindowedStream) -> WindowedStream:
    """Return the stream with the columns of its window spelled as in the catalog; refuse unknown columns."""
    known, window = stream.known, stream.window
    if known is None:
        return stream

    def resolve(keyword: str, name: str) -> str:
        column = known.column(name)
        if column is None:
            problem = f"{stream.table.name} has no column {name!r}{near(name, known.columns)}"
            raise stream.clause_error(keyword, "unknown-column", problem, f"use one of {', '.join(known.columns)}")
        return column

    def resolve_optional(keyword: str, name: str | None) -> str | None:
        return None if name is None else resolve(keyword, name)

    resolved = dataclasses.replace(
        window,
        attribute=resolve_optional("WATTR", window.attribute),
        arrival=resolve_optional("ARRIVAL", window.arrival),
        heartbeat=resolve_optional("HEARTBEAT", window.heartbeat),
        sources=tuple(resolve("SOURCE", name) for name in window.sources),
        per=tuple(resolve("PER", name) for name in window.per),
    )
    resolve_optional("SHED", None if window.shed_by is None else unquoted(window.shed_by))
    return dataclasses.replace(stream, window=resolved)


def windowing_attribute(stream: WindowedStream) -> str | None:
    """Return the column of WATTR, else the stream's time column; None if the stream is unknown."""
    if stream.window.attribute is not None or stream.known is None:
        return stream.window.attribute
    if stream.known.time is None:
        raise stream.window_error(
            "no-windowing-attribute",
            f"{stream.table.name} has no time column, and the window has no WATTR",
            "write WATTR column, or give the stream a time column",
        )
    return stream.known.time


def attribute_measure(stream: WindowedStream, attribute: str | None) -> Measure | None:
    """Return whether the windowing attribute is a time or a number; None if neither column nor window tell."""
    window = stream.window
    known = None
    if stream.known is not None and attribute is not None:
        column = stream.known.column(attribute) or attribute
        known = stream.known.columns[column]
        if column in stream.known.zoneless:
            problem = f"{column} is a TIMESTAMP_NTZ, which is no instant without a time zone"
            remedy = f"register the stream with CAST({quoted(column)} AS TIMESTAMP), which takes the session's zone"
            raise stream.clause_error("WATTR", "timestamp-without-zone", problem, remedy)
        if known is None:
            problem = f"{attribute} is neither a TIMESTAMP nor a whole number"
            raise stream.clause_error("WATTR", "unordered-column", problem, "choose another column")
    written = window.range.measure if window.range is not None else None
    if written is None and window.landmark is not None:
        written = Measure.TIME if isinstance(window.landmark, str) else Measure.NUMBER
    if window.session_ms is not None:
        written = Measure.TIME
    if written is Measure.TUPLES or written is None:
        return known
    if known is not None and known is not written:
        keyword = next(word for word in ("RANGE", "LANDMARK", "SESSION") if word in window.positions)
        raise stream.clause_error(
            keyword,
            "wrong-measure",
            f"{attribute} is a {known.value}, but {keyword} is a {written.value}",
            f"write {keyword} as a {known.value}, or choose another WATTR",
        )
    return written


def check_extents(stream: WindowedStream, measure: Measure | None) -> None:
    """Refuse extents that are empty, contradict each other, or do not fit the windowing attribute."""
    window = stream.window
    if window.range is not None and window.landmark is not None:
        problem = "RANGE and LANDMARK exclude each other"
        raise stream.clause_error("LANDMARK", "range-and-landmark", problem, "remove one of them")
    _check_landmark(stream)
    _check_session(stream)
    if window.delay_ms is not None and window.delay_ms <= 0:
        raise stream.clause_error("DELAY", "empty-extent", "DELAY 0 cannot be kept", "write more than 0")
    if window.after_where and window.delay_ms is None:
        problem = "AFTER WHERE has no effect without DELAY"
        raise stream.clause_error("AFTER", "after-without-delay", problem, "add DELAY 2 seconds, or remove AFTER WHERE")
    if window.shed_by is not None and window.delay_ms is None:
        problem = "SHED BY has no effect without DELAY"
        raise stream.clause_error("SHED", "shed-without-delay", problem, "add DELAY 2 seconds, or remove SHED BY")
    for keyword, extent in (("RANGE", window.range), ("SLIDE", window.slide)):
        if extent is not None and extent.amount <= 0:
            problem = f"{keyword} {extent.amount:g} is empty"
            raise stream.clause_error(keyword, "empty-extent", problem, "write more than 0")
        if extent is not None and extent.measure is Measure.NUMBER and extent.amount != int(extent.amount):
            problem = f"{keyword} {extent.amount:g} is not a whole number"
            raise stream.clause_error(keyword, "wrong-number", problem, "write a whole number")
    _check_slide(stream, measure)
    if window.per and (window.range is None or window.range.measure is not Measure.TUPLES):
        problem = "PER needs a window in tuples"
        raise stream.clause_error("PER", "per-without-tuples", problem, "write RANGE n tuples, or use GROUP BY")


def _check_landmark(stream: WindowedStream) -> None:
    landmark = stream.window.landmark
    if isinstance(landmark, str):
        try:
            dt.datetime.fromisoformat(landmark)
        except ValueError:
            problem, remedy = f"{landmark!r} is not a timestamp", "write LANDMARK '2024-01-31 12:00:00'"
            raise stream.clause_error("LANDMARK", "wrong-landmark", problem, remedy) from None
    elif landmark is not None and landmark != int(landmark):
        problem = f"LANDMARK {landmark:g} is not a whole number"
        raise stream.clause_error("LANDMARK", "wrong-landmark", problem, "write a whole number")


def _check_session(stream: WindowedStream) -> None:
    window = stream.window
    if window.session_ms is None:
        return
    other = next((word for word in ("RANGE", "LANDMARK", "SLIDE") if word in window.positions), None)
    if other is not None:
        problem = f"SESSION and {other} exclude each other"
        raise stream.clause_error(other, "session-and-range", problem, "remove one of them")
    if window.session_ms <= 0:
        raise stream.clause_error("SESSION", "empty-extent", "SESSION 0 is empty", "write more than 0")


def _check_slide(stream: WindowedStream, measure: Measure | None) -> None:
    window: Window = stream.window
    if window.slide is None:
        return
    if window.range is None and window.landmark is None:
        problem = "SLIDE needs a window to move"
        raise stream.clause_error("SLIDE", "slide-without-range", problem, "add RANGE or LANDMARK")
    wanted = window.range.measure if window.range is not None else measure
    if wanted is not None and window.slide.measure is not wanted:
        problem = f"SLIDE is in {_MEASURE_WORDS[window.slide.measure]}, but the window is in {_MEASURE_WORDS[wanted]}"
        raise stream.clause_error("SLIDE", "mixed-measures", problem, "use the same measure for both")
    if window.range is not None and window.slide.amount > window.range.amount:
        problem = "SLIDE is longer than RANGE, so some rows would be in no window"
        raise stream.clause_error("SLIDE", "window-with-gaps", problem, "write a shorter SLIDE")
