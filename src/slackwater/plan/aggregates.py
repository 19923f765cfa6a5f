"""Decomposes an aggregate for panes: lift, combine, lower.

``lift`` computes parts from rows, ``combine`` merges parts, and ``lower`` computes the answer from parts. An aggregate
without parts cannot be merged. It takes the plain route, which copies each row into each of its windows.
"""

from __future__ import annotations

from dataclasses import dataclass

from sqlglot import exp

from slackwater.language import spark_sql
from slackwater.plan.functions import MODIFIERS, arguments_of, canonical_name
from slackwater.plan.mergeable_aggregates import (
    MERGEABLE,
    Decomposer,
    approximate_distinct_count,
    approximate_percentile,
    distinct_count,
)


@dataclass(frozen=True, slots=True)
class Part:
    """One column that a pane keeps for an aggregate; ``lift`` and ``combine`` are Spark SQL.

    ``exact_lift`` replaces ``lift`` if Spark's own aggregate does not return a double (decimals, intervals).
    """

    name: str
    lift: str
    combine: str
    exact_lift: str | None = None


@dataclass(frozen=True, slots=True)
class Aggregate:
    """An aggregate of a query, in the three forms that the paths need.

    - ``parts`` and ``lower``: for panes. An aggregate without parts cannot be merged.
    - ``plain``: one Spark SQL expression over rows, with the same meaning.
    - ``operator`` and ``operator_lower``: for the window operator. ``operator`` lists pairs of an operator's name and
      its input as Spark SQL; the input of COUNT(*) is None. It is empty if the operator does not support the aggregate.

    ``sql`` is the call as written, ``description`` explains how panes are merged.
    """

    sql: str
    parts: tuple[Part, ...]
    lower: str
    description: str
    plain: str
    operator: tuple[tuple[str, str | None], ...] = ()
    operator_lower: str = "{0}"

    @property
    def mergeable(self) -> bool:
        """Whether the aggregate can be merged from panes."""
        return bool(self.parts)


def column_of(number: int) -> str:
    """Return the name of the column that holds the aggregate with this number."""
    return f"aggregate_{number}"


def part_names(index: int, count: int) -> list[str]:
    """Return the column names of ``count`` parts of the aggregate at ``index``."""
    return [f"part_{index}_{i}" for i in range(count)]


_TAKES_IGNORE_NULLS = ("FIRST", "LAST", "ANY_VALUE")
_UNMERGEABLE = "cannot be merged: rows are copied into each of their windows"


@dataclass(frozen=True, slots=True)
class _AggregateCall:
    """A call of an aggregate without its modifiers (FILTER, IGNORE NULLS, WITHIN GROUP), and the modifiers."""

    call: exp.Expr
    condition: str | None
    ignores_nulls: bool
    ordered: bool

    @classmethod
    def from_node(cls, node: exp.Expr) -> _AggregateCall:
        condition, ignores_nulls, ordered = None, False, False
        while isinstance(node, MODIFIERS):
            if isinstance(node, exp.Filter):
                condition = spark_sql(node.expression.this)
            ignores_nulls |= isinstance(node, exp.IgnoreNulls)
            ordered |= isinstance(node, exp.WithinGroup)
            node = node.this
        nulls = nulls_argument(node)
        if nulls is not None:
            ignores_nulls |= nulls == exp.true()
            node = exp.Anonymous(this=canonical_name(node), expressions=arguments_of(node)[:1])
        return cls(node, condition, ignores_nulls, ordered)

    @property
    def sql(self) -> str:
        """The call in the order that Spark accepts: FILTER comes before IGNORE NULLS."""
        call = self.call
        if self.ordered:
            call = call.parent or call
        filtered = "" if self.condition is None else f" FILTER (WHERE {self.condition})"
        return f"{spark_sql(call)}{filtered}{' IGNORE NULLS' if self.ignores_nulls else ''}"


def nulls_argument(call: exp.Expr) -> exp.Expr | None:
    """Return the second argument of ``FIRST(v, true)``, which means ``FIRST(v) IGNORE NULLS``, or None."""
    while isinstance(call, exp.Filter | exp.IgnoreNulls | exp.RespectNulls):
        call = call.this
    arguments = arguments_of(call) if canonical_name(call) in _TAKES_IGNORE_NULLS else []
    return arguments[1] if len(arguments) == 2 else None


def decompose_aggregate(node: exp.Expr, index: int, attribute: str) -> Aggregate:
    """Decompose the aggregate call at ``node``.

    ``index`` numbers the aggregates of a query, ``attribute`` is the windowing attribute as SQL.

    >>> import sqlglot
    >>> decompose_aggregate(sqlglot.parse_one("AVG(v)", read="spark"), 0, "ts").lower
    'TRY_DIVIDE(part_0_0, part_0_1)'
    """
    modified = _AggregateCall.from_node(node)
    call, condition = modified.call, modified.condition
    name = canonical_name(call)
    unmergeable = Aggregate(spark_sql(node), (), "", _UNMERGEABLE, modified.sql)
    decomposer = _find_decomposer(modified, name)
    if decomposer is None:
        return unmergeable
    distinct = call.this.expressions if isinstance(call.this, exp.Distinct) else []
    arguments = spark_sql(distinct[0]) if distinct else ", ".join(spark_sql(a) for a in arguments_of(call))
    found = decomposer(arguments, attribute)
    if modified.ignores_nulls:
        not_null = f"({arguments}) IS NOT NULL"
        condition = not_null if condition is None else f"({condition}) AND {not_null}"
    if condition is not None and not found.filterable:
        return unmergeable
    filtered = "" if condition is None else f" FILTER (WHERE {condition})"
    names = part_names(index, len(found.parts))
    parts = tuple(
        Part(
            column,
            part.lift + filtered,
            part.combine.format(column),
            None if part.exact_lift is None else part.exact_lift + filtered,
        )
        for column, part in zip(names, found.parts, strict=True)
    )
    # FIRST and LAST have another meaning in Spark, and Spark refuses DISTINCT over a stream: use the parts instead.
    plain = found.lower.format(parts[0].lift) if distinct or name in ("FIRST", "LAST") else modified.sql
    operator = () if distinct or modified.ignores_nulls else _operator(name, call, condition)
    description = f"in panes: {found.description}"
    return Aggregate(spark_sql(node), parts, found.lower.format(*names), description, plain, operator)


def _find_decomposer(modified: _AggregateCall, name: str) -> Decomposer | None:
    call = modified.call
    if modified.ordered or (modified.ignores_nulls and name not in _TAKES_IGNORE_NULLS):
        return None
    if isinstance(call, exp.Count) and isinstance(call.this, exp.Distinct):
        return distinct_count if len(call.this.expressions) == 1 else None
    if call.find(exp.Distinct, exp.Order, exp.HavingMax) is not None:
        return None
    if isinstance(call, exp.ApproxQuantile):
        return approximate_percentile(call) if call.this and call.args.get("quantile") else None
    if isinstance(call, exp.ApproxDistinct):
        return approximate_distinct_count(call)
    if len(arguments_of(call)) != 1 and name != "COUNT":
        return None
    return MERGEABLE.get(name)


_OPERATOR_NAMES = {
    "COUNT": "count",
    "COUNT_IF": "count",
    "SUM": "sum",
    "AVG": "avg",
    "MIN": "min",
    "MAX": "max",
    "VARIANCE": "var_samp",
    "VAR_SAMP": "var_samp",
    "VAR_POP": "var_pop",
    "VARIANCE_POP": "var_pop",
    "STDDEV": "stddev_samp",
    "STDDEV_SAMP": "stddev_samp",
    "STDDEV_POP": "stddev_pop",
    "FIRST": "first",
    "LAST": "last",
}


def _operator(name: str, call: exp.Expr, condition: str | None) -> tuple[tuple[str, str | None], ...]:
    """Return the aggregate's name in the window operator and its input; nothing if the operator does not support it."""
    known = _OPERATOR_NAMES.get(name)
    arguments = [spark_sql(argument) for argument in arguments_of(call)]
    if known is None or not arguments or any(isinstance(a, exp.Column) and a.is_star for a in arguments_of(call)):
        return ()
    value: str | None = f"CAST({arguments[0]} AS DOUBLE)"
    if name == "COUNT":
        missing = " OR ".join(f"({argument}) IS NULL" for argument in arguments)
        value = None if arguments in (["*"], ["1"]) else f"IF({missing}, NULL, 1D)"
    elif name == "COUNT_IF":
        value = f"IF({arguments[0]}, 1D, NULL)"
    if condition is not None:
        value = f"CASE WHEN {condition} THEN {value or '1D'} END"
    return ((known, value),)
