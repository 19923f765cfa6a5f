"""Taking the SELECT around a windowed stream apart: keys, aggregates, outputs."""

from __future__ import annotations

from typing import cast

from sqlglot import exp

from slackwater.language import Query
from slackwater.language.text import located
from slackwater.language.tree import tables_of
from slackwater.plan.aggregates import Aggregate, is_aggregate, take_apart
from slackwater.plan.names import quoted
from slackwater.plan.plan import Shape
from slackwater.plan.slotted import Slotted, slotted
from slackwater.plan.weighted import SHED_RATIO, corrected, error_of, is_corrected, shed_ratio

WINDOW_COLUMNS = ("window_start", "window_end")
_REFUSED = {
    "distinct": "SELECT DISTINCT",
    "order": "ORDER BY",
    "limit": "LIMIT",
    "offset": "OFFSET",
    "qualify": "QUALIFY",
    "windows": "WINDOW",
    "laterals": "LATERAL VIEW",
    "sort": "SORT BY",
    "cluster": "CLUSTER BY",
    "distribute": "DISTRIBUTE BY",
}


def take_shape(
    query: Query, table: exp.Table, attribute: str, weight: str | None = None
) -> tuple[tuple[Aggregate, ...], Shape | None]:
    """The aggregates of the SELECT that reads ``table``, and its shape; no shape without aggregates.

    ``weight`` is the column by which COUNT, SUM and AVG are corrected, where rows are shed.
    """
    index = next(i for i, other in enumerate(query.tables()) if other is table)
    whole = query.select.copy()
    copied = tables_of(whole)[index]
    select = cast(exp.Select, copied.find_ancestor(exp.Select))
    keys = _keys(select)
    judge = _having(select, keys)
    roots = [*select.expressions, *([judge] if judge is not None else [])]
    calls: list[exp.Expr] = []
    for root in roots:
        for call in _aggregate_calls(root, keys):
            if call not in calls:
                calls.append(call)
    if not calls:
        return (), None
    for call in calls:
        if call.find(exp.Distinct) and not take_apart(call, 0, "").mergeable:
            raise located(
                query.text,
                max(query.text.upper().find("DISTINCT"), 0),
                "not-in-a-stream",
                f"{call.sql(dialect='spark')} cannot be computed over a stream",
                "use COUNT(DISTINCT column) or COLLECT_SET",
                length=8,
            )
    for argument, words in _REFUSED.items():
        if select.args.get(argument):
            raise located(
                query.text,
                max(query.text.upper().find(words), 0),
                "not-in-a-stream",
                f"{words} cannot stand beside a window over an endless stream",
                "put the window in a subquery or leave it out",
                length=len(words),
            )
    alias = copied.alias or copied.name
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
        for projection in select.expressions:
            body = projection.this if isinstance(projection, exp.Alias) else projection
            if is_aggregate(body) and is_corrected(body):
                errors.append((f"{_output_name(projection)}_error", len(aggregates)))
                aggregates.append(error_of(body, len(aggregates), weighed or "1D"))
        errors.append((SHED_RATIO, len(aggregates)))
        aggregates.append(shed_ratio(len(aggregates), weighed or "1D"))
    names = [f"__sw_key_{number}" for number in range(len(keys))]
    modes = {
        "merged": [a.lower if a.mergeable else a.plain for a in aggregates],
        "plain": [a.plain for a in aggregates],
        "ordered": [f"aggregate_{number}" for number in range(len(aggregates))],
    }
    outputs: dict[str, list[tuple[str, str]]] = {mode: [] for mode in modes}
    for projection in select.expressions:
        if isinstance(projection, exp.Star):
            raise located(query.text, max(query.text.find("*"), 0), "star", "* cannot be aggregated", "name columns")
        body = projection.this if isinstance(projection, exp.Alias) else projection
        for mode, values in modes.items():
            carried = [] if mode == "plain" else names  # the plain route groups by the keys themselves
            outputs[mode].append((_output_name(projection), _rewrite(body, keys, carried, calls, values)))
    for mode, values in modes.items():
        outputs[mode] += [(name, values[number]) for name, number in errors]
    judged: dict[str, str | None] = {
        mode: _rewrite(judge, keys, [] if mode == "plain" else names, calls, values) if judge is not None else None
        for mode, values in modes.items()
    }
    shape = Shape(
        keys=tuple(str(key.sql(dialect="spark")) for key in keys),
        key_names=tuple(names),
        outputs=tuple(outputs["merged"]),
        plain_outputs=tuple(outputs["plain"]),
        ordered_outputs=tuple(outputs["ordered"]),
        having=judged["merged"],
        plain_having=judged["plain"],
        ordered_having=judged["ordered"],
        source=_source(select, copied, alias),
        alias=alias,
        outer=_outer(whole, select),
    )
    return tuple(aggregates), shape


def _having(select: exp.Select, keys: list[exp.Expr]) -> exp.Expr | None:
    """The condition behind HAVING, with the names of outputs replaced by what they stand for."""
    having = select.args.get("having")
    if having is None:
        return None
    named = {p.alias.lower(): p.this for p in select.expressions if isinstance(p, exp.Alias)}

    def spell_out(node: exp.Expr) -> exp.Expr:
        if isinstance(node, exp.Column) and not node.table and _key_number(node, keys) is None:
            body = named.get(node.name.lower())
            return exp.Paren(this=body.copy()) if body is not None else node
        return node

    return cast(exp.Expr, having.this.copy().transform(spell_out))


def _key_number(node: exp.Expr, keys: list[exp.Expr]) -> int | None:
    """Which key a node is; a column may leave out its table."""
    for number, key in enumerate(keys):
        if node == key:
            return number
        if isinstance(node, exp.Column) and isinstance(key, exp.Column) and node.name.lower() == key.name.lower():
            tables = {t.lower() for t in (node.table, key.table) if t}
            if len(tables) < 2:
                return number
    return None


def _output_name(projection: exp.Expr) -> str:
    """The name that Spark would give the column."""
    if isinstance(projection, exp.Alias | exp.Column):
        return str(projection.alias_or_name)
    bare = projection.copy()
    for name in bare.find_all(exp.Identifier):
        name.set("quoted", False)
    return str(bare.sql(dialect="spark", normalize_functions="lower"))


def _keys(select: exp.Select) -> list[exp.Expr]:
    """The group keys, with ordinals, aliases and ALL replaced by what they stand for; the window is always one."""
    group = select.args.get("group")
    projections = [(p.alias, p.this if isinstance(p, exp.Alias) else p) for p in select.expressions]
    if group is None:
        return []
    if group.args.get("all"):
        found = [body for _, body in projections if not any(is_aggregate(node) for node in body.walk())]
    else:
        found = []
        for key in group.expressions:
            if isinstance(key, exp.Literal) and not key.is_string:
                found.append(projections[int(key.name) - 1][1])
                continue
            by_alias = [body for alias, body in projections if alias and key == exp.column(alias)]
            found.append(by_alias[0] if by_alias else key)
    return [key for key in found if key.name.lower() not in WINDOW_COLUMNS]


def _aggregate_calls(root: exp.Expr, keys: list[exp.Expr]) -> list[exp.Expr]:
    """The aggregate calls below ``root``, outermost first, keys left out."""
    if _key_number(root, keys) is not None:
        return []
    if is_aggregate(root):
        return [root]
    found: list[exp.Expr] = []
    for child in root.iter_expressions():
        found += _aggregate_calls(child, keys)
    return found


def _rewrite(body: exp.Expr, keys: list[exp.Expr], names: list[str], calls: list[exp.Expr], values: list[str]) -> str:
    """``body`` with the columns that carry keys in the place of keys, and ``values`` in the place of aggregates."""

    def replace(node: exp.Expr) -> exp.Expr:
        number = _key_number(node, keys)
        if number is not None:
            return exp.column(names[number]) if names else node
        if node in calls:
            return exp.Paren(this=exp.Var(this=values[calls.index(node)]))
        for child in list(node.iter_expressions()):
            new = replace(child)
            if new is not child:
                child.replace(new)
        return node

    return str(replace(body.copy()).sql(dialect="spark"))


def _outer(whole: exp.Expr, select: exp.Select) -> Slotted | None:
    """The query around the SELECT, which has become a table."""
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
    for argument in ("with_", "from_", "joins", "where"):
        part = select.args.get(argument)
        if part:
            bare.set(argument, part)
    found = slotted(bare, stream)
    return Slotted(found.before.removeprefix("SELECT * "), found.behind)
