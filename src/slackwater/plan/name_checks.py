"""Finds names in a query that mean nothing: tables, columns and functions that do not exist, with the nearest name."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NoReturn, cast

from sqlglot import exp

from slackwater.errors import QueryTextError
from slackwater.language import Query, spark_sql
from slackwater.language.plain_calls import with_plain_calls
from slackwater.names import near
from slackwater.plan.catalog import Catalog
from slackwater.plan.rewriting import SHED_WEIGHT, WINDOW_COLUMNS, aggregate_calls, ungrouped_columns
from slackwater.plan.select_checks import SelectCheck
from slackwater.plan.spark_functions import SPARK_FUNCTIONS
from slackwater.plan.sql_types import NAMES, UNKNOWN, StructClass, pair
from slackwater.plan.text_positions import node_error
from slackwater.plan.type_checks import TypeCheck

_MOST_NAMES = 12
_WITH_FIELDS = "rma" + UNKNOWN
_CONDITIONS = {"where": "WHERE", "having": "HAVING", "joins": "ON"}
_TIME_CALLS = {"WINDOW": "window", "SESSION_WINDOW": "session_window"}

Columns = list[tuple[str, str]] | None
"""Name and type class of the columns of a table or a query; None if they are not known."""


@dataclass
class _Scope:
    """The names that a SELECT can use: the columns of its sources by their alias, and other names; in lower case."""

    parent: _Scope | None
    sources: dict[str, Columns] = field(default_factory=dict)
    others: set[str] = field(default_factory=set)
    shared: set[str] = field(default_factory=set)  # columns of USING
    merged: bool = False  # by NATURAL JOIN and the like, so that it is not known whose a column is


def check_names(query: Query, catalog: Catalog, has_function: Callable[[str], bool] | None = None) -> None:
    """Refuse a table that is not in the catalog, a column that no table has, and a function that Spark does not have;
    also calls and operators with types that Spark does not take, and columns that Spark could not tell apart.

    ``has_function`` tells of functions besides Spark's own, such as those of a session.
    """
    plain = with_plain_calls(query)
    _NameCheck(plain or query, catalog, has_function or (lambda _: False)).check()


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
        self.types, self.selects = TypeCheck(query), SelectCheck(query)
        self.classes: dict[int, str] = {}

    def check(self) -> None:
        for call in self.query.select.find_all(exp.Anonymous):
            if call.find_ancestor(exp.Hint) is None:
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
            self.selects.check_names_given(cte, columns)
            named[cte.alias.lower()] = _renamed(cte, columns)
        if isinstance(node, exp.Subquery):
            return self._columns_of(node.this, parent, named)
        if isinstance(node, exp.SetOperation):
            columns = self._columns_of(node.left, parent, named)
            self._check_same_columns(node, columns, self._columns_of(node.right, parent, named))
            return columns
        return self._columns_of_select(node, parent, named) if isinstance(node, exp.Select) else None

    def _columns_of_select(self, select: exp.Select, parent: _Scope | None, ctes: Mapping[str, Columns]) -> Columns:
        scope, windowed = _Scope(parent), False
        joins = select.args.get("joins") or []
        scope.shared = {name.name.lower() for join in joins for name in join.args.get("using") or []}
        scope.merged = any(join.method.upper() == "NATURAL" or join.kind in ("SEMI", "ANTI") for join in joins)
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
        scope.others |= set(WINDOW_COLUMNS) if windowed else set()
        for call in select.find_all(exp.Anonymous, exp.Func):
            called = call.name if isinstance(call, exp.Anonymous) else call.sql_name()
            if called.upper() in _TIME_CALLS:
                scope.others.add(_TIME_CALLS[called.upper()])
        self.selects.check(select, [(alias, columns) for alias, columns in scope.sources.items()])
        aliases = {projection.alias.lower() for projection in select.expressions if projection.alias}
        named = replace(scope, others=scope.others | aliases)
        for name, part in select.args.items():
            for root in part if isinstance(part, list) else [part]:
                if isinstance(root, exp.Expr) and name not in ("from_", "with_", "laterals", "hint"):
                    checked = root.args.get("on") if name == "joins" else root
                    names = scope if name in ("where", "joins") else named
                    self.classes[id(root)] = self._class_of(checked, names, ctes, frozenset())
                    self.classes[id(checked)] = self.classes[id(root)]
                    if name in _CONDITIONS and isinstance(checked, exp.Expr):
                        self._check_condition(checked if name == "joins" else checked.this, _CONDITIONS[name])
        self._check_groups(select, named, windowed)
        columns = _outputs(select, scope, self.classes)
        if columns is None or not windowed:
            return columns
        given = {column.lower() for column, _ in columns}
        return [*((edge, "t") for edge in WINDOW_COLUMNS if edge not in given), *columns]

    def _check_condition(self, condition: exp.Expr, clause: str) -> None:
        """Refuse WHERE, ON and HAVING that are no condition, and aggregates where rows are not grouped yet."""
        self.types.require_condition(condition, lambda part: self.classes.get(id(part), UNKNOWN), clause)
        calls = aggregate_calls(condition, []) if clause != "HAVING" else []
        if calls:
            problem = f"{spark_sql(calls[0])} is an aggregate in {clause}"
            remedy = "move it to HAVING, or aggregate in a subquery"
            self._refuse(calls[0], "misplaced-aggregate", problem, remedy, len(spark_sql(calls[0])))

    def _check_groups(self, select: exp.Select, scope: _Scope, windowed: bool) -> None:
        """Refuse columns that are neither grouped nor aggregated; the planner does it for SELECTs with a window."""
        group = select.args.get("group")
        calls = [call for projection in select.expressions for call in aggregate_calls(projection, [])]
        calls = [call for call in calls if not isinstance(call.parent, exp.Window)]
        if (
            windowed
            or (group is None and not calls and select.args.get("having") is None)
            or (group is not None and _is_set(group))
        ):
            return
        keys = [self._key(select, key) for key in (group.expressions if group is not None else [])]
        for key in keys:
            for call in aggregate_calls(key, []):
                problem = f"{spark_sql(call)} is an aggregate in GROUP BY"
                self._refuse(call, "misplaced-aggregate", problem, "group by columns", len(spark_sql(call)))
        for projection in select.expressions:
            for column in ungrouped_columns(projection.unalias(), keys, calls):
                if column.is_star or (isinstance(column, exp.Column) and column.parts[0].name.lower() in scope.others):
                    continue
                problem = f"{spark_sql(column)} is neither grouped by nor aggregated"
                self._refuse(column, "not-grouped", problem, "add it to GROUP BY", len(spark_sql(column)))

    def _key(self, select: exp.Select, key: exp.Expr) -> exp.Expr:
        """A group key; a number or the name of an output is replaced by the selected expression."""
        if isinstance(key, exp.Literal) and key.is_int and not any(p.is_star for p in select.expressions):
            if 1 <= int(key.name) <= len(select.expressions):
                return cast(exp.Expr, select.expressions[int(key.name) - 1].unalias())
            problem = f"GROUP BY {key.name} is not the number of a selected column"
            self._refuse(key, "wrong-group", problem, f"there are {len(select.expressions)}", len(key.name))
        if isinstance(key, exp.Column) and not key.table:
            named = (p.unalias() for p in select.expressions if p.alias and p.alias.lower() == key.name.lower())
            return cast(exp.Expr, next(named, key))
        return key

    def _check_same_columns(self, node: exp.SetOperation, left: Columns, right: Columns) -> None:
        if left is None or right is None or node.args.get("by_name"):
            return
        word = node.key.upper()
        if len(left) != len(right):
            problem = f"one side of {word} has {len(left)} columns, the other {len(right)}"
            self._refuse(node.right, "different-columns", problem, "select as many columns on both sides", 6)
        for (name, first), (_, second) in zip(left, right, strict=True):
            if pair("case", first, second) is None:
                problem = f"{name} is of type {NAMES[first]} on one side of {word} and {NAMES[second]} on the other"
                self._refuse(node.right, "wrong-type", problem, "cast one of them", 6)

    def _add_source(self, scope: _Scope, source: exp.Expr, ctes: Mapping[str, Columns]) -> None:
        alias = source.alias or (source.name if isinstance(source, exp.Table) else "") or f"source {len(scope.sources)}"
        if isinstance(source, exp.Table) and isinstance(source.this, exp.Identifier) and not source.args.get("pivots"):
            columns = self._columns_of_table(source, ctes)
        elif isinstance(source, exp.Subquery) and not source.args.get("pivots"):
            columns = self._columns_of(source, scope.parent, ctes)
        else:
            columns = None
        self.selects.check_names_given(source, columns)
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
        columns = [(name, known.types.get(name, UNKNOWN)) for name in known.columns]
        return [*columns, (SHED_WEIGHT, "d")] if sheds else columns

    def _class_of(
        self, root: exp.Expr | None, scope: _Scope, ctes: Mapping[str, Columns], bound: frozenset[str]
    ) -> str:
        """Check an expression, and return the class of its type."""
        if root is None or isinstance(root, exp.Star):
            return UNKNOWN
        if isinstance(root, exp.Query):
            return self._class_of_query(root, self._columns_of(root, scope, ctes))
        if isinstance(root, exp.Column):
            return self._class_of_column(root, scope, bound)
        if isinstance(root, exp.Lambda):
            bound |= {parameter.name.lower() for parameter in root.expressions}
        for child in root.iter_expressions():
            self.classes[id(child)] = self._class_of(child, scope, ctes, bound)
        return self.types.class_of(root, lambda part: self.classes.get(id(part), UNKNOWN))

    def _class_of_query(self, node: exp.Expr, columns: Columns) -> str:
        """The class of a query's only column; refuses a query that is a value and has several."""
        if columns is None:
            return UNKNOWN
        is_value = not isinstance(node.parent, exp.Exists | exp.Any | exp.All)
        if (
            len(columns) > 1
            and is_value
            and not (isinstance(node.parent, exp.In) and isinstance(node.parent.this, exp.Tuple))
        ):
            problem = f"a query that is a value has one column, and this one has {len(columns)}"
            self._refuse(node, "subquery-columns", problem, "select one column", 1)
        return columns[0][1] if columns else UNKNOWN

    def _class_of_column(self, column: exp.Column, scope: _Scope, bound: frozenset[str]) -> str:
        parts = [part.name for part in column.parts]
        lowered = [part.lower() for part in parts]
        if lowered[0] in bound or column.is_star:
            return UNKNOWN
        around: _Scope | None = scope
        while around is not None:
            found = _resolve(lowered, around)
            if found is not None and len(found) > 1:
                self._refuse_ambiguous(column, found)
            if found is not None:
                return found[0][1]
            around = around.parent
        raise self._unknown_column(column, parts, scope)

    def _unknown_column(self, column: exp.Column, parts: list[str], scope: _Scope) -> QueryTextError:
        names = [name for columns in scope.sources.values() for name, _ in columns or []]
        first = parts[0].lower()
        if len(parts) > 1 and first in scope.sources:
            names = [name for name, _ in scope.sources[first] or []]
            problem = f"{parts[0]} has no column {parts[1]!r}{near(parts[1], names)}"
        elif len(parts) > 1 and first in map(str.lower, names):
            problem = f"{parts[0]} has no field {parts[1]!r}"
        elif len(parts) > 1:
            names = [*scope.sources, *names]
            problem = f"there is no table or column {parts[0]!r}{near(parts[0], names)}"
        else:
            problem = f"there is no column {parts[0]!r}{near(parts[0], names)}"
        length = len(".".join(parts))
        return node_error(self.query, column, "unknown-column", problem, _use_one_of(names), length=length)

    def _refuse_ambiguous(self, column: exp.Column, found: list[tuple[str, str]]) -> NoReturn:
        tables = [table for table, _ in found]
        problem = f"{column.name} is a column of {' and of '.join(tables)}"
        remedy = f"write {tables[0]}.{column.name}"
        self._refuse(column, "ambiguous-column", problem, remedy, len(column.name))

    def _refuse(self, node: exp.Expr, condition: str, problem: str, remedy: str, length: int) -> NoReturn:
        raise node_error(self.query, node, condition, problem, remedy, length=length)


def _resolve(parts: list[str], scope: _Scope) -> list[tuple[str, str]] | None:
    """The tables that a name may belong to, each with the class of its type; None if the name means nothing here.

    A name is ``column``, ``table.column``, ``column.field`` and so on.
    """
    found = []
    for alias, columns in scope.sources.items():
        qualified = parts[1:] if len(parts) > 1 and parts[0] == alias else parts[2:] if parts[1:2] == [alias] else []
        for names in (qualified, parts):
            if names and columns is None:
                return [(alias, UNKNOWN)]
            classes = [letter for column, letter in columns or [] if names and names[0] == column.lower()]
            classes = [inner for letter in classes if (inner := _field(letter, names[1:])) is not None]
            if classes:
                found.append((alias, classes[0] if len(classes) == 1 else UNKNOWN))
                break
    if parts[0] in scope.others:
        return [(parts[0], UNKNOWN)] if len(found) != 1 else found
    if len(found) > 1 and (len(parts) > 1 or scope.merged or parts[0] in scope.shared):
        found = found[:1]
    return found or None


def _field(letter: str, names: Sequence[str]) -> str | None:
    """The class of ``a.b.c`` from that of ``a`` and the names b and c; None if there is no such field."""
    for name in names:
        if letter not in _WITH_FIELDS:
            return None
        letter = letter.fields.get(name, "") if isinstance(letter, StructClass) else UNKNOWN
    return letter or None


def _own_tables(select: exp.Select) -> Iterator[exp.Table]:
    """The tables of FROM and the joins of a SELECT, not those of its subqueries."""
    for part in (select.args.get("from_"), *(select.args.get("joins") or [])):
        if part is not None:
            for table in part.find_all(exp.Table):
                if table.find_ancestor(exp.Select) is select:
                    yield table


def _outputs(select: exp.Select, scope: _Scope, classes: Mapping[int, str]) -> Columns:
    found: list[tuple[str, str]] = []
    for projection in select.expressions:
        if not projection.is_star:
            name = projection.alias_or_name or spark_sql(projection)
            found.append((name, classes.get(id(projection), UNKNOWN)))
            continue
        table = projection.table.lower() if isinstance(projection, exp.Column) else ""
        for alias, columns in scope.sources.items():
            if table in ("", alias):
                if columns is None:
                    return None
                found += columns
        if not table and (scope.shared or scope.merged):
            return None
    return found


def _is_set(group: exp.Group) -> bool:
    """Whether GROUP BY is ALL, CUBE and the like."""
    return any(value for name, value in group.args.items() if name != "expressions")


def _renamed(source: exp.Expr, columns: Columns) -> Columns:
    """The columns under the names that an alias gives them: ``AS t(a, b)``."""
    alias = source.args.get("alias")
    names = alias.args.get("columns") if isinstance(alias, exp.TableAlias) else None
    if not names:
        return columns
    classes = [letter for _, letter in columns or []]
    known = len(classes) == len(names)
    return [(name.name, classes[place] if known else UNKNOWN) for place, name in enumerate(names)]


def _use_one_of(names: Collection[str]) -> str:
    shown = list(dict.fromkeys(names))
    more = f" … ({len(shown)} in all)" if len(shown) > _MOST_NAMES else ""
    return f"use one of {', '.join(shown[:_MOST_NAMES])}{more}" if shown else "correct the name"
