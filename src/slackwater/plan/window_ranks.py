"""Top-N per window: ROW_NUMBER and RANK over the results of a window, as an aggregation that Spark can stream.

Spark refuses OVER on a stream, because a partition may never be complete. The results of one window are: they come out
together when it closes. So each partition is collected when its window closes, sorted, and returned with its ranks. It
must fit into the memory of a task.
"""

from __future__ import annotations

from collections.abc import Iterator

from sqlglot import exp

from slackwater.language import Query, spark_sql
from slackwater.names import quoted
from slackwater.plan.text_positions import find_words, node_error, position_error, start_of

_RANKS = (exp.RowNumber, exp.Rank)
_ITEM, _AT, _SORTED, _LEAST = "__sw_item", "__sw_at", "__sw_sorted", "__sw_least"
TOP_N = (
    "for the first n of each window write SELECT * FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY window_end "
    "ORDER BY x DESC) AS n FROM (SELECT … FROM stream [RANGE … SLIDE …] GROUP BY …)) WHERE n <= 10"
)


def rank_calls(select: exp.Select) -> list[exp.Window]:
    """Return the calls with OVER that a SELECT computes."""
    found: list[exp.Window] = []
    for root in (*select.expressions, select.args.get("qualify")):
        if root is not None:
            found += [node for node in root.walk(prune=_is_query) if isinstance(node, exp.Window)]
    return found


def rewrite_ranks(query: Query, select: exp.Select, window_names: frozenset[str]) -> None:
    """Replace a SELECT that ranks the results of a window by an aggregation, in place.

    ``window_names`` are the columns that tell windows apart, in lower case.
    """
    calls = rank_calls(select)
    first = calls[0]
    _check(query, select, calls, window_names)
    partition = [key.copy() for key in first.args["partition_by"]]
    names = {key.name.lower() for key in partition if isinstance(key, exp.Column)}
    if "window_start" in names and "window_end" not in names:
        table = next(key.table for key in partition if key.name.lower() == "window_start")
        partition.append(exp.column("window_end", table=table or None))
    order = first.args["order"].expressions
    fields = [f"{spark_sql(key.this)} AS k{i}" for i, key in enumerate(order)]
    outputs: list[str] = []
    for number, projection in enumerate(select.expressions):
        name, body = projection.alias_or_name, projection.unalias()
        if body is first:
            outputs.append(f"{_rank(first)} AS {quoted(name or spark_sql(body))}")
        elif body.is_star:
            fields.append(f"struct({spark_sql(body)}) AS f{number}")
            outputs.append(f"{_ITEM}.f{number}.*")
        else:
            fields.append(f"{spark_sql(body)} AS f{number}")
            outputs.append(f"{_ITEM}.f{number} AS {quoted(name or spark_sql(body))}")
    bound = _bound(select, first)
    if isinstance(first.this, exp.Rank) and bound is None:
        problem = f"{spark_sql(first)} ranks without a limit"
        raise _over_error(query, first, "rank-without-limit", problem, "write WHERE rank <= 10 around it")
    inner = exp.Select(expressions=[exp.Star()])
    for argument in ("from_", "joins", "where"):
        if select.args.get(argument):
            inner.set(argument, select.args[argument])
    source = spark_sql(inner).removeprefix("SELECT * ")
    item = f"struct({', '.join(fields)})"
    groups = ", ".join(spark_sql(key) for key in partition)
    collected = f"SELECT array_sort(collect_list({item}), {_comparator(order)}) AS {_SORTED} {source} GROUP BY {groups}"
    firsts = _SORTED if bound is None else _first(first, bound, len(order))
    exploded = f"SELECT {_SORTED}, posexplode({firsts}) AS ({_AT}, {_ITEM}) FROM ({collected})"
    text = f"SELECT {', '.join(outputs)} FROM ({exploded})"
    _replace_by_text(select, text)


def _replace_by_text(select: exp.Select, text: str) -> None:
    from slackwater.language.dialect import SPARK

    (tree,) = SPARK.parser().parse(list(SPARK.tokenize(text)), text)
    assert tree is not None
    for node in tree.walk():
        node.meta.pop("start", None)  # positions in ``text`` mean nothing in the query
    with_clause = select.args.get("with_")
    if with_clause is not None:
        tree.set("with_", with_clause)
    select.replace(tree)


def _check(query: Query, select: exp.Select, calls: list[exp.Window], window_names: frozenset[str]) -> None:
    first = calls[0]
    keys = first.args.get("partition_by") or []
    plain = [projection.unalias() for projection in select.expressions]
    if not isinstance(first.this, _RANKS) or not any(key.name.lower() in window_names for key in keys):
        problem = f"{spark_sql(first)} needs all results, but a stream has no end"
        raise _over_error(query, first, "not-in-a-stream", problem, TOP_N)
    if len(calls) > 1:
        problem = "a SELECT can rank once"
        raise _over_error(query, calls[1], "two-ranks", problem, "rank again in a SELECT around it")
    if first.args.get("order") is None:
        problem = f"{spark_sql(first)} has no ORDER BY"
        raise _over_error(query, first, "rank-without-order", problem, "write ORDER BY in its parentheses")
    clauses = [name for name in ("group", "having", "qualify", "distinct") if select.args.get(name)]
    if not any(body is first for body in plain) or clauses:
        problem = f"{spark_sql(first)} must be a column of its own, in a SELECT without GROUP BY, DISTINCT and QUALIFY"
        raise _over_error(query, first, "rank-inside", problem, "rank in a SELECT around this one")


def _rank(call: exp.Window) -> str:
    if isinstance(call.this, exp.RowNumber):
        return f"{_AT} + 1"
    order = len(call.args["order"].expressions)
    return f"CAST(array_position({_keys(_SORTED, order)}, {_key_of(_ITEM, order)}) AS INT)"


def _first(call: exp.Window, bound: int, order: int) -> str:
    """The first items of the sorted ones; for RANK with those that equal the last of them."""
    if isinstance(call.this, exp.RowNumber):
        return f"slice({_SORTED}, 1, {bound})"
    last = f"element_at({_SORTED}, least({bound}, size({_SORTED})))"
    position = f"array_position({_keys(_SORTED, order)}, {_key_of(last, order)})"
    same = f"size(filter({_keys(_SORTED, order)}, k -> k <=> {_key_of(last, order)}))"
    return f"slice({_SORTED}, 1, CAST({position} + {same} - 1 AS INT))"


def _keys(items: str, order: int) -> str:
    return f"transform({items}, i -> {_key_of('i', order)})"


def _key_of(item: str, order: int) -> str:
    return f"struct({', '.join(f'{item}.k{number}' for number in range(order))})"


def _comparator(order: list[exp.Expr]) -> str:
    """The order of the items as Spark SQL: a lambda that returns -1, 0 or 1."""
    cases = []
    for number, key in enumerate(order):
        a, b = f"a.k{number}", f"b.k{number}"
        down = bool(key.args.get("desc"))
        nulls_first = bool(key.args.get("nulls_first")) if key.args.get("nulls_first") is not None else not down
        null, value = (-1, 1) if nulls_first else (1, -1)
        cases += [
            f"WHEN {a} IS NULL AND {b} IS NOT NULL THEN {null}",
            f"WHEN {a} IS NOT NULL AND {b} IS NULL THEN {value}",
            f"WHEN {a} < {b} THEN {1 if down else -1}",
            f"WHEN {a} > {b} THEN {-1 if down else 1}",
        ]
    return f"(a, b) -> CASE {' '.join(cases)} ELSE 0 END"


def _bound(select: exp.Select, call: exp.Window) -> int | None:
    """The number of rows that the SELECT around it keeps: ``n <= 10``, ``n < 11`` or ``n = 1``, or None."""
    named = call.parent
    subquery = select.parent
    around = subquery.find_ancestor(exp.Select) if isinstance(subquery, exp.Subquery) else None
    if not isinstance(named, exp.Alias) or around is None or around.args.get("where") is None:
        return None
    for condition in _conjuncts(around.args["where"].this):
        if not isinstance(condition, exp.LTE | exp.LT | exp.EQ):
            continue
        left, right = condition.left, condition.right
        if isinstance(left, exp.Column) and left.name.lower() == named.alias.lower() and right.is_int:
            return max(1, int(right.name) - isinstance(condition, exp.LT))
    return None


def _conjuncts(condition: exp.Expr) -> Iterator[exp.Expr]:
    for part in condition.flatten() if isinstance(condition, exp.And) else [condition]:
        yield part.unnest()


def _over_error(query: Query, call: exp.Window, condition: str, problem: str, remedy: str) -> Exception:
    position = find_words(query.text, "OVER", after=start_of(call))
    if position[1] == 1:
        return node_error(query, call, condition, problem, remedy)
    return position_error(query, position, condition, problem, remedy)


def _is_query(node: exp.Expr) -> bool:
    return isinstance(node, exp.Query)
