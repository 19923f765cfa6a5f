"""Rewrites expressions of a SELECT: replaces names of outputs, group keys and aggregates.

Subqueries are not rewritten. Their names, columns and aggregates are their own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from sqlglot import exp

from slackwater.language import spark_sql
from slackwater.plan.functions import is_aggregate

SHED_WEIGHT = "shed_weight"
"""The column that DELAY adds: how many rows a kept row stands for."""
WINDOW_COLUMNS = ("window_start", "window_end")


def key_index(node: exp.Expr, keys: list[exp.Expr]) -> int | None:
    """Return the index of the key that equals the node, or None. A column may omit its table."""
    for index, key in enumerate(keys):
        if type(node) is type(key) and _normalized(node) == _normalized(key):
            return index
        if isinstance(node, exp.Column) and isinstance(key, exp.Column) and node.name.lower() == key.name.lower():
            tables = {t.lower() for t in (node.table, key.table) if t}
            if len(tables) < 2:
                return index
    return None


def key_field(node: exp.Expr, keys: list[exp.Expr]) -> tuple[int, list[exp.Expr]] | None:
    """Return the index of the key that a column is a field of, and the path of the field, or None.

    If ``payload`` is a key, ``payload.kind`` is a field of it.
    """
    if not isinstance(node, exp.Column):
        return None
    parts = [part.name.lower() for part in node.parts]
    for index, key in enumerate(keys):
        whole = [part.name.lower() for part in key.parts] if isinstance(key, exp.Column) else []
        for prefix in (whole, whole[-1:]):
            if prefix and len(parts) > len(prefix) and parts[: len(prefix)] == prefix:
                return index, node.parts[len(prefix) :]
    return None


def aggregate_calls(root: exp.Expr, keys: list[exp.Expr]) -> list[exp.Expr]:
    """Return the outermost aggregate calls in ``root``, except those inside keys."""
    if key_index(root, keys) is not None:
        return []
    if is_aggregate(root):
        return [root]
    return [call for child in _children(root) for call in aggregate_calls(child, keys)]


def replace_output_names(body: exp.Expr, named: Mapping[str, exp.Expr], keys: list[exp.Expr]) -> exp.Expr:
    """Return ``body`` with names of outputs replaced by their expressions.

    Keys take precedence. Inside an aggregate a name is a column of the input, as in Spark.
    """

    def replace_name(node: exp.Expr) -> exp.Expr | None:
        if key_index(node, keys) is not None or is_aggregate(node):
            return node
        if isinstance(node, exp.Column) and not node.table and node.name.lower() in named:
            return exp.Paren(this=named[node.name.lower()].copy())
        return None

    return _replace(body.copy(), replace_name)


def replace_keys_and_calls(
    body: exp.Expr, keys: list[exp.Expr], key_names: list[str], calls: list[exp.Expr], values: list[str]
) -> str:
    """Return ``body`` as SQL, with keys replaced by ``key_names`` and aggregate calls by ``values``.

    Without ``key_names``, keys stay as they are.
    """

    def replace_node(node: exp.Expr) -> exp.Expr | None:
        index = key_index(node, keys)
        if index is not None:
            return exp.column(key_names[index]) if key_names else node
        field = key_field(node, keys)
        if field is not None:
            inner = [part.copy() for part in field[1]]
            return exp.Dot.build([exp.column(key_names[field[0]]), *inner]) if key_names else node
        if node in calls:
            return exp.Paren(this=exp.Var(this=values[calls.index(node)]))
        return None

    return spark_sql(_replace(body.copy(), replace_node))


def ungrouped_columns(
    body: exp.Expr, keys: list[exp.Expr], calls: list[exp.Expr], bound: frozenset[str] = frozenset()
) -> Iterator[exp.Expr]:
    """Yield the columns of ``body`` that are neither keys nor aggregated, so that their value is not determined.

    ``bound`` are the parameters of the enclosing lambda functions (``x -> x + 1``).
    """
    if key_index(body, keys) is not None or key_field(body, keys) is not None or body in calls:
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
    for child in _children(body):
        yield from ungrouped_columns(child, keys, calls, bound)


def _normalized(node: exp.Expr) -> exp.Expr:
    """Return a copy with names in lower case and without quotes, since Spark ignores case."""
    copy = node.copy()
    for name in copy.find_all(exp.Identifier):
        name.replace(exp.to_identifier(name.name.lower(), quoted=False))
    for call in copy.find_all(exp.Anonymous):
        call.set("this", call.name.lower())
    return copy


def _children(node: exp.Expr) -> Iterator[exp.Expr]:
    """Return the children of a node, except subqueries."""
    return (child for child in node.iter_expressions() if not isinstance(child, exp.Query))


def _replace(node: exp.Expr, replacement: Callable[[exp.Expr], exp.Expr | None]) -> exp.Expr:
    """Replace each outermost node for which ``replacement`` returns a new one."""
    found = replacement(node)
    if found is not None:
        return found
    for child in list(_children(node)):
        other = _replace(child, replacement)
        if other is not child:
            child.replace(other)
    return node
