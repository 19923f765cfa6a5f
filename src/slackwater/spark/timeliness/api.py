"""``with_max_delay``: a timeliness promise, kept by shedding rows that cannot be processed in time."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from slackwater.control.choice import Law
from slackwater.control.shedding.laws.none import NoShedding
from slackwater.errors import InvalidOption, InvalidStream
from slackwater.names import quoted
from slackwater.plan.rewriting import SHED_WEIGHT
from slackwater.promises import Duration, Timeliness
from slackwater.spark.runtime.checks import find_column, require_stream, require_timestamps
from slackwater.spark.runtime.listener import listener_of
from slackwater.spark.runtime.location import mailbox_for
from slackwater.spark.runtime.row_flow import row_flow
from slackwater.spark.runtime.settings import Setting, setting
from slackwater.spark.timeliness.handler import DELAY_PREFIX, TimelinessHandler
from slackwater.spark.timeliness.shed_row import Shed, shed_row
from slackwater.spark.timeliness.source_limits import source_limits
from slackwater.spark.timeliness.tracker import TimelinessSpec
from slackwater.spark.timeliness.utility import cell_column, count_cells, shed_chance, utility_column
from slackwater.spark.worker.columns import COIN, SHED, UTILITY
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
    law: str | Law | None = None,
    shed_by: str | Column | None = None,
    weight: str | None = WEIGHT,
    location: str | None = None,
) -> DataFrame:
    """The same stream, with rows shed so that the mean delay stays at or below ``max_delay``.

    The delay of a row runs from its arrival until the micro-batch that processed it is committed. Window length and
    wait come on top. Every kept row carries the weight 1/(its chance to be kept), so that sums of weights are unbiased:
    see ``estimated_count``, ``estimated_sum``, ``estimated_avg`` and their errors. Rows are shed at random, each with
    the same chance, or with ``shed_by`` the least useful ones first.

    :param events: any streaming DataFrame. Put this right after the source, or after a filter that only compares
        columns with constants, and before ``with_drop_ratio`` and anything costly.
    :param max_delay: the target, such as ``"2 seconds"``.
    :param arrival: a timestamp column that says when the row reached the system. Default: rows are taken to arrive
        evenly between the starts of two micro-batches, which misses the time that they waited in the source.
    :param name: the promise's name in metrics and reports. Give one to keep it across restarts. Default: ``delay-1``
        and so on.
    :param law: how the shed ratio is found: a name of ``slackwater.law_names()``, or ``Law(name, …)`` with options.
        Default: ``spark.slackwater.law``, else ``ctrl-batch``.
    :param shed_by: the utility of a row, a number: a column's name, an expression in Spark SQL or a Column. Rows with
        the lowest utility are shed first; a small sample of them is kept, so that sums and counts stay unbiased. Null
        is the lowest.
    :param weight: the column to add for the weight; None adds none.
    :param location: where to keep what must survive, as in ``with_drop_ratio``.

    It costs one small job per micro-batch, a hash per row while it sheds, and with ``shed_by`` a histogram. Rows are
    shed after the source has read them, so it cannot help a source that is itself too slow. The first micro-batch of a
    burst is processed whole.
    """
    timeliness = Timeliness.of(max_delay)
    require_stream(events, "events")
    arrival = None if arrival is None else find_column(events, "arrival", arrival)
    _check(events, arrival, weight)
    utility = None if shed_by is None else utility_column(events, shed_by)
    chosen_by = None if shed_by is None else str(shed_by)
    spec = _new_promise(events, timeliness, name, law, location, chosen_by)
    # One column for the control row and one for the coin: each further column would be copied with every row, and each
    # further step of the plan would be planned again in every micro-batch.
    cells = [] if utility is None else [cell_column(utility).alias(UTILITY)]
    marked = events.select("*", *cells, shed_row(events.sparkSession, spec.mailbox).alias(SHED))
    # A file without a line has no ratio: nothing is shed.
    ratio, now_us = F.coalesce(F.get(SHED, Shed.RATIO), F.lit(0.0)), F.get(SHED, Shed.NOW_US)
    marked = marked.select("*", F.when(ratio > 0, coin(now_us)).otherwise(F.lit(1.0)).alias(COIN))
    chance, counted = ratio, []
    if utility is not None:
        cell = F.col(UTILITY)
        by_utility = shed_chance(cell, F.col(SHED))
        chance, counted = (
            F.when(ratio > 0, by_utility).otherwise(F.lit(0.0)),
            [count_cells(cell).alias("utilities")],
        )
    keep = F.col(COIN) >= chance
    arrival_us = F.lit(None).cast("bigint") if arrival is None else F.unix_micros(F.col(quoted(arrival)))
    plausible = keep & (arrival_us <= now_us + DAY_US)
    observed = marked.observe(
        DELAY_PREFIX + spec.name,
        F.count(F.lit(1)).alias("rows"),
        F.count(F.when(keep, 1)).alias("kept"),
        F.first(ratio).alias("shed_ratio"),
        F.avg(F.when(plausible, arrival_us)).alias("mean_arrival_us"),
        F.max(F.when(arrival_us <= now_us, arrival_us)).alias("newest_arrival_us"),
        *counted,
    )
    kept = observed.where(keep)
    if weight is not None:
        kept = kept.withColumn(weight, F.lit(1.0) / (F.lit(1.0) - chance))
    return kept.drop(SHED, UTILITY, COIN)


def _new_promise(
    events: DataFrame,
    timeliness: Timeliness,
    name: str | None,
    law: str | Law | None,
    location: str | None,
    shed_by: str | None,
) -> TimelinessSpec:
    """A promise in the charge of the session's handler; refuses an unknown law or option."""
    spark = events.sparkSession
    listener = listener_of(spark)
    chosen_name = listener.handler(TimelinessHandler).fresh_name("delay") if name is None else name
    chosen_law = Law(setting(spark, Setting.LAW) or DEFAULT_SPARK_LAW) if law is None else Law.of(law)
    if shed_by is not None and chosen_law.name == NoShedding.name:
        problem = f"shed_by={shed_by!r} has no effect under the law {chosen_law.name!r}, which sheds nothing"
        raise InvalidOption("option-not-used", problem, "choose another law, or leave out shed_by")
    mailbox = mailbox_for(spark, chosen_name, location)
    spec = TimelinessSpec(
        chosen_name, timeliness, chosen_law, mailbox, source_limits(events), shed_by, row_flow(events)
    )
    spec.new_controller()  # refuses bad options here rather than in the listener
    listener.add(TimelinessHandler, spec)
    return spec


def coin(now_us: Column) -> Column:
    """A random number in [0, 1) per row, different in each micro-batch.

    The time of the micro-batch is part of it, because Spark may or may not seed ``rand()`` again. If it does, the seed
    would be part of the generated code, and Spark would compile that again in every micro-batch. Spark generates no
    code for ``zip_with``, so there the seed is data.
    """
    now = F.array(now_us)
    tossed = F.zip_with(now, now, lambda at, _: F.pmod(F.xxhash64(F.rand(), at), F.lit(_COINS)))
    return tossed[0] / F.lit(float(_COINS))


def _check(events: DataFrame, arrival: str | None, weight: str | None) -> None:
    require_timestamps(events, arrival=arrival)
    if weight is not None and weight in events.columns:
        raise InvalidStream(
            "weight-taken", f"there is a column {weight!r} already", "choose another with weight=, or weight=None"
        )
