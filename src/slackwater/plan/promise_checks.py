"""Checks of the promises: the heartbeat, the arrival column, SLACK, WITH ERROR, and how late rows are reported."""

from __future__ import annotations

from slackwater.language import Late, Measure
from slackwater.plan.aggregates import Aggregate
from slackwater.plan.plan import Kind, Path, Shape
from slackwater.plan.text_positions import find_words, position_error, start_of
from slackwater.plan.windowed_stream import WindowedStream

_OUTERMOST = "make the SELECT with the window the outermost one, or write LATE COUNT"


def check_promise(stream: WindowedStream, measure: Measure | None) -> None:
    """Refuse promises that contradict each other or the types of the columns."""
    window, known = stream.window, stream.known
    if window.heartbeat is not None:
        _check_heartbeat(stream, window.heartbeat, measure)
    if known is not None and window.arrival is not None and known.columns[window.arrival] is not Measure.TIME:
        problem, remedy = f"{window.arrival} is not a TIMESTAMP", "name a TIMESTAMP column, or cast it"
        raise stream.clause_error("ARRIVAL", "wrong-arrival", problem, remedy)
    if window.slack is not None and window.slack.measure is Measure.TIME and measure is Measure.NUMBER:
        problem = "SLACK is a time, but WATTR is a number"
        raise stream.clause_error("SLACK", "wrong-measure", problem, "write SLACK n tuples")


def _check_heartbeat(stream: WindowedStream, heartbeat: str, measure: Measure | None) -> None:
    for keyword, value in (("DRATIO", stream.window.drop_ratio), ("SLACK", stream.window.slack)):
        if value is not None:
            problem = f"HEARTBEAT and {keyword} both determine the heartbeat"
            raise stream.clause_error(keyword, "two-controls", problem, "remove one of them")
    if stream.known is not None and stream.known.columns[heartbeat] is not measure:
        problem = f"{heartbeat} is not of the same kind as the windowing attribute"
        raise stream.clause_error("HEARTBEAT", "wrong-heartbeat", problem, "name a column of that kind")


def check_punctuations(stream: WindowedStream, kind: Kind) -> None:
    """Refuse ``SLACK 0`` with ``DRATIO`` where the window operator needs its rows in order, and so holds them back."""
    window = stream.window
    if window.by_punctuations and not (kind is Kind.LANDMARK and window.slide is not None):
        problem = (
            "SLACK 0 with DRATIO asks for punctuations without a buffer, but these windows need their rows in order"
        )
        remedy = "remove SLACK 0, or write windows in time with SLIDE"
        raise stream.clause_error("SLACK", "no-punctuations", problem, remedy)


def check_without_window(stream: WindowedStream) -> None:
    """Refuse WITH ERROR for a query that has a promise but no window."""
    query = stream.query
    if query.with_error:
        position = find_words(query.text, "WITH ERROR", after=start_of(query.select))
        problem, remedy = "WITH ERROR needs a window", "add RANGE, or remove WITH ERROR"
        raise position_error(query, position, "error-without-window", problem, remedy)


def check_error(stream: WindowedStream, kind: Kind) -> None:
    """Refuse WITH ERROR where shedding causes no error."""
    query = stream.query
    if not query.with_error or kind is Kind.NONE:
        return
    problem, remedy = "", "remove WITH ERROR"
    if stream.window.delay_ms is None:
        problem, remedy = "WITH ERROR has no effect without DELAY: no row is shed", "add DELAY, or remove WITH ERROR"
    elif kind is Kind.TUPLES:
        problem = "WITH ERROR has no effect on windows in tuples, which hold the rows that were kept"
    if problem:
        position = find_words(query.text, "WITH ERROR", after=start_of(query.select))
        raise position_error(query, position, "error-without-shedding", problem, remedy)


def check_late(
    stream: WindowedStream, late: Late, path: Path, aggregates: tuple[Aggregate, ...], shape: Shape | None
) -> None:
    """Refuse LATE PANES and LATE ROWS where the query cannot deliver them."""
    if late is Late.PANES:
        _check_late_panes(stream, path, aggregates, shape)
    elif late is Late.ROWS:
        _check_late_rows(stream, path, shape)


def _check_late_panes(
    stream: WindowedStream, path: Path, aggregates: tuple[Aggregate, ...], shape: Shape | None
) -> None:
    if path is not Path.NATIVE or stream.window.session_ms is not None:
        problem = "LATE PANES needs a window with panes: RANGE and SLIDE, not in tuples"
        remedy = "write LATE ROWS" if stream.window.session_ms is None else "write LATE COUNT"
        raise stream.clause_error("LATE", "late-panes-without-panes", problem, remedy)
    for aggregate in aggregates:
        if not aggregate.mergeable:
            problem = f"{aggregate.sql} cannot be merged with late panes"
            raise stream.clause_error("LATE", "late-panes-unmergeable", problem, "write LATE ROWS")
    if shape is not None and shape.having:
        problem = "HAVING cannot filter a part of a window"
        raise stream.clause_error("LATE", "late-panes-having", problem, "filter the result of sw.reconcile")
    if shape is not None and shape.outer is not None:
        problem = "the outer query would treat late panes as whole windows"
        raise stream.clause_error("LATE", "late-panes-inside", problem, _OUTERMOST)
    _check_output_names(stream, "LATE PANES", shape, ("late", "parts"))


def _check_late_rows(stream: WindowedStream, path: Path, shape: Shape | None) -> None:
    if path is Path.ROWS:
        raise stream.clause_error("LATE", "late-rows-without-window", "LATE ROWS needs a window", "add RANGE")
    if stream.window.session_ms is not None:
        problem = "the sessions that a late row missed are not known"
        raise stream.clause_error("LATE", "late-rows-of-sessions", problem, "write LATE COUNT")
    if shape is not None and shape.outer is not None:
        problem = "late rows cannot pass through the outer query"
        raise stream.clause_error("LATE", "late-rows-inside", problem, _OUTERMOST)
    _check_output_names(stream, "LATE ROWS", shape, ("late", "late_by", "late_by_ms", "missed", "late_row"))


def _check_output_names(stream: WindowedStream, clause: str, shape: Shape | None, reserved: tuple[str, ...]) -> None:
    for name, _ in shape.outputs if shape is not None else ():
        if name.lower() in reserved:
            problem = f"{name} is the name of a column that {clause} adds"
            raise stream.clause_error("LATE", "reserved-name", problem, "choose another name for the output")
