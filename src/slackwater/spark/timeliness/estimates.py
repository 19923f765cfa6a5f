"""Unbiased aggregates over a stream with shed rows, with their standard errors.

A row is kept with probability 1/w. Σw and Σw·x then have the right expectation (Horvitz and Thompson), and Σw·(w −
1)·x² estimates the variance of the sum. These are plain columns for ``groupBy(…).agg(…)``. Where nothing was shed they
are exact and the errors are zero.
"""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as F

from slackwater.spark.timeliness.api import WEIGHT


def estimated_count(weight: str = WEIGHT) -> Column:
    """The number of rows, shed ones included."""
    return F.sum(F.col(weight))


def count_error(weight: str = WEIGHT) -> Column:
    """The standard error of ``estimated_count``."""
    return F.sqrt(F.sum(_spread(weight)))


def estimated_sum(column: str, weight: str = WEIGHT) -> Column:
    """The sum over all rows, shed ones included."""
    return F.sum(F.col(weight) * F.col(column))


def sum_error(column: str, weight: str = WEIGHT) -> Column:
    """The standard error of ``estimated_sum``."""
    return F.sqrt(F.sum(_spread(weight) * F.col(column) * F.col(column)))


def estimated_avg(column: str, weight: str = WEIGHT) -> Column:
    """The average over all rows; nearly unbiased (a ratio of two estimates)."""
    return estimated_sum(column, weight) / _weight_of_values(column, weight)


def avg_error(column: str, weight: str = WEIGHT) -> Column:
    """The standard error of ``estimated_avg``, to first order."""
    value, spread = F.col(column), F.when(F.col(column).isNotNull(), _spread(weight))
    mean = estimated_avg(column, weight)
    # Σw(w−1)(x − mean)², multiplied out to need one pass only
    squares = F.sum(spread * value * value) - 2 * mean * F.sum(spread * value) + mean * mean * F.sum(spread)
    return F.sqrt(F.greatest(squares, F.lit(0.0))) / _weight_of_values(column, weight)


def shed_share(weight: str = WEIGHT) -> Column:
    """The estimated share of the group's rows that were shed and that MIN, MAX, first and last have not seen."""
    return F.lit(1.0) - F.count(F.lit(1)) / F.sum(F.col(weight))


def _spread(weight: str) -> Column:
    return F.col(weight) * (F.col(weight) - 1.0)


def _weight_of_values(column: str, weight: str) -> Column:
    return F.sum(F.when(F.col(column).isNotNull(), F.col(weight)))
