"""Finds names in a query that mean nothing: tables, columns and functions that do not exist, with the nearest name."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import NoReturn

from sqlglot import exp

from slackwater.language import Query
from slackwater.plan.catalog import Catalog
from slackwater.plan.rewriting import SHED_WEIGHT, WINDOW_COLUMNS
from slackwater.plan.spark_functions import SPARK_FUNCTIONS
from slackwater.plan.text_positions import node_error

_MOST_NAMES = 12
_TIME_CALLS = {"WINDOW": "window", "SESSION_WINDOW": "session_window"}

Columns = list[str] | None
"""The columns of a table or a query; None if they are not known."""


@dataclass
class _Scope:
    """The names that a SELECT can use: the columns of its sources by their alias, and other names; in lower case."""

    parent: _Scope | None
    sources: dict[str, Columns] = field(default_factory=dict)
    others: set[str] = field(default_factory=set)


def check_names(query: Query, catalog: Catalog, has_function: Callable[[str], bool] | None = None) -> None:
    """Refuse a table that is not in the catalog, a column that no table has, and a function that Spark does not have.

    ``has_function`` tells of functions besides Spark's own, such as those of a session.
    """
    _NameCheck(query, catalog, has_function or (lambda _: False)).check()


def near(name: str, names: Iterable[str]) -> str:
    """Return ``" (did you mean x?)"`` for the name most like ``name``, in any case, or an empty string.

    >>> near("chanel", ["channel", "price"])
    ' (did you mean channel?)'
    """
    spelled = {other.lower(): other for other in names}
    found = difflib.get_close_matches(name.lower(), spelled, n=1)
    return f" (did you mean {spelled[found[0]]}?)" if found else ""


def unknown_call(query: Query) -> str:
    """Return ``": there is no function SUMM (did you mean sum?)"`` for a misspelt function of the query, or nothing."""
    for call in query.select.find_all(exp.Anonymous):
        suggestion = near(call.name, SPARK_FUNCTIONS)
        if call.name.lower() not in SPARK_FUNCTIONS and suggestion:
            return f": there is no function {call.name}{suggestion}"
    return ""


class _NameCheck:
    def __init__(self, query: Query, catalog: Catalog, has_function: Callable[[str], bool]) -> None:
        self.query, self.catalog, self.has_function = query, catalog, has_function
        self.windows = {id(table): window for table, window in query.windowed()}

    def check(self) -> None:
        for call in self.query.select.find_all(exp.Anonymous):
            self._check_function(call)
        self._columns_of(self.query.select, None, {})

    def _check_function(self, call: exp.Anonymous) -> None:
        name = call.name
        if name.lower() not in SPARK_FUNCTIONS and not self.has_function(name):
            problem = f"there is no function {name}{near(name, SPARK_FUNCTIONS)}"
            self._refuse(call, "unknown-function", problem, "correct its name, or register it first", len(name))

    def _columns_of(self, node: exp.Expr, parent: _Scope | None, ctes: Mapping[str, Columns]) -> Columns:
        """Check a query, and return the names of its columns."""
        named = dict(ctes)
        with_clause = node.args.get("with_")
        recursive = with_clause is not None and with_clause.args.get("recursive")
        for cte in with_clause.expressions if with_clause is not None else ():
            if recursive:
                named[cte.alias.lower()] = None
            columns = self._columns_of(cte.this, parent, named)
            named[cte.alias.lower()] = _renamed(cte, columns)
        if isinstance(node, exp.Subquery):
            return self._columns_of(node.this, parent, named)
        if isinstance(node, exp.SetOperation):
            columns = self._columns_of(node.left, parent, named)
            self._columns_of(node.right, parent, named)
            return columns
        return self._columns_of_select(node, parent, named) if isinstance(node, exp.Select) else None

    def _columns_of_select(self, select: exp.Select, parent: _Scope | None, ctes: Mapping[str, Columns]) -> Columns:
        scope, windowed = _Scope(parent), False
        joins = select.args.get("joins") or []
        for source in (select.args.get("from_"), *joins):
            if source is not None:
                self._add_source(scope, source.this, ctes)
                for nested in source.this.args.get("joins") or []:
                    self._add_source(scope, nested.this, ctes)
        for lateral in select.args.get("laterals") or []:
            self._add_source(scope, lateral, ctes)
        for table in _own_tables(select):
            window = self.windows.get(id(table))
            ranged = window is not None and (window.range or window.landmark is not None or window.session_ms)
            windowed |= bool(ranged)
        scope.others |= {projection.alias.lower() for projection in select.expressions if projection.alias}
        scope.others |= set(WINDOW_COLUMNS) if windowed else set()
        for call in select.find_all(exp.Anonymous, exp.Func):
            called = call.name if isinstance(call, exp.Anonymous) else call.sql_name()
            if called.upper() in _TIME_CALLS:
                scope.others.add(_TIME_CALLS[called.upper()])
        for name, part in select.args.items():
            for root in part if isinstance(part, list) else [part]:
                if isinstance(root, exp.Expr) and name not in ("from_", "with_", "laterals", "hint"):
                    self._check_expression(root.args.get("on") if name == "joins" else root, scope, ctes, frozenset())
        columns = _outputs(select, scope)
        if columns is None or not windowed:
            return columns
        given = {column.lower() for column in columns}
        return [*(edge for edge in WINDOW_COLUMNS if edge not in given), *columns]

    def _add_source(self, scope: _Scope, source: exp.Expr, ctes: Mapping[str, Columns]) -> None:
        alias = source.alias or (source.name if isinstance(source, exp.Table) else "") or f"source {len(scope.sources)}"
        if isinstance(source, exp.Table) and isinstance(source.this, exp.Identifier) and not source.args.get("pivots"):
            columns = self._columns_of_table(source, ctes)
        elif isinstance(source, exp.Subquery) and not source.args.get("pivots"):
            columns = self._columns_of(source, scope.parent, ctes)
        else:
            columns = None
        scope.sources[alias.lower()] = _renamed(source, columns)

    def _columns_of_table(self, table: exp.Table, ctes: Mapping[str, Columns]) -> Columns:
        if not table.db and table.name.lower() in ctes:
            return ctes[table.name.lower()]
        known = self.catalog.find(table.name)
        if known is None and table.db:
            return None  # a table of another database, or a file
        if known is None:
            names = [*ctes, *(stream.name for stream in self.catalog.streams.values())]
            problem = f"there is no table {table.name}{near(table.name, names)}"
            remedy = f"{_use_one_of(names)}, or declare it"
            self._refuse(table.this, "unknown-table", problem, remedy, len(table.name))
        window = self.windows.get(id(table))
        sheds = window is not None and window.delay_ms is not None
        return [*known.columns, SHED_WEIGHT] if sheds else list(known.columns)

    def _check_expression(
        self, root: exp.Expr | None, scope: _Scope, ctes: Mapping[str, Columns], bound: frozenset[str]
    ) -> None:
        if root is None or isinstance(root, exp.Star):
            return
        if isinstance(root, exp.Query):
            self._columns_of(root, scope, ctes)
            return
        if isinstance(root, exp.Column):
            self._check_column(root, scope, bound)
            return
        if isinstance(root, exp.Lambda):
            bound |= {parameter.name.lower() for parameter in root.expressions}
        for child in root.iter_expressions():
            self._check_expression(child, scope, ctes, bound)

    def _check_column(self, column: exp.Column, scope: _Scope, bound: frozenset[str]) -> None:
        parts = [part.name for part in column.parts]
        lowered = [part.lower() for part in parts]
        if lowered[0] in bound or column.is_star:
            return
        around: _Scope | None = scope
        while around is not None:
            if _resolves(lowered, around):
                return
            around = around.parent
        names = [name for columns in scope.sources.values() for name in columns or []]
        first = lowered[0]
        if len(parts) > 1 and first in scope.sources:
            names = scope.sources[first] or []
            problem = f"{parts[0]} has no column {parts[1]!r}{near(parts[1], names)}"
        elif len(parts) > 1:
            names = [*scope.sources, *names]
            problem = f"there is no table or column {parts[0]!r}{near(parts[0], names)}"
        else:
            problem = f"there is no column {parts[0]!r}{near(parts[0], names)}"
        self._refuse(column, "unknown-column", problem, _use_one_of(names), len(".".join(parts)))

    def _refuse(self, node: exp.Expr, condition: str, problem: str, remedy: str, length: int) -> NoReturn:
        raise node_error(self.query, node, condition, problem, remedy, length=length)


def _resolves(parts: list[str], scope: _Scope) -> bool:
    """Test whether a name means something in a scope: ``column``, ``table.column``, ``column.field`` and so on."""
    if parts[0] in scope.others:
        return True
    for alias, columns in scope.sources.items():
        qualified = parts[1:] if len(parts) > 1 and parts[0] == alias else parts[2:] if parts[1:2] == [alias] else []
        for names in (qualified, parts):
            if names and (columns is None or names[0] in {column.lower() for column in columns}):
                return True
    return False


def _own_tables(select: exp.Select) -> Iterator[exp.Table]:
    """The tables of FROM and the joins of a SELECT, not those of its subqueries."""
    for part in (select.args.get("from_"), *(select.args.get("joins") or [])):
        if part is not None:
            for table in part.find_all(exp.Table):
                if table.find_ancestor(exp.Select) is select:
                    yield table


def _outputs(select: exp.Select, scope: _Scope) -> Columns:
    found: list[str] = []
    for projection in select.expressions:
        if not projection.is_star:
            found.append(projection.alias_or_name or projection.sql(dialect="spark"))
            continue
        table = projection.table.lower() if isinstance(projection, exp.Column) else ""
        for alias, columns in scope.sources.items():
            if table in ("", alias):
                if columns is None:
                    return None
                found += columns
    return found


def _renamed(source: exp.Expr, columns: Columns) -> Columns:
    """The columns under the names that an alias gives them: ``AS t(a, b)``."""
    alias = source.args.get("alias")
    names = alias.args.get("columns") if isinstance(alias, exp.TableAlias) else None
    return [name.name for name in names] if names else columns


def _use_one_of(names: Collection[str]) -> str:
    shown = list(dict.fromkeys(names))
    more = f" … ({len(shown)} in all)" if len(shown) > _MOST_NAMES else ""
    return f"use one of {', '.join(shown[:_MOST_NAMES])}{more}" if shown else "correct the name"
