"""The group keys of a SELECT, which GROUP BY gives as expressions, numbers, names of outputs, or ALL."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from sqlglot import exp

from slackwater.errors import QueryTextError
from slackwater.language import Query, spark_sql
from slackwater.plan.rewriting import WINDOW_COLUMNS, aggregate_calls
from slackwater.plan.text_positions import find_words, node_error, position_error, start_of

_SET_WORDS = {"cube": "CUBE", "rollup": "ROLLUP", "grouping_sets": "GROUPING SETS", "totals": "TOTALS"}


def group_keys(query: Query, select: exp.Select, columns: Collection[str]) -> list[exp.Expr]:
    """Return the keys as expressions over the input, without those that depend on the window only.

    Numbers, names of outputs and ALL are replaced by the expressions they refer to. ``columns`` are the known columns
    of the stream. As in Spark, a column takes precedence over an output of the same name.
    """
    group = select.args.get("group")
    if group is None:
        return []
    _refuse_grouping_sets(query, select, group)
    outputs = [(p.alias.lower(), p.unalias()) for p in select.expressions]
    if group.args.get("all"):
        found = [body for _, body in outputs if not aggregate_calls(body, [])]
    else:
        inputs = {column.lower() for column in [*columns, *_input_names(select)]}
        found = [_resolve_key(query, key, outputs, inputs) for key in group.expressions]
    return [key for key in found if not _is_window_key(query, key)]


def _resolve_key(query: Query, key: exp.Expr, outputs: list[tuple[str, exp.Expr]], inputs: set[str]) -> exp.Expr:
    """Replace a number or the name of an output by the selected expression."""
    if isinstance(key, exp.Literal) and not key.is_string:
        if not key.is_int or not 1 <= int(key.name) <= len(outputs):
            raise _wrong_key(
                query, key, f"GROUP BY {key.name} is not the number of a selected column (there are {len(outputs)})"
            )
        body = outputs[int(key.name) - 1][1]
        if aggregate_calls(body, []) or body.is_star:
            raise _wrong_key(query, key, f"GROUP BY {key.name} refers to {spark_sql(body)}, which cannot be a key")
        return body
    if not isinstance(key, exp.Column) or key.table:
        return key
    name = key.name.lower()
    bodies = [body for alias, body in outputs if alias == name]
    if not bodies or name in inputs or any(column.name.lower() == name for column in bodies[0].find_all(exp.Column)):
        return key
    return bodies[0]


def _wrong_key(query: Query, key: exp.Expr, problem: str) -> QueryTextError:
    remedy = "write the column itself, or its number, starting at 1"
    return node_error(query, key, "wrong-group", problem, remedy, length=len(key.name))


def _input_names(select: exp.Select) -> Iterator[str]:
    """Yield the names that must be columns of the input: those in aggregates, in WHERE and in joins."""
    calls = [call for projection in select.expressions for call in aggregate_calls(projection, [])]
    for part in (*calls, select.args.get("where"), *(select.args.get("joins") or [])):
        if part is not None:
            yield from (column.name for column in part.find_all(exp.Column) if not column.table)


def _is_window_key(query: Query, key: exp.Expr) -> bool:
    """Test whether a key depends only on the window, by which results are always grouped."""
    names = [column.name.lower() in WINDOW_COLUMNS for column in key.find_all(exp.Column)]
    if any(names) and not all(names):
        problem = f"{spark_sql(key)} mixes the window with columns of rows"
        raise node_error(query, key, "mixed-key", problem, "group by the columns, and compute it in SELECT")
    return any(names)


def _refuse_grouping_sets(query: Query, select: exp.Select, group: exp.Group) -> None:
    kinds = [name for argument, name in _SET_WORDS.items() if group.args.get(argument)]
    sets = [key for key in group.expressions if isinstance(key, exp.Cube | exp.Rollup | exp.GroupingSets)]
    kinds += ["GROUPING SETS" if isinstance(key, exp.GroupingSets) else key.key.upper() for key in sets]
    if kinds:
        position = find_words(query.text, kinds[0], after=start_of(select.args["from_"]))
        problem = f"{kinds[0]} puts a row into several groups, which a window does not support"
        raise position_error(query, position, "not-in-a-stream", problem, "write one query per set of keys")
