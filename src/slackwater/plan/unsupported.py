"""Refuses clauses and calls that a window over an endless stream cannot support."""

from __future__ import annotations

from sqlglot import exp

from slackwater.language import Query, spark_sql
from slackwater.plan.aggregates import decompose_aggregate, nulls_argument
from slackwater.plan.text_positions import find_words, node_error, position_error, start_of
from slackwater.plan.window_ranks import TOP_N

_SUPPORTED_CLAUSES = {"with_", "expressions", "from_", "joins", "where", "group", "having", "hint"}
_SUPPORTED_OF_TABLE = {"this", "db", "catalog", "alias"}
_CLAUSE_WORDS = {
    "distinct": "SELECT DISTINCT",
    "order": "ORDER BY",
    "windows": "WINDOW",
    "laterals": "LATERAL VIEW",
    "sort": "SORT BY",
    "cluster": "CLUSTER BY",
    "distribute": "DISTRIBUTE BY",
    "sample": "TABLESAMPLE",
    "pivots": "PIVOT",
}
_RANKING = {"order", "limit", "offset"}
# Hints that move the rows of a result. Hints about joins are kept.
_REPARTITIONING_HINTS = {"COALESCE", "REBALANCE", "REPARTITION", "REPARTITION_BY_RANGE"}


def clause_words(argument: str) -> str:
    """Return the SQL words of a clause from the name of its argument in sqlglot's tree.

    >>> clause_words("order"), clause_words("limit")
    ('ORDER BY', 'LIMIT')
    """
    return _CLAUSE_WORDS.get(argument, argument.strip("_").upper())


def refuse_clauses(query: Query, select: exp.Select, table: exp.Table) -> None:
    """Refuse clauses of the SELECT, and of the windowed table in it, that a window cannot support."""
    found = [argument for argument, value in select.args.items() if value and argument not in _SUPPORTED_CLAUSES]
    found += [argument for argument, value in table.args.items() if value and argument not in _SUPPORTED_OF_TABLE]
    for argument in found:
        words = clause_words(argument)
        if argument == "distinct":
            position = find_words(query.text, words, before=start_of(select.expressions[0]))
        else:
            position = find_words(query.text, words, after=start_of(table.this))
        problem = f"{words} is not possible with a window over an endless stream"
        remedy = TOP_N if argument in _RANKING else f"put the window in a subquery, or remove {words}"
        raise position_error(query, position, "not-in-a-stream", problem, remedy)
    _refuse_hints(query, select)
    alias = table.args.get("alias")
    if alias is not None and alias.args.get("columns"):
        raise node_error(
            query,
            alias.args["columns"][0],
            "renamed-columns",
            "the columns of a windowed stream cannot be renamed after its alias",
            "rename them in the stream itself, or with AS in SELECT",
        )


def _refuse_hints(query: Query, select: exp.Select) -> None:
    hints = select.args.get("hint")
    for hint in hints.expressions if hints is not None else ():
        word = spark_sql(hint).partition("(")[0].upper()
        if word in _REPARTITIONING_HINTS:
            position = query.text.upper().find(word), len(word)
            problem = f"{word} would move the results of a window away from its state"
            remedy = f"remove {word}, and repartition the result of sw.sql"
            raise position_error(query, position, "not-in-a-stream", problem, remedy)


def refuse_calls(query: Query, roots: list[exp.Expr], calls: list[exp.Expr], *, shed: bool) -> None:
    """Refuse OVER, and aggregates that Spark cannot compute over a stream."""
    for root in roots:
        over = next((node for node in root.walk(prune=_is_query) if isinstance(node, exp.Window)), None)
        if over is not None:
            position = find_words(query.text, "OVER", after=start_of(over))
            problem = f"{spark_sql(over)} needs all results, but a stream has no end"
            remedy = "remove OVER, or compute it on the table that the query writes"
            raise position_error(query, position, "not-in-a-stream", problem, remedy)
    for call in calls:
        _refuse_unknown_nulls(query, call)
        count = call.find(exp.Count)
        if shed and count is not None and isinstance(count.this, exp.Column) and count.this.is_star:
            problem = f"{spark_sql(count)} cannot be corrected for rows that DELAY sheds"
            raise node_error(query, count.this, "star", problem, "name the columns that must not be null")
        distinct = call.find(exp.Distinct)
        if distinct is not None and not decompose_aggregate(call, 0, "").mergeable:
            position = find_words(query.text, "DISTINCT", before=start_of(distinct))
            problem = f"{spark_sql(call)} cannot be computed over a stream"
            raise position_error(
                query, position, "not-in-a-stream", problem, "use COUNT(DISTINCT column) or COLLECT_SET"
            )


def _refuse_unknown_nulls(query: Query, call: exp.Expr) -> None:
    """Refuse ``LAST(v, b)``: whether nulls are skipped must be known before the first row."""
    nulls = nulls_argument(call)
    if nulls is not None and not isinstance(nulls, exp.Boolean):
        problem = f"{spark_sql(call)} does not say whether it skips nulls"
        remedy = f"write TRUE or FALSE instead of {spark_sql(nulls)}, or IGNORE NULLS after the call"
        raise node_error(query, nulls, "unsure-nulls", problem, remedy, length=len(spark_sql(nulls)))


def _is_query(node: exp.Expr) -> bool:
    return isinstance(node, exp.Query)
