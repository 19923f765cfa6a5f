"""The group keys of a SELECT: by name, by number, by an output's name, or ALL."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from sqlglot import exp

from slackwater.errors import QueryTextError
from slackwater.language import Query, spark_sql
from slackwater.language.text import located
from slackwater.plan.rewriting import WINDOW_COLUMNS, aggregate_calls
from slackwater.plan.text_positions import start_of, word_place

_SETS = {"cube": "CUBE", "rollup": "ROLLUP", "grouping_sets": "GROUPING SETS", "totals": "TOTALS"}


def keys_of(query: Query, select: exp.Select, columns: Collection[str]) -> list[exp.Expr]:
    """The keys, with ordinals, outputs' names and ALL replaced by what they stand for; the window is always one.

    ``columns`` are those that the stream is known to have: a column goes before an output of the same name, as in
    Spark.
    """
    group = select.args.get("group")
    if group is None:
        return []
    _refuse_sets(query, select, group)
    outputs = [(p.alias.lower(), p.unalias()) for p in select.expressions]
    if group.args.get("all"):
        found = [body for _, body in outputs if not aggregate_calls(body, [])]
    else:
        inputs = {column.lower() for column in [*columns, *_input_names(select)]}
        found = [_meant(query, key, outputs, inputs) for key in group.expressions]
    return [key for key in found if not _of_the_window(query, key)]


def _meant(query: Query, key: exp.Expr, outputs: list[tuple[str, exp.Expr]], inputs: set[str]) -> exp.Expr:
    if isinstance(key, exp.Literal) and not key.is_string:
        if not key.is_int or not 1 <= int(key.name) <= len(outputs):
            raise _wrong_key(query, key, f"GROUP BY {key.name} names none of the {len(outputs)} columns selected")
        body = outputs[int(key.name) - 1][1]
        if aggregate_calls(body, []) or body.is_star:
            raise _wrong_key(query, key, f"GROUP BY {key.name} is {spark_sql(body)}, which is no key")
        return body
    if not isinstance(key, exp.Column) or key.table:
        return key
    name = key.name.lower()
    bodies = [body for alias, body in outputs if alias == name]
    if not bodies or name in inputs or any(column.name.lower() == name for column in bodies[0].find_all(exp.Column)):
        return key
    return bodies[0]


def _wrong_key(query: Query, key: exp.Expr, problem: str) -> QueryTextError:
    return located(
        query.text,
        start_of(key),
        "wrong-group",
        problem,
        "write the column itself, or its place among them from 1 on",
        length=len(key.name),
    )


def _input_names(select: exp.Select) -> Iterator[str]:
    """The names that can only be columns of the input: those in aggregates, in WHERE and in joins."""
    calls = [call for projection in select.expressions for call in aggregate_calls(projection, [])]
    for part in (*calls, select.args.get("where"), *(select.args.get("joins") or [])):
        if part is not None:
            yield from (column.name for column in part.find_all(exp.Column) if not column.table)


def _of_the_window(query: Query, key: exp.Expr) -> bool:
    """Whether a key says nothing that the window does not say."""
    names = [column.name.lower() in WINDOW_COLUMNS for column in key.find_all(exp.Column)]
    if any(names) and not all(names):
        raise located(
            query.text,
            start_of(key),
            "mixed-key",
            f"{spark_sql(key)} mixes the window with columns of rows",
            "group by the columns, and compute it in SELECT",
        )
    return any(names)


def _refuse_sets(query: Query, select: exp.Select, group: exp.Group) -> None:
    kinds = [name for argument, name in _SETS.items() if group.args.get(argument)]
    among = [key for key in group.expressions if isinstance(key, exp.Cube | exp.Rollup | exp.GroupingSets)]
    kinds += ["GROUPING SETS" if isinstance(key, exp.GroupingSets) else key.key.upper() for key in among]
    if not kinds:
        return
    source = select.args["from_"]
    start, length = word_place(query.text, kinds[0], behind=start_of(source))
    raise located(
        query.text,
        start,
        "not-in-a-stream",
        f"{kinds[0]} would make several groups of one row, and a window makes one",
        "write a query for each set of keys",
        length=length,
    )
