"""Spark's aggregate functions and their synonyms."""

from __future__ import annotations

from sqlglot import exp

from slackwater.language import spark_sql

# fmt: off
AGGREGATES = frozenset({
    "any", "any_value", "approx_count_distinct", "approx_percentile", "approx_top_k", "approx_top_k_accumulate",
    "approx_top_k_combine", "array_agg", "avg", "bit_and", "bit_or", "bit_xor", "bitmap_and_agg",
    "bitmap_construct_agg", "bitmap_or_agg", "bool_and", "bool_or", "collect_list", "collect_set", "collect_union",
    "corr", "count", "count_if", "count_min_sketch", "covar_pop", "covar_samp", "every", "first", "first_value",
    "histogram_numeric", "hll_sketch_agg", "hll_union_agg", "kll_merge_agg_bigint", "kll_merge_agg_double",
    "kll_merge_agg_float", "kll_sketch_agg_bigint", "kll_sketch_agg_double", "kll_sketch_agg_float", "kurtosis",
    "last", "last_value", "listagg", "max", "max_by", "mean", "median", "min", "min_by", "mode", "percentile",
    "percentile_approx", "percentile_cont", "percentile_disc", "regr_avgx", "regr_avgy", "regr_count",
    "regr_intercept", "regr_r2", "regr_slope", "regr_sxx", "regr_sxy", "regr_syy", "schema_of_variant_agg",
    "skewness", "some", "std", "stddev", "stddev_pop", "stddev_samp", "string_agg", "sum", "theta_intersection_agg",
    "theta_sketch_agg", "theta_union_agg", "try_avg", "try_sum", "tuple_intersection_agg_double",
    "tuple_intersection_agg_integer", "tuple_sketch_agg_double", "tuple_sketch_agg_integer",
    "tuple_union_agg_double", "tuple_union_agg_integer", "var_pop", "var_samp", "variance", "vector_avg",
    "vector_sum",
})
# fmt: on
"""The aggregates of Spark 4.3, without GROUPING and GROUPING_ID (for CUBE) and MEASURE (for metric views)."""

_CANONICAL_NAMES = {
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
MODIFIERS = (exp.Filter, exp.IgnoreNulls, exp.RespectNulls, exp.WithinGroup)
"""Nodes that wrap a call of an aggregate."""


def is_aggregate(node: exp.Expr) -> bool:
    """Test whether a node is a call of an aggregate function, with or without modifiers (FILTER, WITHIN GROUP …).

    >>> import sqlglot
    >>> is_aggregate(sqlglot.parse_one("mean(x)", read="spark")), is_aggregate(sqlglot.parse_one("abs(x)"))
    (True, False)
    """
    if isinstance(node, MODIFIERS):
        return is_aggregate(node.this)
    if isinstance(node, exp.Any):  # excludes x LIKE ANY ('a', 'b') and ANY of a subquery
        return isinstance(node.this, exp.Paren) and not isinstance(node.parent, exp.Like | exp.ILike)
    if isinstance(node, exp.Anonymous):
        return node.name.lower() in AGGREGATES
    return isinstance(node, exp.AggFunc)


def canonical_name(call: exp.Expr) -> str:
    """Return one name for an aggregate that has several in Spark.

    >>> import sqlglot
    >>> canonical_name(sqlglot.parse_one("mean(x)", read="spark"))
    'AVG'
    """
    name = spark_sql(call).partition("(")[0].strip()
    return _CANONICAL_NAMES.get(name.lower(), name.upper())


def arguments_of(call: exp.Expr) -> list[exp.Expr]:
    """Return the arguments of a call, in order.

    >>> import sqlglot
    >>> [str(argument) for argument in arguments_of(sqlglot.parse_one("COUNT(a, b)", read="spark"))]
    ['a', 'b']
    """
    first = [] if isinstance(call, exp.Anonymous | exp.AnonymousAggFunc) else [call.this]
    return [argument for argument in [*first, *call.expressions] if isinstance(argument, exp.Expr)]
