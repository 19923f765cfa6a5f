"""Decomposes the SELECT that reads the windowed stream: keys, aggregates, outputs, source, outer query."""

from __future__ import annotations

from collections.abc import Collection
from typing import cast

from sqlglot import exp

from slackwater.language import Query, spark_sql
from slackwater.language.tree import tables_of
from slackwater.names import quoted
from slackwater.plan.aggregates import Aggregate, column_of, decompose_aggregate
from slackwater.plan.ctes import inline_ctes
from slackwater.plan.functions import is_aggregate
from slackwater.plan.grouping import group_keys
from slackwater.plan.name_checks import unknown_call
from slackwater.plan.outer_query import finish_outer
from slackwater.plan.plan import Shape
from slackwater.plan.rewriting import (
    WINDOW_COLUMNS,
    aggregate_calls,
    key_index,
    replace_keys_and_calls,
    replace_output_names,
    ungrouped_columns,
)
from slackwater.plan.sql_template import SqlTemplate, make_template, name_slots, split_at_slots
from slackwater.plan.text_positions import node_error
from slackwater.plan.unsupported import refuse_calls, refuse_clauses
from slackwater.plan.weighted_aggregates import (
    SHED_RATIO,
    is_estimated,
    shed_ratio,
    standard_error,
    weighted_estimate,
)


def decompose_select(
    query: Query,
    table: exp.Table,
    attribute: str,
    weight: str | None = None,
    columns: Collection[str] = (),
    *,
    per_window: bool = False,
) -> tuple[tuple[Aggregate, ...], Shape | None]:
    """Return the aggregates and the shape of the SELECT that reads ``table``; no shape without aggregates.

    ``attribute`` is the windowing attribute. ``weight`` is the column that corrects COUNT, SUM and AVG if rows may be
    shed. ``columns`` are the known columns of the stream. ``per_window``: results come per window and not per row,
    so that those of SELECT DISTINCT are its groups, and the end of the window is an event time.
    """
    index = next(i for i, other in enumerate(query.tables()) if other is table)
    table = tables_of(query.select.copy())[index]
    select = cast(exp.Select, table.find_ancestor(exp.Select))
    alias = table.alias or table.name
    inline_ctes(query, [other for other in tables_of(select) if other is not table])
    remove_qualifiers(select, table, alias)
    keys = group_keys(query, select, columns)
    outputs = _outputs(query, select, keys)
    having = _having(select, outputs)
    roots = [body for _, body in outputs] + ([] if having is None else [having])
    calls = _distinct_calls(roots, keys)
    if select.args.get("distinct") and per_window:
        keys = _keys_of_distinct(query, select, keys, outputs, calls)
    if not calls and (keys or select.args.get("group")):
        calls = [exp.Count(this=exp.Star())]  # the groups themselves are the result
    if not calls:
        return (), None
    refuse_clauses(query, select, table)
    refuse_calls(query, roots, calls, shed=weight is not None)
    _refuse_ungrouped(query, roots, keys, calls)
    qualified_weight = None if weight is None else f"{quoted(alias)}.{quoted(weight)}"
    aggregates = _aggregates(calls, f"{quoted(alias)}.{quoted(attribute)}" if attribute else "", qualified_weight)
    errors = _error_aggregates(outputs, len(aggregates), qualified_weight or "1D") if query.with_error else []
    aggregates += [aggregate for _, aggregate in errors]
    error_names = [name for name, _ in errors]

    def rewrite(key_names: list[str], values: list[str]) -> tuple[tuple[tuple[str, str], ...], str | None]:
        """Express the outputs and HAVING by columns of keys and by one value per aggregate."""
        bodies = [(name, replace_keys_and_calls(body, keys, key_names, calls, values)) for name, body in outputs]
        bodies += zip(error_names, values[len(calls) :], strict=True)
        condition = None if having is None else replace_keys_and_calls(having, keys, key_names, calls, values)
        return tuple(bodies), condition

    key_names = [f"__sw_key_{number}" for number in range(len(keys))]
    merged_outputs, merged_having = rewrite(key_names, [column_of(number) for number in range(len(aggregates))])
    plain_outputs, plain_having = rewrite([], [aggregate.plain for aggregate in aggregates])
    shape = Shape(
        keys=tuple(spark_sql(key) for key in keys),
        key_names=tuple(key_names),
        outputs=merged_outputs,
        plain_outputs=plain_outputs,
        having=merged_having,
        plain_having=plain_having,
        hint="" if select.args.get("hint") is None else f"{spark_sql(select.args['hint']).strip()} ",
        source=_source(select, table, alias),
        alias=alias,
        narrowed=bool(select.args.get("where") or select.args.get("joins")),
        outer=_outer(query, index, windows_are_times=per_window),
    )
    return tuple(aggregates), shape


def template_without_window(query: Query, time: str | None = None) -> SqlTemplate:
    """Return the whole query with a placeholder for the stream, for a query without a window.

    ``time`` is the event-time column of the stream, by which Spark can aggregate it; None if it is not known.

    >>> from slackwater.language import parse
    >>> template_without_window(parse("SELECT * FROM S [DRATIO 1%] TABLESAMPLE (10 PERCENT)")).fill("view")
    'SELECT * FROM view TABLESAMPLE (10 PERCENT) AS `S`'
    """
    whole = query.select.copy()
    table = Query(whole, query.windows).windowed()[0][0]
    name_stream(whole, table)
    slot = name_slots(whole, [table])
    return split_at_slots(finish_outer(query, whole, [table], [time]), slot)


def name_stream(whole: exp.Query, table: exp.Table) -> str:
    """Give the stream an alias, by which the query can name its columns whatever the stream becomes; return it."""
    alias = table.alias or table.name
    remove_qualifiers(whole, table, alias, window_columns=False)
    if not table.alias:
        table.set("alias", exp.TableAlias(this=exp.to_identifier(alias, quoted=True)))
    return alias


def remove_qualifiers(select: exp.Query, table: exp.Table, alias: str, *, window_columns: bool = True) -> None:
    """Remove the stream's database from its columns, and the stream's name from the window's columns."""
    for column in select.find_all(exp.Column):
        if column.table.lower() != alias.lower():
            continue
        if table.db and column.db.lower() == table.db.lower():
            column.set("db", None)
            column.set("catalog", None)
        if window_columns and column.name.lower() in WINDOW_COLUMNS:
            column.set("table", None)


def _outputs(query: Query, select: exp.Select, keys: list[exp.Expr]) -> list[tuple[str, exp.Expr]]:
    """Return name and body of each selected column, without ``window_start`` and ``window_end``.

    As in Spark, a body may use the names of outputs before it.
    """
    found: list[tuple[str, exp.Expr]] = []
    named: dict[str, exp.Expr] = {}
    for projection in select.expressions:
        name, body = _output_name(projection), replace_output_names(projection.unalias(), named, keys)
        if isinstance(projection, exp.Alias):
            named[name.lower()] = body
        if name.lower() not in WINDOW_COLUMNS:
            found.append((name, body))
        elif not isinstance(body, exp.Column) or body.name.lower() != name.lower():
            problem = f"{name} is a column of the window and cannot name {spark_sql(body)}"
            raise node_error(query, projection, "reserved-name", problem, "choose another name")
    return found


def _output_name(projection: exp.Expr) -> str:
    """Return the name that Spark would give the column."""
    if isinstance(projection, exp.Alias | exp.Column):
        return str(projection.alias_or_name)
    bare = projection.copy()
    for name in bare.find_all(exp.Identifier):
        name.set("quoted", False)
    return spark_sql(bare, functions="lower")


def _having(select: exp.Select, outputs: list[tuple[str, exp.Expr]]) -> exp.Expr | None:
    """Return the condition of HAVING, with names of outputs replaced; here they take precedence over keys."""
    having = select.args.get("having")
    if having is None:
        return None
    aliases = {p.alias.lower() for p in select.expressions if isinstance(p, exp.Alias)}
    named = {name.lower(): body for name, body in outputs if name.lower() in aliases}
    return replace_output_names(having.this, named, [])


def _distinct_calls(roots: list[exp.Expr], keys: list[exp.Expr]) -> list[exp.Expr]:
    """Return the aggregate calls in ``roots``, each once."""
    calls: list[exp.Expr] = []
    for root in roots:
        for call in aggregate_calls(root, keys):
            if call not in calls:
                calls.append(call)
    return calls


def _keys_of_distinct(
    query: Query, select: exp.Select, keys: list[exp.Expr], outputs: list[tuple[str, exp.Expr]], calls: list[exp.Expr]
) -> list[exp.Expr]:
    """Return the keys of SELECT DISTINCT, and remove DISTINCT where the groups of a window are distinct anyway."""
    bodies = [body for _, body in outputs]
    star = next((body for body in bodies if body.is_star), None)
    if star is not None:
        raise node_error(query, star, "star", "SELECT DISTINCT * has no keys", "name the columns")
    if not keys and not calls:
        keys = bodies
    if all(key_index(key, bodies) is not None for key in keys):
        select.set("distinct", None)
    return keys


def _aggregates(calls: list[exp.Expr], attribute: str, weight: str | None) -> list[Aggregate]:
    return [
        weighted_estimate(call, number, weight)
        if weight is not None and is_estimated(call)
        else decompose_aggregate(call, number, attribute)
        for number, call in enumerate(calls)
    ]


def _error_aggregates(outputs: list[tuple[str, exp.Expr]], first: int, weight: str) -> list[tuple[str, Aggregate]]:
    """Return the columns that WITH ERROR adds, with their aggregates, numbered from ``first``."""
    estimated = [(name, body) for name, body in outputs if is_aggregate(body) and is_estimated(body)]
    found = [(f"{name}_error", standard_error(body, first + i, weight)) for i, (name, body) in enumerate(estimated)]
    return [*found, (SHED_RATIO, shed_ratio(first + len(found), weight))]


def _refuse_ungrouped(query: Query, roots: list[exp.Expr], keys: list[exp.Expr], calls: list[exp.Expr]) -> None:
    for root in roots:
        for column in ungrouped_columns(root, keys, calls):
            sql = spark_sql(column)
            if column.is_star:
                condition, problem, remedy = "star", f"{sql} cannot be aggregated", "name the columns"
            else:
                condition, problem = "not-grouped", f"{sql} is neither grouped by nor aggregated{unknown_call(query)}"
                remedy = "add it to GROUP BY, or choose a value of the window with LAST, MAX or ANY_VALUE"
            raise node_error(query, column, condition, problem, remedy, length=len(sql))


def _outer(query: Query, index: int, *, windows_are_times: bool) -> SqlTemplate | None:
    """Return the query around the SELECT that reads table ``index``, with a placeholder for the result."""
    whole = query.select.copy()
    select = cast(exp.Select, tables_of(whole)[index].find_ancestor(exp.Select))
    if select is whole:
        return None
    result = exp.to_table("result")
    select.replace(exp.select("*").from_(result, copy=False))
    slot = name_slots(whole, [result])
    return split_at_slots(finish_outer(query, whole, [result], windows_are_times=windows_are_times), slot)


def _source(select: exp.Select, table: exp.Table, alias: str) -> SqlTemplate:
    """Return FROM, joins and WHERE of the SELECT, with a placeholder for the stream."""
    stream = cast(exp.Table, exp.alias_(exp.to_table("stream"), alias, table=True, quoted=True))
    table.replace(stream)
    bare = exp.Select(expressions=[exp.Star()])
    for argument in ("from_", "joins", "where"):
        part = select.args.get(argument)
        if part:
            bare.set(argument, part)
    return make_template(bare, stream).removeprefix("SELECT * ")
