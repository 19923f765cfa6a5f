"""Taking the SELECT around a windowed stream apart: keys, aggregates, outputs."""

from __future__ import annotations

from collections.abc import Collection
from typing import cast

from sqlglot import exp

from slackwater.language import Query, spark_sql
from slackwater.language.text import located
from slackwater.language.tree import tables_of
from slackwater.names import quoted
from slackwater.plan.aggregates import Aggregate, column_of, take_apart
from slackwater.plan.ctes import write_out
from slackwater.plan.functions import is_aggregate
from slackwater.plan.grouping import keys_of
from slackwater.plan.plan import Shape
from slackwater.plan.rewriting import WINDOW_COLUMNS, aggregate_calls, loose_columns, rewritten, spelled_out
from slackwater.plan.slotted import Slotted, slotted
from slackwater.plan.text_positions import start_of
from slackwater.plan.unsupported import refuse_beside, refuse_calls
from slackwater.plan.weighted import SHED_RATIO, corrected, error_of, is_corrected, shed_ratio


def decompose_select(
    query: Query, table: exp.Table, attribute: str, weight: str | None = None, columns: Collection[str] = ()
) -> tuple[tuple[Aggregate, ...], Shape | None]:
    """The aggregates of the SELECT that reads ``table``, and its shape; no shape without aggregates.

    ``weight`` is the column by which COUNT, SUM and AVG are corrected, where rows are shed; ``columns`` are those that
    the stream is known to have.
    """
    index = next(i for i, other in enumerate(query.tables()) if other is table)
    copied = tables_of(query.select.copy())[index]
    select = cast(exp.Select, copied.find_ancestor(exp.Select))
    alias = copied.alias or copied.name
    write_out(query, [other for other in tables_of(select) if other is not copied])
    _unqualify(select, copied, alias)
    keys = keys_of(query, select, columns)
    outputs = _outputs(query, select, keys)
    judge = _having(select, outputs)
    bodies = [body for _, body in outputs]
    roots = bodies if judge is None else [*bodies, judge]
    calls: list[exp.Expr] = []
    for root in roots:
        for call in aggregate_calls(root, keys):
            if call not in calls:
                calls.append(call)
    if not calls:
        return (), None
    refuse_beside(query, select, copied)
    refuse_calls(query, roots, calls, shed=weight is not None)
    _refuse_loose(query, roots, keys, calls)
    qualified = f"{quoted(alias)}.{quoted(attribute)}" if attribute else ""
    weighed = None if weight is None else f"{quoted(alias)}.{quoted(weight)}"
    aggregates = [
        corrected(call, number, weighed)
        if weighed is not None and is_corrected(call)
        else take_apart(call, number, qualified)
        for number, call in enumerate(calls)
    ]
    errors: list[tuple[str, int]] = []
    if query.with_error:
        for name, body in outputs:
            if is_aggregate(body) and is_corrected(body):
                errors.append((f"{name}_error", len(aggregates)))
                aggregates.append(error_of(body, len(aggregates), weighed or "1D"))
        errors.append((SHED_RATIO, len(aggregates)))
        aggregates.append(shed_ratio(len(aggregates), weighed or "1D"))
    names = [f"__sw_key_{number}" for number in range(len(keys))]
    columns = [column_of(number) for number in range(len(aggregates))]
    said: list[tuple[tuple[str, str], ...]] = []
    judged: list[str | None] = []
    # Aggregates in columns of their own, and computed from rows at once, where the keys are there themselves
    for carried, values in ((names, columns), ([], [a.plain for a in aggregates])):
        found = [(name, rewritten(body, keys, carried, calls, values)) for name, body in outputs]
        said.append((*found, *((name, values[number]) for name, number in errors)))
        judged.append(None if judge is None else rewritten(judge, keys, carried, calls, values))
    shape = Shape(
        keys=tuple(spark_sql(key) for key in keys),
        key_names=tuple(names),
        outputs=said[0],
        plain_outputs=said[1],
        having=judged[0],
        plain_having=judged[1],
        hint="" if select.args.get("hint") is None else f"{spark_sql(select.args['hint']).strip()} ",
        source=_source(select, copied, alias),
        alias=alias,
        narrowed=bool(select.args.get("where") or select.args.get("joins")),
        outer=_outer(query, index),
    )
    return tuple(aggregates), shape


def around_rows(query: Query) -> Slotted:
    """The whole query as Spark's own, with a place for the stream under its promise.

    >>> from slackwater.language import parse
    >>> around_rows(parse("SELECT * FROM S [DRATIO 1%] TABLESAMPLE (10 PERCENT)")).filled("view")
    'SELECT * FROM view TABLESAMPLE (10 PERCENT) AS `S`'
    """
    whole = query.select.copy()
    table = Query(whole, query.windows).windowed()[0][0]
    alias = table.alias or table.name
    _unqualify(whole, table, alias, edges=False)
    if not table.alias:
        table.set("alias", exp.TableAlias(this=exp.to_identifier(alias, quoted=True)))
    return slotted(whole, table)


def _unqualify(select: exp.Query, table: exp.Table, alias: str, *, edges: bool = True) -> None:
    """Leave out what no longer says where a column is: the stream's database, and the stream before a window's edge."""
    for column in select.find_all(exp.Column):
        if column.table.lower() != alias.lower():
            continue
        if table.db and column.db.lower() == table.db.lower():
            column.set("db", None)
            column.set("catalog", None)
        if edges and column.name.lower() in WINDOW_COLUMNS:
            column.set("table", None)


def _outputs(query: Query, select: exp.Select, keys: list[exp.Expr]) -> list[tuple[str, exp.Expr]]:
    """Names and bodies of what is selected; the edges of the window come by themselves and are left out.

    A body may use the names of outputs before it, as in Spark.
    """
    found: list[tuple[str, exp.Expr]] = []
    named: dict[str, exp.Expr] = {}
    for projection in select.expressions:
        name, body = _output_name(projection), spelled_out(projection.unalias(), named, keys)
        if isinstance(projection, exp.Alias):
            named[name.lower()] = body
        if name.lower() not in WINDOW_COLUMNS:
            found.append((name, body))
        elif not isinstance(body, exp.Column) or body.name.lower() != name.lower():
            raise located(
                query.text,
                start_of(projection),
                "reserved-name",
                f"{name} is an edge of the window, and not {spark_sql(body)}",
                "choose another name",
            )
    return found


def _having(select: exp.Select, outputs: list[tuple[str, exp.Expr]]) -> exp.Expr | None:
    """The condition behind HAVING, with the names of outputs replaced by what they stand for; they go before keys."""
    having = select.args.get("having")
    if having is None:
        return None
    aliases = {p.alias.lower() for p in select.expressions if isinstance(p, exp.Alias)}
    return spelled_out(having.this, {name.lower(): body for name, body in outputs if name.lower() in aliases}, [])


def _output_name(projection: exp.Expr) -> str:
    """The name that Spark would give the column."""
    if isinstance(projection, exp.Alias | exp.Column):
        return str(projection.alias_or_name)
    bare = projection.copy()
    for name in bare.find_all(exp.Identifier):
        name.set("quoted", False)
    return spark_sql(bare, functions="lower")


def _refuse_loose(query: Query, roots: list[exp.Expr], keys: list[exp.Expr], calls: list[exp.Expr]) -> None:
    for root in roots:
        for column in loose_columns(root, keys, calls):
            said = spark_sql(column)
            if column.is_star:
                raise located(
                    query.text,
                    start_of(column),
                    "star",
                    f"{said} cannot be aggregated",
                    "name columns",
                    length=len(said),
                )
            raise located(
                query.text,
                start_of(column),
                "not-grouped",
                f"{said} is neither grouped by nor aggregated",
                "add it to GROUP BY, or say which of a window's values is meant: LAST, MAX, ANY_VALUE …",
                length=len(said),
            )


def _outer(query: Query, index: int) -> Slotted | None:
    """The query around the SELECT, which has become a table."""
    whole = query.select.copy()
    select = cast(exp.Select, tables_of(whole)[index].find_ancestor(exp.Select))
    if select is whole:
        return None
    result = exp.to_table("result")
    select.replace(exp.select("*").from_(result, copy=False))
    return slotted(whole, result)


def _source(select: exp.Select, table: exp.Table, alias: str) -> Slotted:
    """FROM, joins and WHERE of the SELECT, with a place for the stream."""
    stream = cast(exp.Table, exp.alias_(exp.to_table("stream"), alias, table=True, quoted=True))
    table.replace(stream)
    bare = exp.Select(expressions=[exp.Star()])
    for argument in ("from_", "joins", "where"):
        part = select.args.get(argument)
        if part:
            bare.set(argument, part)
    found = slotted(bare, stream)
    return Slotted(found.before.removeprefix("SELECT * "), found.behind)
