"""Expressions of a SELECT, rewritten: names spelled out, keys and aggregates replaced by what carries them.

A query within the query is left alone: its aggregates, its names and its columns are its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from sqlglot import exp

from slackwater.language import spark_sql
from slackwater.plan.functions import is_aggregate

WINDOW_COLUMNS = ("window_start", "window_end")


def key_number(node: exp.Expr, keys: list[exp.Expr]) -> int | None:
    """Which key a node is; a column may leave out its table."""
    for number, key in enumerate(keys):
        if type(node) is type(key) and _folded(node) == _folded(key):
            return number
        if isinstance(node, exp.Column) and isinstance(key, exp.Column) and node.name.lower() == key.name.lower():
            tables = {t.lower() for t in (node.table, key.table) if t}
            if len(tables) < 2:
                return number
    return None


def key_field(node: exp.Expr, keys: list[exp.Expr]) -> tuple[int, list[exp.Expr]] | None:
    """Of which key a column is a field, and by which names: ``payload.kind`` where ``payload`` is a key."""
    if not isinstance(node, exp.Column):
        return None
    parts = [part.name.lower() for part in node.parts]
    for number, key in enumerate(keys):
        whole = [part.name.lower() for part in key.parts] if isinstance(key, exp.Column) else []
        for said in (whole, whole[-1:]):
            if said and len(parts) > len(said) and parts[: len(said)] == said:
                return number, node.parts[len(said) :]
    return None


def aggregate_calls(root: exp.Expr, keys: list[exp.Expr]) -> list[exp.Expr]:
    """The aggregate calls below ``root``, outermost first, keys left out."""
    if key_number(root, keys) is not None:
        return []
    if is_aggregate(root):
        return [root]
    return [call for child in _own(root) for call in aggregate_calls(child, keys)]


def spelled_out(body: exp.Expr, named: Mapping[str, exp.Expr], keys: list[exp.Expr]) -> exp.Expr:
    """``body`` with the names of outputs replaced by what they stand for.

    Keys go first. Within an aggregate a name is a column of the input, as in Spark.
    """

    def spell(node: exp.Expr) -> exp.Expr | None:
        if key_number(node, keys) is not None or is_aggregate(node):
            return node
        if isinstance(node, exp.Column) and not node.table and node.name.lower() in named:
            return exp.Paren(this=named[node.name.lower()].copy())
        return None

    return _replaced(body.copy(), spell)


def rewritten(body: exp.Expr, keys: list[exp.Expr], names: list[str], calls: list[exp.Expr], values: list[str]) -> str:
    """``body`` with the columns that carry keys in the place of keys, and ``values`` in the place of aggregates."""

    def carry(node: exp.Expr) -> exp.Expr | None:
        number = key_number(node, keys)
        if number is not None:
            return exp.column(names[number]) if names else node
        field = key_field(node, keys)
        if field is not None:
            inner = [part.copy() for part in field[1]]
            return exp.Dot.build([exp.column(names[field[0]]), *inner]) if names else node
        if node in calls:
            return exp.Paren(this=exp.Var(this=values[calls.index(node)]))
        return None

    return spark_sql(_replaced(body.copy(), carry))


def loose_columns(
    body: exp.Expr, keys: list[exp.Expr], calls: list[exp.Expr], bound: frozenset[str] = frozenset()
) -> Iterator[exp.Expr]:
    """The columns of ``body`` that are neither keys nor aggregated: nothing says which row's value is meant.

    ``bound`` are the names that a function within the expression (``x -> x + 1``) gives.
    """
    if key_number(body, keys) is not None or key_field(body, keys) is not None or body in calls:
        return
    if isinstance(body, exp.Star):
        yield body
    if isinstance(body, exp.Column):
        first = body.parts[0].name.lower()
        if body.name.lower() not in WINDOW_COLUMNS and first not in bound:
            yield body
        return
    if isinstance(body, exp.Lambda):
        bound |= {name.name.lower() for name in body.expressions}
    for child in _own(body):
        yield from loose_columns(child, keys, calls, bound)


def _folded(node: exp.Expr) -> exp.Expr:
    """The same in lower case and without quotes, in which names do not differ in Spark."""
    copy = node.copy()
    for name in copy.find_all(exp.Identifier):
        name.replace(exp.to_identifier(name.name.lower(), quoted=False))
    return copy


def _own(node: exp.Expr) -> Iterator[exp.Expr]:
    """What a node holds, but for queries within the query."""
    return (child for child in node.iter_expressions() if not isinstance(child, exp.Query))


def _replaced(node: exp.Expr, new: Callable[[exp.Expr], exp.Expr | None]) -> exp.Expr:
    """A tree in which ``new`` has replaced what it knows, outermost first."""
    found = new(node)
    if found is not None:
        return found
    for child in list(_own(node)):
        other = _replaced(child, new)
        if other is not child:
            child.replace(other)
    return node
