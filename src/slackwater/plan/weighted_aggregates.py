"""Aggregates over a stream whose rows may have been shed: weighted estimates and their standard errors.

A row is kept with probability 1/w and carries the weight w. Then Σw and Σw·x have the right expectation (Horvitz and
Thompson), and Σw(w − 1)x² estimates the variance of the sum. All parts are sums, so panes merge as usual. If all
weights are 1, the results are exact and the errors are zero.

The errors cannot account for rows that were all shed. An error of zero may also mean that the window had few rows in a
sampled micro-batch and none of them was kept.
"""

from __future__ import annotations

from sqlglot import exp

from slackwater.language import spark_sql
from slackwater.plan.aggregates import Aggregate, Part, part_names
from slackwater.plan.functions import arguments_of, canonical_name

_ESTIMATED = ("COUNT", "COUNT_IF", "SUM", "AVG")
SHED_RATIO = "shed_ratio"


def is_estimated(call: exp.Expr) -> bool:
    """Test whether weights correct this aggregate. Others see only the rows that were kept."""
    inner = call.this if isinstance(call, exp.Filter) else call
    return canonical_name(inner) in _ESTIMATED and inner.find(exp.Distinct) is None


def weighted_estimate(call: exp.Expr, index: int, weight: str) -> Aggregate:
    """Estimate COUNT, SUM or AVG over all rows, including shed ones. The result is a double."""
    name, counted, value = _inputs(call, weight)
    sql = spark_sql(call)
    if name in ("COUNT", "COUNT_IF"):
        return _sums(sql, index, [counted], "COALESCE({0}, 0D)", "sum of weights")
    if name == "SUM":
        return _sums(sql, index, [f"{counted} * {value}"], "{0}", "weighted sum")
    return _sums(sql, index, [f"{counted} * {value}", counted], "TRY_DIVIDE({0}, {1})", "weighted sum and weights")


def standard_error(call: exp.Expr, index: int, weight: str) -> Aggregate:
    """Compute the standard error of ``weighted_estimate``; for AVG it is a first-order approximation."""
    name, counted, value = _inputs(call, weight)
    sql = f"error of {spark_sql(call)}"
    spread = f"{counted} * ({weight} - 1D)"
    if name in ("COUNT", "COUNT_IF"):
        return _sums(sql, index, [spread], "SQRT(COALESCE({0}, 0D))", "squared weights")
    if name == "SUM":
        return _sums(sql, index, [f"{spread} * {value} * {value}"], "SQRT({0})", "weighted squares")
    parts = [f"{spread} * {value} * {value}", f"{spread} * {value}", spread, f"{counted} * {value}", counted]
    mean = "TRY_DIVIDE({3}, {4})"
    # Σw(w−1)(x − mean)², multiplied out so that one pass is enough
    squares = f"{{0}} - 2D * {mean} * {{1}} + {mean} * {mean} * {{2}}"
    return _sums(sql, index, parts, f"TRY_DIVIDE(SQRT(GREATEST({squares}, 0D)), {{4}})", "weighted moments")


def shed_ratio(index: int, weight: str) -> Aggregate:
    """Estimate the share of the window's rows that were shed, which MIN, MAX, FIRST and LAST did not see."""
    lower = "1D - TRY_DIVIDE({0}, {1})"
    return _sums("shed ratio", index, [f"IF({weight} IS NULL, 0D, 1D)", weight], lower, "rows and weights")


def _inputs(call: exp.Expr, weight: str) -> tuple[str, str, str]:
    """Return the aggregate's name, the weight of a row (null if the row does not count), and the value of a row."""
    condition = ""
    inner = call
    if isinstance(call, exp.Filter):
        inner = call.this
        condition = spark_sql(call.expression.this)
    name = canonical_name(inner)
    arguments = [spark_sql(argument) for argument in arguments_of(inner)]
    tests = [condition] if condition else []
    if name == "COUNT_IF":
        tests += arguments
    elif arguments not in (["*"], ["1"]):
        tests += [f"({argument}) IS NOT NULL" for argument in arguments]
    counted = f"CASE WHEN {' AND '.join(f'({test})' for test in tests)} THEN {weight} END" if tests else weight
    return name, f"({counted})", f"CAST({arguments[0]} AS DOUBLE)"


def _sums(sql: str, index: int, inputs: list[str], lower: str, description: str) -> Aggregate:
    """Build an aggregate whose parts are the sums of ``inputs``."""
    names = part_names(index, len(inputs))
    parts = tuple(Part(name, f"SUM({x})", f"SUM({name})") for name, x in zip(names, inputs, strict=True))
    return Aggregate(
        sql,
        parts,
        lower.format(*names),
        f"in panes: {description}",
        lower.format(*(part.lift for part in parts)),
        tuple(("sum", x) for x in inputs),
        lower,
    )
