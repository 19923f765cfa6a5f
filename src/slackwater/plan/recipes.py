"""How panes are made for each aggregate that can be merged: lift, combine, lower."""

from __future__ import annotations

import math
from collections.abc import Callable

from sqlglot import exp

from slackwater.language import spark_sql

# One recipe makes (lift, combine) pairs and a way to lower them; "{}" is the part's own column. A third one lifts what
# is no double in Spark.
Lifted = tuple[str, str] | tuple[str, str, str]
Recipe = Callable[[str, str], tuple[list[Lifted], str, str]]


def _same(function: str) -> Recipe:
    return lambda arguments, _: ([(f"{function}({arguments})", f"{function}({{}})")], "{0}", function.lower())


def _count(arguments: str, _: str) -> tuple[list[Lifted], str, str]:
    return [(f"COUNT({arguments})", "SUM({})")], "{0}", "count"


def _avg(arguments: str, _: str) -> tuple[list[Lifted], str, str]:
    # Spark's own AVG sums doubles too, unless of decimals or intervals; a sum of longs could overflow where the average
    # does not. Spark's division leaves decimals of more than 24 digits fewer behind the point than its AVG.
    total = (f"SUM(CAST({arguments} AS DOUBLE))", "SUM({})", f"SUM({arguments})")
    parts: list[Lifted] = [total, (f"COUNT({arguments})", "SUM({})")]
    return parts, "TRY_DIVIDE({0}, {1})", "sum and count"


def _moments(sample: bool, root: bool) -> Recipe:
    def recipe(arguments: str, _: str) -> tuple[list[Lifted], str, str]:
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


def _edge(function: str) -> Recipe:
    def recipe(arguments: str, attribute: str) -> tuple[list[Lifted], str, str]:
        # In a stream, first and last mean by the windowing attribute: arrival order is an accident.
        lift = f"{function}(NAMED_STRUCT('at', {attribute}, 'value', {arguments}))"
        return [(lift, f"{function}({{}})")], "{0}.value", f"{function.lower()} by the windowing attribute"

    return recipe


def distinct_nearly(call: exp.ApproxDistinct) -> Recipe | None:
    """APPROX_COUNT_DISTINCT, as accurate as it is said to be; None if that is no number."""
    accuracy = call.args.get("accuracy")
    size = ""
    if accuracy is not None:
        error = float(accuracy.name) if isinstance(accuracy, exp.Literal) and not accuracy.is_string else 0.0
        if not 0.001 <= error <= 0.25:
            return None
        # Flajolet et al.: 1.04 / √registers
        size = f", {math.ceil(2 * math.log2(1.04 / error))}"
    value = spark_sql(call.this)
    # By its hash, as in Spark's own: the sketch takes whole numbers and texts only.
    parts: list[Lifted] = [
        (f"HLL_SKETCH_AGG(IF(({value}) IS NULL, NULL, XXHASH64({value})){size})", "HLL_UNION_AGG({})")
    ]
    return lambda *_: (parts, "HLL_SKETCH_ESTIMATE({0})", "HyperLogLog sketch")


def distinct_exactly(arguments: str, _: str) -> tuple[list[Lifted], str, str]:
    pairs, _lower, _words = _set(arguments, "")
    return pairs, "CAST(SIZE({0}) AS BIGINT)", "set"


def percentile(call: exp.ApproxQuantile) -> Recipe:
    value, share = spark_sql(call.this), spark_sql(call.args["quantile"]).replace("{", "{{").replace("}", "}}")
    accuracy = call.args.get("accuracy")
    error = 1.0 / int(accuracy.name) if isinstance(accuracy, exp.Literal) and accuracy.name.isdigit() else 1e-4
    # Karnin, Lang & Liberty: a rank is off by 2.296 / k^0.9021 at most (99 %); Spark's own promise is 1/accuracy
    k = min(65535, max(8, math.ceil((2.296 / error) ** (1 / 0.9021))))
    parts: list[Lifted] = [(f"KLL_SKETCH_AGG_DOUBLE(CAST({value} AS DOUBLE), {k})", "KLL_MERGE_AGG_DOUBLE({})")]
    lower = f"IF(KLL_SKETCH_GET_N_DOUBLE({{0}}) > 0, KLL_SKETCH_GET_QUANTILE_DOUBLE({{0}}, {share}), NULL)"
    return lambda *_: (parts, lower, "KLL sketch")


def _list(arguments: str, _: str) -> tuple[list[Lifted], str, str]:
    return [(f"COLLECT_LIST({arguments})", "FLATTEN(COLLECT_LIST({}))")], "{0}", "list"


def _set(arguments: str, _: str) -> tuple[list[Lifted], str, str]:
    return [(f"COLLECT_SET({arguments})", "ARRAY_DISTINCT(FLATTEN(COLLECT_LIST({})))")], "{0}", "set"


RECIPES: dict[str, Recipe] = {
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
    "ANY_VALUE": lambda arguments, _: ([(f"ANY_VALUE({arguments})", "ANY_VALUE({}) IGNORE NULLS")], "{0}", "any value"),
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
    "COLLECT_LIST": _list,
    "COLLECT_SET": _set,
}
