"""``AFTER WHERE``: the conditions of WHERE that are applied before rows are shed.

A condition goes first if it costs less per row than shedding does: comparisons of the stream's columns with constants
or with each other. Everything dearer (functions, subqueries, conditions on joined tables) stays behind the shedding, so
that it is not computed for shed rows. WHERE keeps all of its conditions, so the results are the same either way.
"""

from __future__ import annotations

from typing import cast

from sqlglot import exp

from slackwater.errors import QueryTextError
from slackwater.language import parse, spark_sql
from slackwater.language.spark_nodes import TypedLiteral
from slackwater.plan.spark_functions import SPARK_FUNCTIONS
from slackwater.plan.windowed_stream import WindowedStream

_COMPARISONS = (exp.EQ, exp.NEQ, exp.NullSafeEQ, exp.GT, exp.GTE, exp.LT, exp.LTE, exp.Between, exp.Is)
_CONSTANTS = (exp.Literal, TypedLiteral, exp.Boolean, exp.Null, exp.Neg)
_CHEAP = (*_COMPARISONS, *_CONSTANTS, exp.And, exp.Or, exp.Not, exp.Paren, exp.Identifier)
_REMEDY = "compare columns of the stream with constants in WHERE, or remove AFTER WHERE"


def filter_first(stream: WindowedStream, attribute: str | None) -> tuple[str, ...]:
    """Return the conditions as Spark SQL over the columns of the stream; refuse AFTER WHERE if there are none.

    A condition on the windowing attribute stays behind, since rows with an impossible one are counted as invalid.

    >>> from slackwater.language import parse
    >>> from slackwater.plan import make_plan
    >>> text = "SELECT COUNT(*) FROM S [RANGE 1 minute SLIDE 1 minute WATTR ts DELAY 1 second AFTER WHERE] AS s"
    >>> make_plan(parse(f"{text} WHERE s.kind IN ('a', 'b') AND price > 2 * fee AND a = -1")).filter_first
    ("kind IN ('a', 'b')", 'a = -1')
    """
    if stream.window.heartbeat is not None:
        problem = "AFTER WHERE could remove the rows that carry heartbeats"
        raise stream.clause_error("AFTER", "filtered-heartbeat", problem, "remove AFTER WHERE")
    select = cast(exp.Select, stream.table.find_ancestor(exp.Select))
    where = select.args.get("where")
    if where is None:
        raise stream.clause_error("AFTER", "nothing-first", "AFTER WHERE needs a WHERE", _REMEDY)
    conditions: list[exp.Expr] = list(where.this.flatten()) if isinstance(where.this, exp.And) else [where.this]
    found = []
    if _keeps_filters(select, stream.table):
        found = [sql for condition in conditions if (sql := _over_stream(condition, stream, attribute)) is not None]
    if not found:
        problem = f"no condition of {spark_sql(where)} costs less than shedding a row"
        raise stream.clause_error("AFTER", "nothing-first", problem, _REMEDY)
    return tuple(found)


def calls_only_spark(text: str) -> bool:
    """Whether a text is one condition, of columns and functions of Spark.

    >>> calls_only_spark("kind = 'a' AND length(note) < 3")
    True
    >>> calls_only_spark("of_python(note)") or calls_only_spark("a, b") or calls_only_spark("a ORDER BY b")
    False
    """
    try:
        select = parse(f"SELECT * FROM stream WHERE {text}").select
    except QueryTextError:
        return False
    clauses = {name for name, value in select.args.items() if value} - {"expressions", "from_", "where", "kind"}
    condition = select.args.get("where")
    if clauses or condition is None or condition.find(exp.Query, exp.AggFunc, exp.Window):
        return False
    return all(call.name.lower() in SPARK_FUNCTIONS for call in condition.find_all(exp.Anonymous))


def _keeps_filters(select: exp.Select, table: exp.Table) -> bool:
    """Whether a filter on the stream commutes with the joins: the stream comes first, and no join adds rows to it."""
    first = select.args.get("from_")
    joins = select.args.get("joins") or []
    return first is not None and first.this is table and all(join.side in ("", "LEFT") for join in joins)


def _over_stream(condition: exp.Expr, stream: WindowedStream, attribute: str | None) -> str | None:
    """Return a cheap condition without the stream's name in its columns, or None."""
    alone = not (cast(exp.Select, condition.find_ancestor(exp.Select)).args.get("joins"))
    bare = condition.copy()
    for node in list(bare.walk()):
        if isinstance(node, exp.Column):
            if not _is_of_stream(node, stream, attribute, alone):
                return None
            node.set("table", None)
            node.set("db", None)
        elif isinstance(node, exp.In):
            if not all(isinstance(item, _CONSTANTS) for item in node.expressions) or node.args.get("query"):
                return None
        elif not isinstance(node, _CHEAP):
            return None
    return spark_sql(bare)


def _is_of_stream(column: exp.Column, stream: WindowedStream, attribute: str | None, alone: bool) -> bool:
    """Whether a column is one of the stream's, other than the windowing attribute."""
    name, alias = column.name.lower(), (stream.table.alias or stream.table.name).lower()
    if column.table.lower() != alias and (column.table or not alone):
        return False
    if stream.known is not None and not any(known.lower() == name for known in stream.known.columns):
        return False
    return not column.is_star and (attribute is None or name != attribute.lower())
