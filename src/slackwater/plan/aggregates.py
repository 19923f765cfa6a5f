"""How an aggregate is taken apart into panes: lift, combine, lower.

``lift`` makes parts out of rows, ``combine`` makes parts out of parts, ``lower`` makes the answer out of parts.
An aggregate that is not in the table cannot be merged: it is computed by the plain route, on rows copied into
each of their windows.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from sqlglot import exp

# Aggregates of Spark that sqlglot's tree holds as calls by name.
_BY_NAME = {
    "mean": "AVG",
    "every": "BOOL_AND",
    "some": "BOOL_OR",
    "any": "BOOL_OR",
    "std": "STDDEV",
    "first_value": "FIRST",
    "last_value": "LAST",
    "approx_percentile": "PERCENTILE_APPROX",
    "var_samp": "VARIANCE",
}
_MORE_AGGREGATES = {
    "try_sum",
    "try_avg",
    "product",
    "bitmap_or_agg",
    "histogram_numeric",
    "count_min_sketch",
    "regr_r2",
    "regr_slope",
    "regr_count",
    "regr_avgx",
    "regr_avgy",
    "regr_intercept",
    "regr_sxx",
    "regr_sxy",
    "regr_syy",
    "percentile",
    "median",
    "mode",
    "skewness",
    "kurtosis",
    "string_agg",
    "hll_sketch_agg",
    "kll_sketch_agg_bigint",
    "kll_sketch_agg_double",
}


@dataclass(frozen=True, slots=True)
class Part:
    """One column that a pane keeps for an aggregate; ``lift`` and ``combine`` are Spark SQL."""

    name: str
    lift: str
    combine: str


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


_UNMERGEABLE = "cannot be merged: rows are copied into each of their windows"

# One recipe makes (lift, combine) pairs and a way to lower them; "{}" is the part's own column.
_Recipe = Callable[[str, str], tuple[list[tuple[str, str]], str, str]]


def _same(function: str) -> _Recipe:
    return lambda arguments, _: ([(f"{function}({arguments})", f"{function}({{}})")], "{0}", function.lower())


def _count(arguments: str, _: str) -> tuple[list[tuple[str, str]], str, str]:
    return [(f"COUNT({arguments})", "SUM({})")], "{0}", "count"


def _avg(arguments: str, _: str) -> tuple[list[tuple[str, str]], str, str]:
    # Spark's own AVG sums doubles too; a sum of longs could overflow where the average does not.
    parts = [(f"SUM(CAST({arguments} AS DOUBLE))", "SUM({})"), (f"COUNT({arguments})", "SUM({})")]
    return parts, "TRY_DIVIDE({0}, {1})", "sum and count"


def _moments(sample: bool, root: bool) -> _Recipe:
    def recipe(arguments: str, _: str) -> tuple[list[tuple[str, str]], str, str]:
        x = f"CAST({arguments} AS DOUBLE)"
        lift = (
            f"NAMED_STRUCT('n', CAST(COUNT({x}) AS DOUBLE), 'm', COALESCE(AVG({x}), 0D), "
            f"'s', COALESCE(VAR_POP({x}) * COUNT({x}), 0D))"
        )
        # Parts are merged pairwise (Chan, Golub & LeVeque); sums of squares would cancel.
        combine = (
            "AGGREGATE(COLLECT_LIST({}), NAMED_STRUCT('n', 0D, 'm', 0D, 's', 0D), "
            "(a, b) -> CASE WHEN a.n + b.n = 0 THEN a ELSE "
            "NAMED_STRUCT('n', a.n + b.n, 'm', a.m + (b.m - a.m) * b.n / (a.n + b.n), "
            "'s', a.s + b.s + (b.m - a.m) * (b.m - a.m) * a.n * b.n / (a.n + b.n)) END)"
        )
        divisor = "({0}.n - 1)" if sample else "{0}.n"
        least = 1 if sample else 0
        value = f"{{0}}.s / {divisor}"
        value = f"SQRT({value})" if root else value
        return [(lift, combine)], f"CASE WHEN {{0}}.n > {least} THEN {value} END", "count, mean and squares"

    return recipe


def _edge(function: str) -> _Recipe:
    def recipe(arguments: str, attribute: str) -> tuple[list[tuple[str, str]], str, str]:
        # In a stream, first and last mean by the windowing attribute: arrival order is an accident.
        lift = f"{function}(NAMED_STRUCT('at', {attribute}, 'value', {arguments}))"
        return [(lift, f"{function}({{}})")], "{0}.value", f"{function.lower()} by the windowing attribute"

    return recipe


def _distinct(arguments: str, _: str) -> tuple[list[tuple[str, str]], str, str]:
    parts = [(f"HLL_SKETCH_AGG({arguments})", "HLL_UNION_AGG({})")]
    return parts, "HLL_SKETCH_ESTIMATE({0})", "HyperLogLog sketch"


def _distinct_exactly(arguments: str, _: str) -> tuple[list[tuple[str, str]], str, str]:
    pairs, _lower, _words = _set(arguments, "")
    return pairs, "SIZE({0})", "set"


def _percentile(call: exp.ApproxQuantile) -> _Recipe:
    value, share = call.this.sql(dialect="spark"), call.args["quantile"].sql(dialect="spark")
    accuracy = call.args.get("accuracy")
    error = 1.0 / int(accuracy.name) if isinstance(accuracy, exp.Literal) and accuracy.name.isdigit() else 1e-4
    # Karnin, Lang & Liberty: a rank is off by 2.296 / k^0.9021 at most (99 %); Spark's own promise is 1/accuracy
    k = min(65535, max(8, math.ceil((2.296 / error) ** (1 / 0.9021))))
    parts = [(f"KLL_SKETCH_AGG_DOUBLE(CAST({value} AS DOUBLE), {k})", "KLL_MERGE_AGG_DOUBLE({})")]
    lower = f"IF(KLL_SKETCH_GET_N_DOUBLE({{0}}) > 0, KLL_SKETCH_GET_QUANTILE_DOUBLE({{0}}, {share}), NULL)"
    return lambda *_: (parts, lower, "KLL sketch")


def _list(arguments: str, _: str) -> tuple[list[tuple[str, str]], str, str]:
    return [(f"COLLECT_LIST({arguments})", "FLATTEN(COLLECT_LIST({}))")], "{0}", "list"


def _set(arguments: str, _: str) -> tuple[list[tuple[str, str]], str, str]:
    return [(f"COLLECT_SET({arguments})", "ARRAY_DISTINCT(FLATTEN(COLLECT_LIST({})))")], "{0}", "set"


_RECIPES: dict[str, _Recipe] = {
    "COUNT": _count,
    "COUNT_IF": lambda arguments, _: ([(f"COUNT_IF({arguments})", "SUM({})")], "{0}", "count"),
    "SUM": _same("SUM"),
    "MIN": _same("MIN"),
    "MAX": _same("MAX"),
    "BIT_AND": _same("BIT_AND"),
    "BIT_OR": _same("BIT_OR"),
    "BIT_XOR": _same("BIT_XOR"),
    "BOOL_AND": _same("BOOL_AND"),
    "BOOL_OR": _same("BOOL_OR"),
    "ANY_VALUE": _same("ANY_VALUE"),
    "AVG": _avg,
    "VARIANCE": _moments(sample=True, root=False),
    "VAR_SAMP": _moments(sample=True, root=False),
    "VAR_POP": _moments(sample=False, root=False),
    "VARIANCE_POP": _moments(sample=False, root=False),
    "STDDEV": _moments(sample=True, root=True),
    "STDDEV_SAMP": _moments(sample=True, root=True),
    "STDDEV_POP": _moments(sample=False, root=True),
    "FIRST": _edge("MIN"),
    "LAST": _edge("MAX"),
    "APPROX_COUNT_DISTINCT": _distinct,
    "COLLECT_LIST": _list,
    "COLLECT_SET": _set,
}


def is_aggregate(node: exp.Expr) -> bool:
    """Whether a node is a call of an aggregate function.

    >>> import sqlglot
    >>> is_aggregate(sqlglot.parse_one("mean(x)", read="spark")), is_aggregate(sqlglot.parse_one("abs(x)"))
    (True, False)
    """
    if isinstance(node, exp.Filter):
        return is_aggregate(node.this)
    if isinstance(node, exp.Anonymous):
        name = node.name.lower()
        return name in _BY_NAME or name in _MORE_AGGREGATES
    return isinstance(node, exp.AggFunc)


def canonical_name(call: exp.Expr) -> str:
    """The one name of an aggregate that has several in Spark.

    >>> import sqlglot
    >>> canonical_name(sqlglot.parse_one("mean(x)", read="spark"))
    'AVG'
    """
    name = str(call.sql(dialect="spark")).partition("(")[0]
    return _BY_NAME.get(name.lower(), name.upper())


def take_apart(node: exp.Expr, index: int, attribute: str) -> Aggregate:
    """The aggregate at ``node`` with its parts; ``attribute`` is the windowing attribute as SQL.

    >>> import sqlglot
    >>> take_apart(sqlglot.parse_one("AVG(v)", read="spark"), 0, "ts").lower
    'TRY_DIVIDE(part_0_0, part_0_1)'
    """
    sql = str(node.sql(dialect="spark"))
    condition = ""
    call = node
    if isinstance(node, exp.Filter):
        call = node.this
        condition = f" FILTER ({node.expression.sql(dialect='spark')})"
    name, rest = canonical_name(call), str(call.sql(dialect="spark")).partition("(")[2]
    recipe = _RECIPES.get(name)
    arguments = rest.removesuffix(")")
    one_argument = len(call.args.get("expressions") or []) <= 1
    if isinstance(call, exp.Count) and isinstance(call.this, exp.Distinct) and len(call.this.expressions) == 1:
        # Spark refuses DISTINCT over a stream; the size of a set is the same number.
        recipe, arguments, special_set = _distinct_exactly, call.this.expressions[0].sql(dialect="spark"), True
    else:
        special_set = False
    special = (
        None if special_set else call.find(exp.Distinct, exp.IgnoreNulls, exp.RespectNulls, exp.Order, exp.HavingMax)
    )
    if isinstance(call, exp.ApproxQuantile):
        recipe = _percentile(call)
    if recipe is None or special is not None or not rest.endswith(")") or not one_argument:
        return Aggregate(sql, (), "", _UNMERGEABLE, sql)
    pairs, lower, words = recipe(arguments, attribute)
    if condition and len(pairs) == 1 and pairs[0][0].startswith("NAMED_STRUCT"):
        return Aggregate(sql, (), "", _UNMERGEABLE, sql)
    names = [f"part_{index}_{i}" for i in range(len(pairs))]
    parts = tuple(
        Part(part, lift + condition, combine.format(part)) for part, (lift, combine) in zip(names, pairs, strict=True)
    )
    plain = lower.format(parts[0].lift) if special_set or name in ("FIRST", "LAST") else sql
    operator = () if special_set else _operator(name, arguments, node)
    return Aggregate(sql, parts, lower.format(*names), f"in panes: {words}", plain, operator)


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


def _operator(name: str, arguments: str, node: exp.Expr) -> tuple[tuple[str, str | None], ...]:
    """The aggregate in the window operator: its name there, and its input (None: none, COUNT(*))."""
    known = _OPERATOR_NAMES.get(name)
    if known is None:
        return ()
    value: str | None = f"CAST({arguments} AS DOUBLE)"
    if name == "COUNT":
        value = None if arguments in ("*", "1") else f"IF({arguments} IS NULL, NULL, 1D)"
    elif name == "COUNT_IF":
        value = f"IF({arguments}, 1D, NULL)"
    if isinstance(node, exp.Filter):
        value = f"CASE WHEN {node.expression.this.sql(dialect='spark')} THEN {value or '1D'} END"
    return ((known, value),)
