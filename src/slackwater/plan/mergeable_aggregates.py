"""How each mergeable aggregate is computed from panes, as Spark SQL: lift, combine, lower."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from sqlglot import exp

from slackwater.language import spark_sql


class PartTemplate(NamedTuple):
    """One column of a pane. In ``combine``, ``{}`` stands for the column.

    ``exact_lift`` replaces ``lift`` if Spark's own aggregate does not return a double (decimals, intervals).
    """

    lift: str
    combine: str
    exact_lift: str | None = None


@dataclass(frozen=True, slots=True)
class Decomposition:
    """An aggregate as parts; in ``lower``, ``{0}``, ``{1}`` … stand for the columns of the parts.

    ``filterable`` tells whether a FILTER clause may follow each lift.
    """

    parts: tuple[PartTemplate, ...]
    lower: str
    description: str
    filterable: bool = True


Decomposer = Callable[[str, str], Decomposition]
"""Takes the arguments of the aggregate and the windowing attribute, both as SQL."""


def _self_merging(function: str) -> Decomposer:
    """An aggregate whose results are merged by the aggregate itself, such as SUM."""

    def decompose(arguments: str, _: str) -> Decomposition:
        return _one_part(f"{function}({arguments})", f"{function}({{}})", "{0}", function.lower())

    return decompose


def _one_part(lift: str, combine: str, lower: str, description: str) -> Decomposition:
    return Decomposition((PartTemplate(lift, combine),), lower, description)


def _count(arguments: str, _: str) -> Decomposition:
    return _one_part(f"COUNT({arguments})", "SUM({})", "{0}", "count")


def _count_if(arguments: str, _: str) -> Decomposition:
    return _one_part(f"COUNT_IF({arguments})", "SUM({})", "{0}", "count")


def _any_value(arguments: str, _: str) -> Decomposition:
    return _one_part(f"ANY_VALUE({arguments})", "ANY_VALUE({}) IGNORE NULLS", "{0}", "any value")


def _avg(arguments: str, _: str) -> Decomposition:
    # Spark's AVG also sums doubles, except for decimals and intervals. A sum of longs could overflow where the average
    # does not. For decimals of more than 24 digits, Spark's division keeps fewer decimal places than its AVG.
    total = PartTemplate(f"SUM(CAST({arguments} AS DOUBLE))", "SUM({})", f"SUM({arguments})")
    count = PartTemplate(f"COUNT({arguments})", "SUM({})")
    return Decomposition((total, count), "TRY_DIVIDE({0}, {1})", "sum and count")


def _moments(*, sample: bool, root: bool) -> Decomposer:
    """Variance, or its root, of a sample or of the whole population."""

    def decompose(arguments: str, _: str) -> Decomposition:
        x = f"CAST({arguments} AS DOUBLE)"
        lift = (
            f"NAMED_STRUCT('n', CAST(COUNT({x}) AS DOUBLE), 'm', COALESCE(AVG({x}), 0D), "
            f"'s', COALESCE(VAR_POP({x}) * COUNT({x}), 0D))"
        )
        # Chan, Golub & LeVeque: parts are merged pairwise, as sums of squares would cancel.
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
        lower = f"CASE WHEN {{0}}.n > {least} THEN {value} END"
        return Decomposition((PartTemplate(lift, combine),), lower, "count, mean and squares", filterable=False)

    return decompose


def _by_attribute(function: str) -> Decomposer:
    """FIRST or LAST by the windowing attribute, since the order of arrival is arbitrary in a stream."""

    def decompose(arguments: str, attribute: str) -> Decomposition:
        lift = f"{function}(NAMED_STRUCT('at', {attribute}, 'value', {arguments}))"
        return _one_part(lift, f"{function}({{}})", "{0}.value", f"{function.lower()} by the windowing attribute")

    return decompose


def _list(arguments: str, _: str) -> Decomposition:
    return _one_part(f"COLLECT_LIST({arguments})", "FLATTEN(COLLECT_LIST({}))", "{0}", "list")


def _set(arguments: str, _: str) -> Decomposition:
    return _one_part(f"COLLECT_SET({arguments})", "ARRAY_DISTINCT(FLATTEN(COLLECT_LIST({})))", "{0}", "set")


def distinct_count(arguments: str, _: str) -> Decomposition:
    """COUNT(DISTINCT x) as the size of a set. Spark refuses DISTINCT over a stream."""
    return Decomposition(_set(arguments, "").parts, "CAST(SIZE({0}) AS BIGINT)", "set")


def approximate_distinct_count(call: exp.ApproxDistinct) -> Decomposer | None:
    """APPROX_COUNT_DISTINCT with the requested accuracy, or None if the accuracy is not a literal in range."""
    accuracy = call.args.get("accuracy")
    size = ""
    if accuracy is not None:
        error = float(accuracy.name) if isinstance(accuracy, exp.Literal) and not accuracy.is_string else 0.0
        if not 0.001 <= error <= 0.25:
            return None
        # Flajolet et al.: 1.04 / √registers
        size = f", {math.ceil(2 * math.log2(1.04 / error))}"
    value = spark_sql(call.this)
    # The value is hashed, as in Spark's own function, since the sketch accepts integers and strings only.
    lift = f"HLL_SKETCH_AGG(IF(({value}) IS NULL, NULL, XXHASH64({value})){size})"
    found = _one_part(lift, "HLL_UNION_AGG({})", "HLL_SKETCH_ESTIMATE({0})", "HyperLogLog sketch")
    return lambda *_: found


def approximate_percentile(call: exp.ApproxQuantile) -> Decomposer:
    """PERCENTILE_APPROX with the requested accuracy."""
    value, share = spark_sql(call.this), spark_sql(call.args["quantile"]).replace("{", "{{").replace("}", "}}")
    accuracy = call.args.get("accuracy")
    error = 1.0 / int(accuracy.name) if isinstance(accuracy, exp.Literal) and accuracy.name.isdigit() else 1e-4
    # Karnin, Lang & Liberty: a rank is off by 2.296 / k^0.9021 at most (99 %); Spark's own promise is 1/accuracy
    k = min(65535, max(8, math.ceil((2.296 / error) ** (1 / 0.9021))))
    lift = f"KLL_SKETCH_AGG_DOUBLE(CAST({value} AS DOUBLE), {k})"
    lower = f"IF(KLL_SKETCH_GET_N_DOUBLE({{0}}) > 0, KLL_SKETCH_GET_QUANTILE_DOUBLE({{0}}, {share}), NULL)"
    found = _one_part(lift, "KLL_MERGE_AGG_DOUBLE({})", lower, "KLL sketch")
    return lambda *_: found


MERGEABLE: dict[str, Decomposer] = {
    "COUNT": _count,
    "COUNT_IF": _count_if,
    "SUM": _self_merging("SUM"),
    "MIN": _self_merging("MIN"),
    "MAX": _self_merging("MAX"),
    "BIT_AND": _self_merging("BIT_AND"),
    "BIT_OR": _self_merging("BIT_OR"),
    "BIT_XOR": _self_merging("BIT_XOR"),
    "BOOL_AND": _self_merging("BOOL_AND"),
    "BOOL_OR": _self_merging("BOOL_OR"),
    "ANY_VALUE": _any_value,
    "AVG": _avg,
    "VARIANCE": _moments(sample=True, root=False),
    "VAR_SAMP": _moments(sample=True, root=False),
    "VAR_POP": _moments(sample=False, root=False),
    "VARIANCE_POP": _moments(sample=False, root=False),
    "STDDEV": _moments(sample=True, root=True),
    "STDDEV_SAMP": _moments(sample=True, root=True),
    "STDDEV_POP": _moments(sample=False, root=True),
    "FIRST": _by_attribute("MIN"),
    "LAST": _by_attribute("MAX"),
    "COLLECT_LIST": _list,
    "COLLECT_SET": _set,
}
"""Decomposers by the canonical name of the aggregate."""
