"""How an aggregate is taken apart into panes: lift, combine, lower.

``lift`` makes parts out of rows, ``combine`` makes parts out of parts, ``lower`` makes the answer out of parts.
An aggregate that has no recipe cannot be merged: it is computed by the plain route, on rows copied into each of
their windows.
"""

from __future__ import annotations

from dataclasses import dataclass

from sqlglot import exp

from slackwater.language import spark_sql
from slackwater.plan.functions import arguments_of, canonical_name
from slackwater.plan.recipes import RECIPES, Recipe, distinct_exactly, distinct_nearly, percentile


@dataclass(frozen=True, slots=True)
class Part:
    """One column that a pane keeps for an aggregate; ``lift`` and ``combine`` are Spark SQL.

    ``exact_lift`` takes the place of ``lift`` where Spark's own aggregate is no double: of decimals and intervals.
    """

    name: str
    lift: str
    combine: str
    exact_lift: str | None = None


@dataclass(frozen=True, slots=True)
class Aggregate:
    """An aggregate of a query and its parts; without parts it cannot be merged.

    ``plain`` computes it from rows at once, with the same meaning. ``operator`` is what the window operator
    computes for it: names there, each with the number that it takes of a row, as Spark SQL (None: none, COUNT(*));
    it is empty if the operator does not know the aggregate. ``operator_lower`` makes the answer of them.
    """

    sql: str
    parts: tuple[Part, ...]
    lower: str
    words: str
    plain: str
    operator: tuple[tuple[str, str | None], ...] = ()
    operator_lower: str = "{0}"

    @property
    def mergeable(self) -> bool:
        """Whether panes can be combined to it."""
        return bool(self.parts)


def column_of(number: int) -> str:
    """The column that holds the answer of a query's aggregate, by its number."""
    return f"aggregate_{number}"


_OF_NULLS = ("FIRST", "LAST", "ANY_VALUE")
_UNMERGEABLE = "cannot be merged: rows are copied into each of their windows"


@dataclass(frozen=True, slots=True)
class _Call:
    """A call of an aggregate, and what stands behind it."""

    call: exp.Expr
    condition: str | None
    ignores_nulls: bool
    ordered: bool

    @classmethod
    def of(cls, node: exp.Expr) -> _Call:
        condition, ignores_nulls, ordered = None, False, False
        while isinstance(node, exp.Filter | exp.IgnoreNulls | exp.RespectNulls | exp.WithinGroup):
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


def nulls_argument(call: exp.Expr) -> exp.Expr | None:
    """What says in ``FIRST(v, true)``, another word for ``FIRST(v) IGNORE NULLS``, whether nulls are skipped."""
    while isinstance(call, exp.Filter | exp.IgnoreNulls | exp.RespectNulls):
        call = call.this
    arguments = arguments_of(call) if canonical_name(call) in _OF_NULLS else []
    return arguments[1] if len(arguments) == 2 else None


def take_apart(node: exp.Expr, index: int, attribute: str) -> Aggregate:
    """The aggregate at ``node`` with its parts; ``attribute`` is the windowing attribute as SQL.

    >>> import sqlglot
    >>> take_apart(sqlglot.parse_one("AVG(v)", read="spark"), 0, "ts").lower
    'TRY_DIVIDE(part_0_0, part_0_1)'
    """
    sql = spark_sql(node)
    said = _Call.of(node)
    call, condition = said.call, said.condition
    name, arguments = canonical_name(call), ", ".join(spark_sql(a) for a in arguments_of(call))
    recipe = _recipe(said, name)
    if recipe is None:
        return Aggregate(sql, (), "", _UNMERGEABLE, _in_order(said))
    distinct = call.this.expressions if isinstance(call.this, exp.Distinct) else []
    if distinct:
        arguments = spark_sql(distinct[0])
    pairs, lower, words = recipe(arguments, attribute)
    if said.ignores_nulls:
        there = f"({arguments}) IS NOT NULL"
        condition = there if condition is None else f"({condition}) AND {there}"
    if condition is not None and pairs[0][0].startswith("NAMED_STRUCT"):
        return Aggregate(sql, (), "", _UNMERGEABLE, _in_order(said))
    filtered = "" if condition is None else f" FILTER (WHERE {condition})"
    names = [f"part_{index}_{i}" for i in range(len(pairs))]
    parts = tuple(
        Part(part, lift + filtered, combine.format(part), *(f"{other}{filtered}" for other in others))
        for part, (lift, combine, *others) in zip(names, pairs, strict=True)
    )
    # What means something else here than in Spark, or what Spark cannot do over a stream, is computed by its parts.
    plain = lower.format(parts[0].lift) if distinct or name in ("FIRST", "LAST") else _in_order(said)
    operator = () if distinct or said.ignores_nulls else _operator(name, call, condition)
    return Aggregate(sql, parts, lower.format(*names), f"in panes: {words}", plain, operator)


def _recipe(said: _Call, name: str) -> Recipe | None:
    call = said.call
    if said.ordered or (said.ignores_nulls and name not in _OF_NULLS):
        return None
    if isinstance(call, exp.Count) and isinstance(call.this, exp.Distinct):
        # Spark refuses DISTINCT over a stream; the size of a set is the same number.
        return distinct_exactly if len(call.this.expressions) == 1 else None
    if call.find(exp.Distinct, exp.Order, exp.HavingMax) is not None:
        return None
    if isinstance(call, exp.ApproxQuantile):
        return percentile(call)
    if isinstance(call, exp.ApproxDistinct):
        return distinct_nearly(call)
    if len(arguments_of(call)) != 1 and name != "COUNT":
        return None
    return RECIPES.get(name)


def _in_order(said: _Call) -> str:
    """The call as Spark reads it: FILTER stands before IGNORE NULLS, and not behind it."""
    call = said.call
    if said.ordered:
        call = call.parent or call
    filtered = "" if said.condition is None else f" FILTER (WHERE {said.condition})"
    return f"{spark_sql(call)}{filtered}{' IGNORE NULLS' if said.ignores_nulls else ''}"


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
    """The aggregate in the window operator: its name there, and its input (None: none, COUNT(*))."""
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
