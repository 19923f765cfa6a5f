"""``with_max_delay``: a timeliness promise, kept by shedding what cannot be processed in time."""

from __future__ import annotations

from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import TimestampType

from slackwater.control.choice import Law
from slackwater.errors import InvalidStream
from slackwater.names import quoted
from slackwater.plan.planner import SHED_WEIGHT
from slackwater.promises import Duration, Timeliness
from slackwater.spark.runtime.listener import listener_of
from slackwater.spark.runtime.location import mailbox_for
from slackwater.spark.timeliness.handler import DELAY_PREFIX
from slackwater.spark.timeliness.shed_row import shed_row
from slackwater.spark.timeliness.tracker import TimelinessSpec
from slackwater.units import DAY_US

DEFAULT_SPARK_LAW = "ctrl-batch"
WEIGHT = SHED_WEIGHT
_COINS = 1 << 53


def with_max_delay(
    events: DataFrame,
    max_delay: Duration,
    *,
    arrival: str | None = None,
    name: str | None = None,
    law: str | Law = DEFAULT_SPARK_LAW,
    weight: str | None = WEIGHT,
    location: str | None = None,
) -> DataFrame:
    """The same stream, of which so much is shed at random that the mean delay stays at or below ``max_delay``.

    The delay of a row runs from its arrival until the micro-batch that processed it has been committed; window length
    and wait come on top. Every kept row carries the weight 1/(1 − shed ratio) of its micro-batch, so that sums
    of weights are unbiased: see ``estimated_count``, ``estimated_sum``, ``estimated_avg`` and their errors.

    :param events: any streaming DataFrame; put this right after the source, before ``with_drop_ratio``.
    :param max_delay: the target, such as ``"2 seconds"``.
    :param arrival: a timestamp column that says when the row reached the system; else rows are taken to arrive evenly
        between the starts of two micro-batches, which misses the time that they waited in the source.
    :param name: of the promise, in metrics and reports, stable over restarts; else ``delay-1`` and so on.
    :param law: how the ratio is found: a name of ``slackwater.law_names()``, or ``Law(name, …)`` with options.
    :param weight: the column to add for the weight; None adds none.
    :param location: a folder seen by the driver and all executors, as in ``with_drop_ratio``.

    It costs one small job a micro-batch (some 55 ms with its planning), and a hash a row while it sheds. Rows are shed
    after the source has read them, so a source that cannot keep up by itself cannot be helped. The first micro-batch
    of a burst is processed whole.
    """
    timeliness = Timeliness.of(max_delay)
    _check(events, arrival, weight)
    spark = events.sparkSession
    listener = listener_of(spark)
    chosen_name = _fresh_name(listener.has_delay) if name is None else name
    spec = TimelinessSpec(chosen_name, timeliness, Law.of(law), mailbox_for(spark, chosen_name, location))
    spec.new_controller()  # refuses an unknown law now, not in a listener
    listener.add_delay(spec)
    # One column for the control row, one for the coin: a further one would be written out with every row, and a further
    # step of the plan be planned anew in every micro-batch.
    marked = events.select("*", shed_row(spark, spec.mailbox).alias("__sw_shed"))
    # without a line in its file there is no ratio, and nothing is shed
    ratio, now_us = F.coalesce(F.col("__sw_shed")[0], F.lit(0.0)), F.col("__sw_shed")[1]
    marked = marked.select("*", F.when(ratio > 0, _coin(now_us)).otherwise(F.lit(1.0)).alias("__sw_coin"))
    keep = F.col("__sw_coin") >= ratio
    arrival_us = F.lit(None).cast("bigint") if arrival is None else F.unix_micros(F.col(quoted(arrival)))
    believable = keep & (arrival_us <= now_us + DAY_US)
    observed = marked.observe(
        DELAY_PREFIX + spec.name,
        F.count(F.lit(1)).alias("rows"),
        F.count(F.when(keep, 1)).alias("kept"),
        F.first(ratio).alias("shed_ratio"),
        F.avg(F.when(believable, arrival_us)).alias("mean_arrival_us"),
    )
    kept = observed.where(keep)
    if weight is not None:
        kept = kept.withColumn(weight, F.lit(1.0) / (F.lit(1.0) - ratio))
    return kept.drop("__sw_shed", "__sw_coin")


def _coin(now_us: Column) -> Column:
    """A number between 0 and 1 for each row.

    The time of the micro-batch makes another one of it in each, whether Spark seeds ``rand()`` anew or not. Where it
    does, the seed would stand in the generated code, which Spark would compile anew for each micro-batch, also while
    nothing is shed; within ``zip_with``, for which Spark generates none, it is data.
    """
    now = F.array(now_us)
    tossed = F.zip_with(now, now, lambda at, _: F.pmod(F.xxhash64(F.rand(), at), F.lit(_COINS)))
    return tossed[0] / F.lit(float(_COINS))


def _check(events: DataFrame, arrival: str | None, weight: str | None) -> None:
    if not isinstance(events, DataFrame):
        raise InvalidStream("not-a-dataframe", f"{type(events).__name__} is no DataFrame", "pass a streaming DataFrame")
    if not events.isStreaming:
        raise InvalidStream("not-a-stream", "the DataFrame is a batch, which has no delay", "read it with readStream")
    if arrival is not None and arrival not in events.columns:
        raise InvalidStream(
            "no-such-column", f"arrival={arrival!r} is not a column", f"use one of: {', '.join(events.columns)}"
        )
    if arrival is not None and not isinstance(events.schema[arrival].dataType, TimestampType):
        kind = events.schema[arrival].dataType.simpleString()
        raise InvalidStream(
            "not-a-timestamp", f"arrival={arrival!r} is a {kind}", f"cast it first, as in to_timestamp({arrival})"
        )
    if weight is not None and weight in events.columns:
        raise InvalidStream(
            "weight-taken", f"there is a column {weight!r} already", "choose another with weight=, or weight=None"
        )


def _fresh_name(taken: Any) -> str:
    number = 1
    while taken(f"delay-{number}"):
        number += 1
    return f"delay-{number}"
