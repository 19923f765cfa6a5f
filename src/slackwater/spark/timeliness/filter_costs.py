"""``filter_costs``: measures on recorded rows whether a filter should go before shedding or after it."""

from __future__ import annotations

from pyspark.errors import AnalysisException
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from slackwater.control.shedding.filter_costs import FilterCosts
from slackwater.errors import InvalidOption, InvalidStream
from slackwater.plan.filter_first import calls_only_spark
from slackwater.spark.runtime.error_summary import error_summary
from slackwater.spark.timeliness.api import coin

_ROWS = 200_000
_WARM_UP = 2
"""Passes over the rows before the one that counts, so that Java has compiled everything."""
_LONGEST_NS = 100_000
"""A step that took longer was probably interrupted by something else."""
_STEPS = "__sw_steps"


def filter_costs(rows: DataFrame, where: str) -> FilterCosts:
    """What a filter and shedding cost per row, measured on recorded rows: which of them should come first.

    If ``first_up_to`` is above the shed ratios that you expect, filter before ``with_max_delay``, else after it.

    :param rows: recorded rows, a batch; at most 200 000 of them are used.
    :param where: the condition, in Spark SQL. Functions in Python are refused: Spark computes them for all rows of a
        stage at once, so their time cannot be told apart; they belong after shedding.

    The times are those of Java's clock around each step, minus what reading the clock takes. It costs three passes over
    the rows, and a busy machine makes the times longer, though hardly their ratio.
    """
    if rows.isStreaming:
        raise InvalidStream("not-a-batch", "filter_costs measures on recorded rows", "read some with spark.read")
    if not calls_only_spark(where):
        problem = f"where={where!r} is no condition of columns and functions of Spark"
        raise InvalidOption("wrong-where", problem, "filter after with_max_delay what calls functions in Python")
    now_us = F.lit(0).cast("bigint")
    passes = F.coalesce(F.expr(where), F.lit(False)).cast("bigint")
    steps = F.array(_now_ns(), passes, _now_ns(), F.ceil(coin(now_us)), _now_ns(), _now_ns())
    try:
        measured = rows.limit(_ROWS).select(steps.alias(_STEPS))
    except AnalysisException as error:
        raise InvalidStream(
            "wrong-where",
            f"where={where!r} is not a condition over the rows: {error_summary(error)}",
            f"use these columns: {', '.join(rows.columns)}",
        ) from error
    totals = measured.select(
        F.count(F.lit(1)), F.avg(F.get(_STEPS, 1)), _mean_between(0, 2), _mean_between(2, 4), _mean_between(4, 5)
    )
    count, pass_ratio, filter_ns, shedding_ns, clock_ns = [totals.collect()[0] for _ in range(_WARM_UP + 1)][-1]
    if not count:
        raise InvalidStream("no-rows", "there is no row to measure on", "give recorded rows of the stream")
    return FilterCosts(where, max(filter_ns - clock_ns, 0.0), max(shedding_ns - clock_ns, 0.0), float(pass_ratio))


def _now_ns() -> Column:
    return F.call_function("reflect", F.lit("java.lang.System"), F.lit("nanoTime")).cast("bigint")


def _mean_between(start: int, end: int) -> Column:
    return F.avg(F.least(F.get(_STEPS, end) - F.get(_STEPS, start), F.lit(_LONGEST_NS)))
