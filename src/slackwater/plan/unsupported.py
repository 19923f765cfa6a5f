"""What cannot stand beside a window over an endless stream, and is refused rather than left out."""

from __future__ import annotations

from sqlglot import exp

from slackwater.language import Query, spark_sql
from slackwater.language.text import located
from slackwater.plan.aggregates import nulls_argument, take_apart
from slackwater.plan.text_positions import start_of, word_place

_TAKEN = {"with_", "expressions", "from_", "joins", "where", "group", "having", "hint"}
_WORDS = {
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
# Hints that put the rows of a result elsewhere; those about joins stay with the joins.
_PLACING = {"COALESCE", "REBALANCE", "REPARTITION", "REPARTITION_BY_RANGE"}
_OF_A_TABLE = {"this", "db", "catalog", "alias"}


def refuse_beside(query: Query, select: exp.Select, table: exp.Table) -> None:
    """Refuse clauses of the SELECT, and of the windowed table in it, that no window can honour."""
    found = [argument for argument, value in select.args.items() if value and argument not in _TAKEN]
    found += [argument for argument, value in table.args.items() if value and argument not in _OF_A_TABLE]
    for argument in found:
        words = _WORDS.get(argument, argument.strip("_").upper())
        if argument == "distinct":
            start, length = word_place(query.text, words, before=start_of(select.expressions[0]))
        else:
            start, length = word_place(query.text, words, behind=start_of(table.this))
        raise located(
            query.text,
            start,
            "not-in-a-stream",
            f"{words} cannot stand beside a window over an endless stream",
            "put the window in a subquery or leave it out",
            length=length,
        )
    _refuse_placing(query, select)
    alias = table.args.get("alias")
    if alias is not None and alias.args.get("columns"):
        raise located(
            query.text,
            start_of(alias.args["columns"][0]),
            "renamed-columns",
            "the columns of a windowed stream cannot be renamed behind it",
            "name them in the stream itself, or with AS in SELECT",
        )


def _refuse_placing(query: Query, select: exp.Select) -> None:
    hint = select.args.get("hint")
    for said in hint.expressions if hint is not None else ():
        word = spark_sql(said).partition("(")[0].upper()
        if word in _PLACING:
            start = query.text.upper().find(word)
            raise located(
                query.text,
                start,
                "not-in-a-stream",
                f"{word} would move the results of a window, which stay with its state",
                "leave it out, and repartition what sw.sql returns",
                length=len(word),
            )


def refuse_calls(query: Query, roots: list[exp.Expr], calls: list[exp.Expr], *, shed: bool) -> None:
    """Refuse aggregates that Spark cannot compute over a stream, and functions over rows of results (OVER)."""
    for root in roots:
        over = next((node for node in root.walk(prune=_is_query) if isinstance(node, exp.Window)), None)
        if over is not None:
            start, length = word_place(query.text, "OVER", behind=start_of(over))
            raise located(
                query.text,
                start,
                "not-in-a-stream",
                f"{spark_sql(over)} looks at the other results, of which there is no end",
                "leave OVER out, or compute it on the table that the query writes",
                length=length,
            )
    for call in calls:
        _refuse_unsure_nulls(query, call)
        inner = call.find(exp.Count)
        if shed and inner is not None and isinstance(inner.this, exp.Column) and inner.this.is_star:
            raise located(
                query.text,
                start_of(inner.this),
                "star",
                f"{spark_sql(inner)} cannot be corrected for what DELAY sheds",
                "name the columns that must not be null",
            )
        distinct = call.find(exp.Distinct)
        if distinct is not None and not take_apart(call, 0, "").mergeable:
            start, length = word_place(query.text, "DISTINCT", before=start_of(distinct))
            raise located(
                query.text,
                start,
                "not-in-a-stream",
                f"{spark_sql(call)} cannot be computed over a stream",
                "use COUNT(DISTINCT column) or COLLECT_SET",
                length=length,
            )


def _refuse_unsure_nulls(query: Query, call: exp.Expr) -> None:
    """Refuse ``LAST(v, b)``: whether nulls count must be known before the first row comes."""
    nulls = nulls_argument(call)
    if nulls is not None and not isinstance(nulls, exp.Boolean):
        raise located(
            query.text,
            start_of(nulls),
            "unsure-nulls",
            f"{spark_sql(call)} does not say whether nulls are skipped",
            "write TRUE or FALSE there, or IGNORE NULLS behind the call",
            length=len(spark_sql(nulls)),
        )


def _is_query(node: exp.Expr) -> bool:
    return isinstance(node, exp.Query)
