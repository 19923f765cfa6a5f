"""``standing``: standing aggregates over a stream, evaluated only when their precision requires it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, Literal

import pandas as pd
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructField

from slackwater import units
from slackwater.control.choice import Method
from slackwater.control.deferral import DEFAULT_METHOD, Deferral
from slackwater.errors import InvalidOption
from slackwater.kernel.standing.options import Aggregate, EvaluatorOptions
from slackwater.names import quoted
from slackwater.promises import Duration, Precision
from slackwater.spark.runtime.checks import find_column, require_numbers, require_stream, require_timestamps
from slackwater.spark.runtime.connect import parallelism
from slackwater.spark.runtime.listener import listener_of
from slackwater.spark.runtime.location import driver_mailbox
from slackwater.spark.runtime.settings import Setting, integer_setting
from slackwater.spark.runtime.sharding import MOST_SHARDS, shard_keys
from slackwater.spark.runtime.starting import NO_CONTINUOUS_MODE
from slackwater.spark.runtime.workers import require_slackwater_on_workers
from slackwater.spark.standing.clock import clock_ticks
from slackwater.spark.standing.disordered import Disorder, time_column, with_beats
from slackwater.spark.standing.handler import PrecisionHandler, PrecisionSpec, observe_shard_counts
from slackwater.spark.standing.weights import readable_weights
from slackwater.spark.worker.standing_step import BEAT_US, StandingStep
from slackwater.spark.worker.weights_table import WeightsTable


def standing(
    values: DataFrame,
    *,
    key: str,
    event_time: str,
    value: str,
    weights: DataFrame | str,
    query: str = "query",
    weight: str = "weight",
    within: str | float | None,
    confidence: str | float | None,
    aggregate: Literal["sum", "max", "min"] = "sum",
    window: Duration | None = None,
    landmark: Any = None,
    tick: Duration = "1 second",
    shards: int | None = None,
    deferral: str | Deferral = DEFAULT_METHOD,
    drop_ratio: str | float | None = None,
    arrival: str | None = None,
    source: str | list[str] | None = None,
    method: str | Method | None = None,
    name: str | None = None,
    location: str | None = None,
    _clock_file: str | None = None,
    _limited: bool = True,
) -> DataFrame:
    """Answers of standing queries. Each is within ``within`` of the truth until the next, with ``confidence``.

    A query is a weighted sum over streams, or the largest or smallest value of that sum in a moving window or since a
    landmark. The result has one row per evaluation: the query, ``at``, ``value``, ``drift`` (per second),
    ``error_bound``, ``interrupted_streams``, ``next_evaluation_at``. A query over a stream that has no row yet gets one
    row without a value, in which ``interrupted_streams`` counts such streams. It is answered when they appear.

    :param values: a streaming DataFrame with a key, an event time and a value per row. Each key is one stream.
    :param weights: the queries, in the columns ``query``, ``key`` and ``weight``. A folder of Parquet files, or a
        Parquet table, is read again when its files change, so that queries can come, change and go while the stream
        runs. A DataFrame or a view is taken as it is now.
    :param query: the column of the weights with the query's id, a string or an integer.
    :param weight: the column of the weights with the weight of a stream in a query.
    :param within: the bound: ``0.5``, or ``"1%"`` of the answer. None takes the column "within" of the weights.
    :param confidence: ``0.9`` or ``"95%"``. None takes the column "confidence" of the weights.
    :param aggregate: ``sum`` (for an average use weights of 1/n), or ``max`` or ``min`` with ``window`` or
        ``landmark``.
    :param tick: the clock's tick. Silent streams are noticed by it even when no row comes.
    :param shards: the number of tasks that share the queries; by default ``spark.slackwater.shards``, else two per
        core. State cannot move to another number of shards: set it if the number of cores may change.
    :param deferral: the deferral method, as a name or with options: ``sw.Deferral("calibrated", k=200)``.
    :param drop_ratio: with it, the stream may be disordered: rows wait until the heartbeat is past them and are taken
        in the order of their times; at most this share of them is late. The completeness promise is named
        ``<name>-dratio``; ``arrival``, ``source`` and ``method`` are its options, as in ``with_drop_ratio``.
    :param name: the promise's name in metrics and reports, stable over restarts; by default ``standing-1`` and so on.
    :param location: the folder for the promise's history, and for ``weights`` given as a DataFrame; as in
        ``with_drop_ratio``.

    Every row goes to every shard. A shard writes its whole state (about 60 bytes per query and 24·k bytes per stream)
    to Spark's state store in every micro-batch. Within a micro-batch rows are taken in the order of their times. A row
    is out of order if it is not newer than the newest row of its stream. It is invalid without a key or a finite time
    and value, or if it is stamped more than an hour after the clock. Both are left out and counted:
    input = used + out of order + invalid.
    """
    require_stream(values, "values")
    key, event_time = find_column(values, "key", key), find_column(values, "event_time", event_time)
    value = find_column(values, "value", value)
    require_timestamps(values, event_time=event_time)
    require_numbers(values, value=value)
    Precision.of(0.0 if within is None else within, 0.5 if confidence is None else confidence)
    if aggregate not in ("sum", "max", "min"):
        raise InvalidOption("invalid-aggregate", f"there is no aggregate {aggregate!r}", "use sum, max or min")
    spark = values.sparkSession
    window_ms = None if window is None else units.duration_ms(window, option="window")
    options = evaluator_options(spark, "linear" if aggregate == "sum" else aggregate, window_ms, landmark, deferral)
    options.check_order(limited=_limited)
    disorder = disorder_of(drop_ratio, arrival, source, method)
    count = shard_count(spark, shards)
    spec = new_precision(spark, confidence, options, count, name, location)
    table, id_type = readable_weights(
        spark, weights, WeightsTable("", query, key, weight, within, confidence, count), spec.name, location
    )
    columns = (every_shard(count), F.col(quoted(key)).cast("string").alias("stream"))
    rows = shard_rows(values, columns, event_time, value, disorder, spec, location)
    ticks = clock_ticks(spark, units.duration_ms(tick, option="tick"), _clock_file)
    share = processor_share(spark, count) if _limited else None
    step = StandingStep(table, options, StructField(query, id_type), copied_rows=True, processor_share=share)
    step = replace(step, held=disorder is not None)
    return evaluate(rows, ticks, step, spec)


def evaluator_options(
    spark: SparkSession, aggregate: Aggregate, window_ms: float | None, landmark: Any, deferral: str | Deferral
) -> EvaluatorOptions:
    """The evaluator's options, from a user's."""
    chosen = Deferral.of(deferral)
    return EvaluatorOptions(
        aggregate=aggregate,
        window=window_ms,
        landmark=None if landmark is None else _landmark_ms(spark, landmark),
        method=chosen.method,
        k=chosen.k,
        t_max=chosen.t_max_ms,
        while_interrupted=chosen.while_interrupted_ms,
        capacity=chosen.capacity,
        order=chosen.order,
        value_and_drift=chosen.value_and_drift,
        sum_of_errors=chosen.sum_of_errors,
    )


def shard_count(spark: SparkSession, shards: int | None) -> int:
    """The number of shards: the argument, the session's setting, or two per core."""
    chosen = integer_setting(spark, Setting.SHARDS) if shards is None else shards
    count = 2 * parallelism(spark) if chosen is None else chosen
    if not 1 <= count <= MOST_SHARDS:
        raise InvalidOption("invalid-shards", f"shards={count} is out of range", f"use 1 to {MOST_SHARDS}")
    return count


def processor_share(spark: SparkSession, shards: int) -> float:
    """The share of a processor that each shard has, if all run at the same speed."""
    partitions = int(spark.conf.get("spark.sql.shuffle.partitions") or shards)
    return min(1.0, min(parallelism(spark), partitions) / shards)


def fresh_standing_name(spark: SparkSession) -> str:
    """A name that no precision promise of the session has."""
    return listener_of(spark).handler(PrecisionHandler).fresh_name("standing")


def new_precision(
    spark: SparkSession,
    confidence: str | float | None,
    options: EvaluatorOptions,
    shards: int,
    name: str | None,
    location: str | None,
) -> PrecisionSpec:
    """A precision promise, registered with the session's listener."""
    require_slackwater_on_workers(spark)
    listener = listener_of(spark)
    chosen = fresh_standing_name(spark) if name is None else name
    asked = None if confidence is None else units.ratio(confidence, option="confidence")
    spec = PrecisionSpec(chosen, asked, options.method, shards, driver_mailbox(spark, chosen, location))
    listener.add(PrecisionHandler, spec)
    return spec


def every_shard(shards: int) -> Column:
    """A row for every shard."""
    return F.explode(F.array(*(F.lit(key) for key in shard_keys(shards)))).alias("shard")


def time_and_value(time: str, value: str) -> tuple[Column, Column]:
    """A row's time and value as the shards expect them."""
    return (
        F.unix_micros(F.col(quoted(time)).cast("timestamp")).alias("at_us"),
        F.col(quoted(value)).cast("double").alias("value"),
    )


def disorder_of(
    drop_ratio: str | float | None,
    arrival: str | None,
    source: str | list[str] | None,
    method: str | Method | None,
) -> Disorder | None:
    """The completeness promise; refuses its options without it."""
    if drop_ratio is not None:
        return Disorder(drop_ratio, arrival, source, method)
    for option, given in (("arrival", arrival), ("source", source), ("method", method)):
        if given:
            raise InvalidOption(
                "option-not-used", f"{option}={given!r} has no effect without drop_ratio", f"leave out {option}"
            )
    return None


def shard_rows(
    values: DataFrame,
    columns: tuple[Column, Column],
    event_time: str,
    value: str,
    disorder: Disorder | None,
    spec: PrecisionSpec,
    location: str | None,
) -> DataFrame:
    """The rows for the shards: ``shard``, ``stream``, ``at_us`` and ``value``; under disorder, with heartbeats.

    :param columns: the shard and the stream of a row.
    """
    if disorder is None:
        return values.alias(NO_CONTINUOUS_MODE).select(*columns, *time_and_value(event_time, value))
    promise = disorder.promise(values, event_time, spec.name, location)
    on_time = disorder.on_time(values, promise)
    rows = on_time.select(*columns, *time_and_value(event_time, value), time_column(event_time).alias("time"))
    return with_beats(rows, F.col("time"), promise, spec.shards)


def evaluate(rows: DataFrame, ticks: DataFrame, step: StandingStep, spec: PrecisionSpec) -> DataFrame:
    """The answers of all shards.

    :param rows: a stream with the columns ``shard``, ``stream``, ``at_us`` and ``value``, as ``shard_rows`` makes it.
    :param ticks: a stream of clock ticks. Every shard gets all of them.
    """
    keys = shard_keys(spec.shards)
    missing = F.lit(None)
    clock = ticks.select(
        every_shard(spec.shards),
        missing.cast("string").alias("stream"),
        missing.cast("long").alias("at_us"),
        missing.cast("double").alias("value"),
        "clock_ms",
    )

    def run_shard(key: Any, parts: Iterator[pd.DataFrame], state: Any) -> Iterator[pd.DataFrame]:
        return step.run(keys.index(int(key[0])), parts, state)

    if step.held:
        clock = clock.withColumn(BEAT_US, missing.cast("long"))
    answers = (
        rows.withColumn("clock_ms", missing.cast("long"))
        .unionByName(clock)
        .groupBy("shard")
        .applyInPandasWithState(run_shard, step.schema, step.state_schema, "append", "NoTimeout")
    )
    return observe_shard_counts(answers, spec.name)


def _landmark_ms(spark: SparkSession, landmark: Any) -> float:
    try:
        at = pd.Timestamp(landmark)
    except (ValueError, TypeError) as error:
        raise InvalidOption(
            "invalid-landmark", f"landmark={landmark!r} is not a point in time", "write '2024-01-31 12:00:00'"
        ) from error
    if at.tzinfo is None:
        at = at.tz_localize(spark.conf.get("spark.sql.session.timeZone") or "UTC")
    return float(at.timestamp() * units.SECOND_MS)
