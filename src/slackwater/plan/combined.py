"""Plans a query in which several tables have a window or a promise: each part by itself, then the query around them.

- A SELECT with a window over one stream becomes a part of its own; the query around it reads its results.
- A stream without RANGE is a part whose rows the query reads under the promise.
- Streams with RANGE and SLIDE that one SELECT joins are joined window by window: each row comes once per window, and
  the end of the window is part of the join condition.
- Streams with RANGE and without SLIDE that one SELECT joins are joined as CQL joins them: two rows meet if the earlier
  one is still in the window of its stream when the later one comes.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import cast

from sqlglot import exp

from slackwater.errors import QueryTextError
from slackwater.language import Late, Query, Window
from slackwater.language.tree import tables_of
from slackwater.plan.catalog import Catalog
from slackwater.plan.ctes import inline_ctes, inline_repeated_ctes
from slackwater.plan.joined_windows import Joined, join_by_range, join_by_window
from slackwater.plan.outer_query import finish_outer
from slackwater.plan.plan import Path, Plan
from slackwater.plan.planner import make_plan, plan_stream
from slackwater.plan.shape import name_stream
from slackwater.plan.sql_template import SqlTemplate, name_slots, split_at_slots
from slackwater.plan.windowed_stream import WindowedStream, refuse_cte

WINDOW = "slackwater_window"


@dataclass(frozen=True, slots=True)
class Copies:
    """How rows are copied into windows that are joined, in milliseconds.

    ``shown_ms`` is the length of the window in the results: the longest of the joined ones.
    """

    length_ms: float
    slide_ms: float
    shown_ms: float


@dataclass(frozen=True, slots=True)
class StreamPart:
    """One table with a window: its plan, its name in the query, and how its rows are copied, if they are."""

    name: str
    plan: Plan
    copies: Copies | None = None


@dataclass(frozen=True, slots=True)
class CombinedPlan:
    """The parts of a query, and the query that reads them. ``text`` has a placeholder for each part.

    ``joins`` says in words how streams are joined.
    """

    query: Query
    parts: tuple[StreamPart, ...]
    text: SqlTemplate
    joins: tuple[str, ...] = ()


def is_combined(query: Query) -> bool:
    """Test whether a query has several parts: several windows, or a CTE with a window that is read repeatedly."""
    if len(query.windows) > 1:
        return True
    return bool(query.windows) and len(_windowed(_marked(query))) > 1


def make_combined_plan(query: Query, catalog: Catalog | None = None) -> CombinedPlan:
    """Make the plan of a query with several windows. Raises ``QueryTextError``."""
    return _Combination(query, catalog or Catalog()).plan()


def plan_query_text(query: Query, catalog: Catalog | None = None) -> Plan | CombinedPlan:
    """Make the plan of any query without WITHIN."""
    return make_combined_plan(query, catalog) if is_combined(query) else make_plan(query, catalog)


def _marked(query: Query) -> exp.Query:
    """The tree with each window at its table; a CTE with a window that is read repeatedly is copied to its readers."""
    whole = query.select.copy()
    tables = tables_of(whole)
    for index, window in query.windows:
        tables[index].meta[WINDOW] = window
    inline_repeated_ctes(query, whole, lambda table: WINDOW in table.meta)
    return whole


def _windowed(tree: exp.Expr) -> list[exp.Table]:
    return [table for table in tree.find_all(exp.Table, bfs=False) if WINDOW in table.meta]


class _Combination:
    """The parts of a query, collected SELECT by SELECT; ``whole`` is changed on the way."""

    def __init__(self, query: Query, catalog: Catalog) -> None:
        self.query, self.catalog = query, catalog
        self.whole = _marked(query)
        self.parts: list[StreamPart] = []
        self.placeholders: list[exp.Table] = []
        self.times: set[str | None] = set()
        self.joins: list[str] = []

    def plan(self) -> CombinedPlan:
        selects: dict[int, tuple[exp.Select, list[exp.Table]]] = {}
        for table in _windowed(self.whole):
            refuse_cte(self.query, table)
            select = cast(exp.Select, table.find_ancestor(exp.Select))
            selects.setdefault(id(select), (select, []))[1].append(table)
        for select, tables in selects.values():
            self._refuse_late(tables)
            ranged = [table for table in tables if _has_range(_window(table))]
            if len(tables) == 1 and ranged:
                self._add_window(select, tables[0])
            elif any(_window(table).slide is not None for table in ranged):
                self._add_joined_windows(select, tables)
            else:
                self._add_rows(select, tables)
        slot = name_slots(self.whole, self.placeholders)
        whole = finish_outer(
            self.query, self.whole, self.placeholders, self.times, windows_are_times=self._per_window()
        )
        return CombinedPlan(self.query, tuple(self.parts), split_at_slots(whole, slot), tuple(self.joins))

    def _per_window(self) -> bool:
        return all(part.plan.path is not Path.ORDERED for part in self.parts)

    def _add_window(self, select: exp.Select, table: exp.Table) -> None:
        inner = next((other for other in _windowed(select) if other is not table), None)
        if inner is not None:
            remedy = "join the results of both windows in a SELECT around them"
            raise self._stream(inner).window_error("window-in-window", "a window stands inside another", remedy)
        inline_ctes(self.query, [other for other in tables_of(select) if other is not table])
        index = next(i for i, other in enumerate(tables_of(select)) if other is table)
        own = Query(select.copy(), ((index, _window(table)),), text=self.query.text, start=self.query.start)
        result = exp.to_table("result")
        replacement = exp.select("*").from_(result, copy=False)
        if select is self.whole:
            self.whole = replacement
        else:
            select.replace(replacement)
        self._add(table, make_plan(own, self.catalog), result)

    def _add_rows(self, select: exp.Select, tables: list[exp.Table]) -> None:
        joined = [self._joined(table) for table in tables]
        if len(joined) > 1:
            self.joins += join_by_range(self.query, select, joined)
        for one in joined:
            self._add(one.table, one.plan, one.table)
            self.times.add(one.plan.attribute)

    def _add_joined_windows(self, select: exp.Select, tables: list[exp.Table]) -> None:
        joined = [self._joined(table) for table in tables]
        longest = join_by_window(self.query, select, joined)
        for one in joined:
            assert one.window.range is not None and one.window.slide is not None
            copies = Copies(one.window.range.amount, one.window.slide.amount, longest)
            self._add(one.table, one.plan, one.table, copies)
        self.joins.append(f"{' and '.join(one.alias for one in joined)}, window by window")

    def _joined(self, table: exp.Table) -> Joined:
        """The stream as rows under its promise, after a check of its window."""
        stream = self._stream(table)
        checked, _, measure = plan_stream(stream)
        rows = dataclasses.replace(checked.window, range=None, slide=None)
        bare = exp.Table(**{part: value.copy() for part, value in table.args.items() if part in _NAME and value})
        own = Query(exp.select("*").from_(bare), ((0, rows),), text=self.query.text, start=self.query.start)
        plan = make_plan(own, self.catalog)
        if checked.window.range is not None and plan.attribute is None:
            problem = f"the time of {table.name} is not known here, and a join of windows needs it"
            raise stream.window_error("no-windowing-attribute", problem, "write WATTR column")
        return Joined(table, name_stream(self.whole, table), checked.window, measure, plan, stream)

    def _add(self, table: exp.Table, plan: Plan, placeholder: exp.Table, copies: Copies | None = None) -> None:
        self.parts.append(StreamPart(table.alias or table.name, plan, copies))
        self.placeholders.append(placeholder)

    def _stream(self, table: exp.Table) -> WindowedStream:
        return WindowedStream(self.query, table, _window(table), self.catalog.find(table.name))

    def _refuse_late(self, tables: list[exp.Table]) -> None:
        for table in tables:
            late = _window(table).late
            if late is not None and late is not Late.COUNT:
                problem = f"LATE {late.value.upper()} needs a query with one window"
                raise self._stream(table).clause_error("LATE", "late-of-several", problem, "write LATE COUNT")
        if self.query.with_error:
            raise self._with_error(tables[0])

    def _with_error(self, table: exp.Table) -> QueryTextError:
        problem, remedy = "WITH ERROR needs a query with one window", "remove WITH ERROR"
        return self._stream(table).window_error("error-of-several", problem, remedy)


_NAME = ("this", "db", "catalog", "alias")


def _window(table: exp.Table) -> Window:
    return cast(Window, table.meta[WINDOW])


def _has_range(window: Window) -> bool:
    return window.range is not None or window.landmark is not None or window.session_ms is not None
