"""The planner: checks what a query says against itself and the catalog, and chooses the path."""

from __future__ import annotations

import dataclasses
import datetime as dt
import math
from typing import NoReturn

from slackwater.control.disorder import DEFAULT_METHOD
from slackwater.language import Extent, Late, Measure, Query, Window
from slackwater.language.text import located
from slackwater.plan.aggregates import Aggregate
from slackwater.plan.catalog import Catalog, Stream
from slackwater.plan.ctes import definition_of
from slackwater.plan.names import table_name
from slackwater.plan.plan import Kind, Path, Plan, Shape
from slackwater.plan.shape import decompose_select
from slackwater.plan.text_positions import start_of, word_place
from slackwater.promises import Completeness

FIXED_SLACK = "fixed-slack"
SOURCE_HEARTBEATS = "source-heartbeat"
SHED_WEIGHT = "shed_weight"


def make_plan(query: Query, catalog: Catalog | None = None) -> Plan:
    """The plan of a query, or a refusal that points at the contradiction.

    Without a catalog nothing is known about columns, and what concerns them is left for Spark to find.

    >>> from slackwater.language import parse
    >>> make_plan(parse("SELECT MAX(v) FROM S [RANGE 1 minute SLIDE 1 second WATTR ts]")).panes_per_window
    60
    """
    return _Planner(query, catalog or Catalog()).plan()


class _Planner:
    def __init__(self, query: Query, catalog: Catalog) -> None:
        self.query = query
        self.catalog = catalog
        windowed = query.windowed()
        if not windowed:
            raise located(
                query.text,
                query.start,
                "no-window",
                "no stream of this query has a window",
                "write FROM name [RANGE 5 minutes]",
            )
        if len(windowed) > 1:
            self.window = windowed[1][1]
            self._refuse_any("two-streams", "two streams have a window", "window one of them and join its result")
        self.table, self.window = windowed[0]
        if definition_of(self.table) is not None:
            raise located(
                query.text,
                start_of(self.table.this),
                "window-on-cte",
                f"{self.table.name} is a part of this query, and a window stands behind a stream",
                "put the window behind the stream that it reads, or register it as a stream of its own (sw.stream)",
                length=len(self.table.name),
            )
        self.stream: Stream | None = catalog.find(self.table.name)

    def plan(self) -> Plan:
        self._check_columns()
        window = self.window = self._spelled()
        attribute = self._attribute()
        measure = self._measure(attribute)
        self._check_extents(measure)
        self._check_promise(measure)
        kind = _kind(window)
        path = Path.NATIVE if kind in (Kind.TUMBLING, Kind.SLIDING) else Path.ORDERED
        # Windows in tuples hold the rows that were kept, however many were shed: nothing is to be corrected.
        shed = window.delay_ms is not None and kind is not Kind.TUPLES
        aggregates: tuple[Aggregate, ...] = ()
        shape: Shape | None = None
        if kind is Kind.NONE:
            path = Path.ROWS  # the query is Spark's own: nothing of it is taken apart, or refused
            self._check_rows()
        else:
            known = () if self.stream is None else tuple(self.stream.columns)
            weight = SHED_WEIGHT if shed else None
            aggregates, shape = decompose_select(self.query, self.table, attribute or "", weight, known)
        notes = []
        if kind is not Kind.NONE and not aggregates:
            self._refuse_any(
                "nothing-to-aggregate",
                "the window has no aggregate",
                "select COUNT(*), MAX(…) …, or leave RANGE out to have the rows under the promise",
            )
        late = window.late or Late.COUNT
        if late is Late.PANES:
            self._check_late_panes(path, all(a.mergeable for a in aggregates), shape)
        if late is Late.ROWS:
            self._check_late_rows(path, shape)
        if path is Path.ORDERED:
            self._check_ordered(aggregates, shape)
        pane, panes, copies = _panes(window, kind)
        if kind is Kind.TUPLES and not window.per:
            notes.append("tuples are counted in one total order: one shard, whatever the cluster")
        if kind in (Kind.PER_ROW, Kind.LANDMARK) and not (shape and shape.keys):
            notes.append("no GROUP BY: all rows are in one order, in one shard")
        if kind is Kind.LANDMARK:
            notes.append("a landmark window grows without end; only its aggregate is kept, not its rows")
        if path is Path.NATIVE and copies > 1 and not all(a.mergeable for a in aggregates):
            notes.append("an aggregate cannot be merged: every row is copied into each of its windows")
        if window.delay_ms is not None:
            notes.append("DELAY: load is shed at the entry when the delay is in danger")
            if shed and shape is not None:
                notes.append("COUNT, SUM and AVG are estimated over all rows, the shed ones included, as doubles")
        if self.query.precision is not None:
            notes.append("WITHIN: re-evaluated when the answer may have moved out of its bound, not at every tick")
        if self.query.with_error:
            notes.append("WITH ERROR: COUNT, SUM and AVG come with their standard error for what was shed")
        return Plan(
            query=self.query,
            stream=table_name(self.table),
            window=window,
            attribute=attribute,
            measure=measure,
            kind=kind,
            path=path,
            pane=pane,
            panes_per_window=panes,
            windows_per_row=copies,
            aggregates=aggregates,
            shape=shape,
            promise=_promise(window),
            method=self._method(),
            method_options=_method_options(window),
            late=late,
            sharded=bool(window.per or (kind is not Kind.TUPLES and shape is not None and shape.keys)),
            notes=tuple(notes),
        )

    # Columns ------------------------------------------------------------------------------------------------

    def _spelled(self) -> Window:
        """The window with its columns spelled as the stream spells them: case does not matter in a text."""
        stream, window = self.stream, self.window
        if stream is None:
            return window

        def spelled(name: str | None) -> str | None:
            return None if name is None else stream.column(name)

        return dataclasses.replace(
            window,
            attribute=spelled(window.attribute),
            arrival=spelled(window.arrival),
            heartbeat=spelled(window.heartbeat),
            sources=tuple(stream.column(name) or name for name in window.sources),
            per=tuple(stream.column(name) or name for name in window.per),
        )

    def _attribute(self) -> str | None:
        if self.window.attribute is not None:
            return self.window.attribute
        if self.stream is None:
            return None
        if self.stream.time is None:
            self._refuse_any(
                "no-windowing-attribute",
                f"nothing says by which column {self.table.name} is ordered",
                "write WATTR column, or give the stream a time column",
            )
        return self.stream.time

    def _check_columns(self) -> None:
        if self.stream is None:
            return
        named: dict[str, list[str | None]] = {
            "WATTR": [self.window.attribute],
            "ARRIVAL": [self.window.arrival],
            "HEARTBEAT": [self.window.heartbeat],
            "SOURCE": [*self.window.sources],
            "PER": [*self.window.per],
        }
        for keyword, columns in named.items():
            for column in columns:
                if column is not None and self.stream.column(column) is None:
                    self._refuse(
                        keyword,
                        "unknown-column",
                        f"{self.table.name} has no column {column!r}",
                        f"use one of {', '.join(self.stream.columns)}",
                    )

    def _measure(self, attribute: str | None) -> Measure | None:
        """What the windowing attribute is: a time, a number, or not known."""
        known = None
        if self.stream is not None and attribute is not None:
            known = self.stream.columns[self.stream.column(attribute) or attribute]
            if known is None:
                self._refuse(
                    "WATTR", "unordered-column", f"{attribute} is neither a time nor a number", "choose another column"
                )
        said = self.window.range.measure if self.window.range is not None else None
        if said is None and self.window.landmark is not None:
            said = Measure.TIME if isinstance(self.window.landmark, str) else Measure.NUMBER
        if said is Measure.TUPLES or said is None:
            return known
        if known is not None and known is not said:
            self._refuse(
                "RANGE" if self.window.range is not None else "LANDMARK",
                "wrong-measure",
                f"{attribute} is a {known.value}, and the window is measured in a {said.value}",
                f"give the window a {known.value}, or choose another WATTR",
            )
        return said

    # Extents ------------------------------------------------------------------------------------------------

    def _check_extents(self, measure: Measure | None) -> None:
        window = self.window
        if window.range is not None and window.landmark is not None:
            self._refuse("LANDMARK", "range-and-landmark", "RANGE and LANDMARK contradict", "leave one of them out")
        if isinstance(window.landmark, str):
            try:
                dt.datetime.fromisoformat(window.landmark)
            except ValueError:
                self._refuse(
                    "LANDMARK",
                    "wrong-landmark",
                    f"{window.landmark!r} is no point in time",
                    "write LANDMARK '2024-01-31 12:00:00'",
                )
        elif window.landmark is not None and window.landmark != int(window.landmark):
            self._refuse(
                "LANDMARK", "wrong-landmark", f"{window.landmark:g} is no whole number", "write a whole number"
            )
        if window.delay_ms is not None and window.delay_ms <= 0:
            self._refuse("DELAY", "empty-extent", "DELAY 0 cannot be kept", "write more than 0")
        for keyword, extent in (("RANGE", window.range), ("SLIDE", window.slide)):
            if extent is not None and extent.amount <= 0:
                self._refuse(keyword, "empty-extent", f"{keyword} {extent.amount:g} is nothing", "write more than 0")
            if extent is not None and extent.measure is Measure.NUMBER and extent.amount != int(extent.amount):
                self._refuse(
                    keyword, "wrong-number", f"{keyword} {extent.amount:g} is no whole number", "write a whole number"
                )
        if window.slide is not None:
            if window.range is None and window.landmark is None:
                self._refuse("SLIDE", "slide-without-range", "SLIDE has no RANGE to move", "add RANGE or LANDMARK")
            wanted = window.range.measure if window.range is not None else measure
            if wanted is not None and window.slide.measure is not wanted:
                self._refuse(
                    "SLIDE",
                    "mixed-measures",
                    f"SLIDE is in {_plural(window.slide.measure)} and the window in {_plural(wanted)}",
                    "measure both alike",
                )
            if window.range is not None and window.slide.amount > window.range.amount:
                self._refuse(
                    "SLIDE", "window-with-gaps", "SLIDE is more than RANGE: rows would be in no window", "slide less"
                )
        if window.per and (window.range is None or window.range.measure is not Measure.TUPLES):
            self._refuse("PER", "per-without-tuples", "PER counts tuples per key", "write RANGE n tuples, or GROUP BY")

    # Promises -----------------------------------------------------------------------------------------------

    def _check_promise(self, measure: Measure | None) -> None:
        window = self.window
        if window.heartbeat is not None:
            for keyword, value in (("DRATIO", window.drop_ratio), ("SLACK", window.slack)):
                if value is not None:
                    self._refuse(
                        keyword,
                        "two-controls",
                        f"HEARTBEAT takes the heartbeat from the stream, {keyword} from control",
                        "leave one of them out",
                    )
            known = (
                self.stream.columns[self.stream.column(window.heartbeat) or ""] if self.stream is not None else measure
            )
            if known is not measure:
                self._refuse(
                    "HEARTBEAT",
                    "wrong-heartbeat",
                    f"{window.heartbeat} is not of the windowing attribute's kind",
                    "name a column of that kind",
                )
        arrival = None if self.stream is None or window.arrival is None else self.stream.columns[window.arrival]
        if self.stream is not None and window.arrival is not None and arrival is not Measure.TIME:
            self._refuse("ARRIVAL", "wrong-arrival", f"{window.arrival} is no timestamp", "name one, or cast it")
        if window.slack is not None and window.slack.measure is Measure.TIME and measure is Measure.NUMBER:
            self._refuse("SLACK", "wrong-measure", "SLACK is a time, and WATTR a number", "write SLACK n tuples")

    def _check_rows(self) -> None:
        if self.query.with_error:
            start, length = word_place(self.query.text, "WITH ERROR", behind=start_of(self.query.select))
            raise located(
                self.query.text,
                start,
                "error-without-window",
                "WITH ERROR is about aggregates over a window, and there is no window",
                "add RANGE, or leave it out",
                length=length,
            )

    def _check_late_panes(self, path: Path, mergeable: bool, shape: Shape | None) -> None:
        if path is not Path.NATIVE:
            self._refuse("LATE", "late-panes-without-panes", "only windows with SLIDE have panes", "write LATE ROWS")
        if not mergeable:
            self._refuse("LATE", "late-panes-unmergeable", "an aggregate cannot be merged later", "write LATE ROWS")
        if shape is not None and shape.having:
            self._refuse(
                "LATE", "late-panes-having", "HAVING cannot judge a part of a window", "filter after sw.reconcile"
            )
        if shape is not None and shape.outer is not None:
            self._refuse(
                "LATE",
                "late-panes-inside",
                "late panes are parts of windows, which the query around the window would take for whole ones",
                "make the SELECT with the window the outermost, or write LATE COUNT",
            )
        self._check_names(shape, ("late", "parts"))

    def _check_late_rows(self, path: Path, shape: Shape | None) -> None:
        if path is Path.ROWS:
            self._refuse("LATE", "late-rows-without-window", "without RANGE no window is missed", "add RANGE")
        if shape is not None and shape.outer is not None:
            self._refuse(
                "LATE",
                "late-rows-inside",
                "late rows come beside the results of the window, not of the query around it",
                "make the SELECT with the window the outermost, or write LATE COUNT",
            )
        self._check_names(shape, ("late", "late_by", "late_by_ms", "missed", "late_row"))

    def _check_names(self, shape: Shape | None, reserved: tuple[str, ...]) -> None:
        for name, _ in shape.outputs if shape is not None else ():
            if name.lower() in reserved:
                self._refuse("LATE", "reserved-name", f"{name} tells what was late", "choose another name for it")

    def _check_ordered(self, aggregates: tuple[Aggregate, ...], shape: Shape | None) -> None:
        for aggregate in aggregates:
            if not aggregate.operator:
                self._refuse_any(
                    "unordered-aggregate",
                    f"the window operator does not know {aggregate.sql}",
                    "use COUNT, SUM, AVG, MIN, MAX, VARIANCE, STDDEV, FIRST or LAST, or add SLIDE",
                )
        if self.window.per and shape is not None:
            keys = {key.replace("`", "").rpartition(".")[2].lower() for key in shape.keys}
            if keys != {column.lower() for column in self.window.per}:
                self._refuse(
                    "PER", "per-without-group", "tuples are counted per group", "GROUP BY the columns behind PER"
                )

    def _method(self) -> str:
        if self.window.heartbeat is not None:
            return SOURCE_HEARTBEATS
        slack = self.window.slack
        if slack is not None and slack.measure is Measure.TUPLES and self.window.drop_ratio is None:
            return FIXED_SLACK  # Kim 2007, Section 4: SLACK alone is Aurora's fixed buffer
        return DEFAULT_METHOD

    # Refusals -----------------------------------------------------------------------------------------------

    def _refuse(self, keyword: str, condition: str, problem: str, remedy: str) -> NoReturn:
        start, length = self.window.places.get(keyword, (None, 1))
        if start is None:
            self._refuse_any(condition, problem, remedy)
        raise located(self.query.text, start, condition, problem, remedy, length=length)

    def _refuse_any(self, condition: str, problem: str, remedy: str) -> NoReturn:
        start, length = min(self.window.places.values(), default=(0, 1))
        raise located(self.query.text, start, condition, problem, remedy, length=length)


def _promise(window: Window) -> Completeness:
    """The promise; a SLACK in time bounds the wait, and alone it is the wait."""
    ratio = window.drop_ratio or 0.0
    if window.slack is None or window.slack.measure is not Measure.TIME or window.by_punctuations:
        return Completeness(ratio)
    least = 0.0 if window.drop_ratio is not None else window.slack.amount
    return Completeness(ratio, min_wait_ms=least, max_wait_ms=window.slack.amount)


def _method_options(window: Window) -> dict[str, int]:
    slack = window.slack
    if slack is None or slack.measure is not Measure.TUPLES or window.by_punctuations:
        return {}
    return {"slack_rows": int(slack.amount)}


def _kind(window: Window) -> Kind:
    if window.landmark is not None:
        return Kind.LANDMARK
    if window.range is None:
        return Kind.NONE
    if window.range.measure is Measure.TUPLES:
        return Kind.TUPLES
    if window.slide is None:
        return Kind.PER_ROW
    return Kind.TUMBLING if window.slide.amount == window.range.amount else Kind.SLIDING


def _panes(window: Window, kind: Kind) -> tuple[Extent | None, int, float]:
    """The pane, how many make a window, and in how many windows a row is on average."""
    if kind not in (Kind.TUMBLING, Kind.SLIDING) or window.range is None or window.slide is None:
        return None, 0, 0.0
    scale = 1000 if window.range.measure is Measure.TIME else 1  # whole microseconds
    length, step = round(window.range.amount * scale), round(window.slide.amount * scale)
    pane = math.gcd(length, step)  # the pane of Li et al.: the greatest common divisor of RANGE and SLIDE
    amount = pane / scale if window.range.measure is Measure.TIME else pane
    return Extent(amount, window.range.measure), length // pane, length / step


def _plural(measure: Measure) -> str:
    return {Measure.TIME: "time", Measure.TUPLES: "tuples", Measure.NUMBER: "numbers"}[measure]
