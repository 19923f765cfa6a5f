"""``standing``: standing aggregates over a stream, evaluated only when their precision demands it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Literal

import numpy as np
import pandas as pd
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import (
    DataType,
    DoubleType,
    IntegerType,
    LongType,
    NumericType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from slackwater import units
from slackwater.control.deferral import DEFAULT_K, DEFAULT_METHOD
from slackwater.errors import InvalidOption, InvalidStream
from slackwater.kernel.standing.options import EvaluatorOptions
from slackwater.kernel.standing.shard import Shard, known_streams
from slackwater.kernel.standing.weights import ShardWeights
from slackwater.names import quoted
from slackwater.promises import Duration, Precision
from slackwater.spark.runtime.listener import listener_of
from slackwater.spark.runtime.location import driver_folder, mailbox_for
from slackwater.spark.runtime.sharding import MOST_SHARDS, shard_keys
from slackwater.spark.standing.clock import clock_ticks
from slackwater.spark.standing.handler import (
    SHARD_COUNTS_TYPE,
    PrecisionHandler,
    PrecisionSpec,
    observe_shard_counts,
    shard_counts_row,
)
from slackwater.spark.worker.columns import SHARD_COUNTS
from slackwater.spark.worker.settle import settle_worker
from slackwater.spark.worker.state_text import as_text, from_text
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
    method: str = DEFAULT_METHOD,
    k: int = DEFAULT_K,
    t_max: Duration | None = None,
    while_interrupted: Duration | None = None,
    capacity: int | None = None,
    value_and_drift: bool = False,
    name: str | None = None,
    location: str | None = None,
    clock_file: str | None = None,
) -> DataFrame:
    """Answers of standing queries: each stays within ``within`` of the truth with ``confidence`` until the next one.

    A query is a weighted sum over streams, or the largest or smallest value of that sum in a moving window or since a
    landmark. The result has a row an evaluation: the query, ``at``, ``value``, ``drift`` (per second), ``error_bound``,
    ``interrupted_streams``, ``next_evaluation_at``. A query that leans on a stream never seen has one row without a
    value, whose ``interrupted_streams`` counts those streams, and is answered when they appear.

    :param values: a streaming DataFrame of rows: the stream's key, its event time, its value.
    :param weights: a folder of Parquet files, or the name of a Parquet table, with the columns ``query``, ``key``
        and ``weight``: looked at in every micro-batch and read again when its files change, so that queries come,
        change and go while the stream runs. Or a DataFrame (or a view), taken as it is now.
    :param query: the column of the weights that names the query, a string or an integer.
    :param within: ``0.5`` or ``"1%"`` of the answer; None takes the column "within" of the weights.
    :param confidence: ``0.9`` or ``"95%"``; None takes the column "confidence" of the weights.
    :param aggregate: ``sum`` (an average has weights of 1/n), or ``max`` or ``min`` with ``window`` or ``landmark``.
    :param tick: the clock's tick, by which interrupted streams are noticed even when no row comes at all.
    :param shards: tasks that share the queries; two a core unless given. State belongs to a number of shards: give it
        where the number of cores may change between restarts.
    :param method: how long answers may stand: ``calibrated``, ``economical`` or ``brownian``.
    :param k: rows of a stream that its drift and diffusion are estimated from.
    :param t_max: the longest time between two estimates of a stream; a quarter of what they look back on unless given.
    :param while_interrupted: the time between answers while a stream is silent; five ticks unless given.
    :param capacity: the most evaluations of a shard in a micro-batch. Where more are due, those come first whose error
        grows most per unit of work, and the others stay due.
    :param value_and_drift: answers are meant to move on by their drift until the next one.
    :param name: of the promise, in metrics and reports, stable over restarts; else ``standing-1`` and so on.
    :param location: where its history is kept, and ``weights`` that are a DataFrame; as in ``with_drop_ratio``.
    :param clock_file: a file that holds the clock in milliseconds, in the place of the machine's.

    Each row goes to every shard, and each shard's state (some 40 bytes a query, 24·k a stream) is written to Spark's
    state store in every micro-batch. Within a micro-batch rows are taken in the order of their times; a row not later
    than the newest one of its stream, or stamped an hour after the clock, is left out.
    """
    if not isinstance(values, DataFrame) or not values.isStreaming:
        raise InvalidStream("not-a-stream", "values is no streaming DataFrame", "read it with spark.readStream")
    spark = values.sparkSession
    _check_columns(values, key, event_time, value)
    Precision.of(0.0 if within is None else within, 0.5 if confidence is None else confidence)
    if aggregate not in ("sum", "max", "min"):
        raise InvalidOption("invalid-aggregate", f"aggregate={aggregate!r}", "use sum, max or min")
    options = EvaluatorOptions(
        aggregate="linear" if aggregate == "sum" else aggregate,
        window=_ms(window, "window"),
        landmark=None if landmark is None else landmark_ms(spark, landmark),
        method=method,
        k=k,
        t_max=_ms(t_max, "t_max"),
        while_interrupted=_ms(while_interrupted, "while_interrupted"),
        capacity=capacity,
        value_and_drift=value_and_drift,
    )
    count = 2 * spark.sparkContext.defaultParallelism if shards is None else shards
    if not 1 <= count <= MOST_SHARDS:
        raise InvalidOption("invalid-shards", f"shards={shards}", f"use 1 to {MOST_SHARDS}")
    spec = new_precision(spark, confidence, options, count, name, location)
    table, kind = _weights(
        spark, weights, WeightsTable("", query, key, weight, within, confidence, count), spec.name, location
    )
    rows = values.where(F.col(quoted(key)).isNotNull()).select(
        F.explode(F.array(*(F.lit(shard) for shard in shard_keys(count)))).alias("shard"),
        F.col(quoted(key)).cast("string").alias("stream"),
        *time_and_value(event_time, value),
    )
    ticks = clock_ticks(spark, units.duration_ms(tick, option="tick"), clock_file)
    return evaluated(rows, ticks, table.shard_of, options, spec, StructField(query, kind))


def new_precision(
    spark: SparkSession,
    confidence: str | float | None,
    options: EvaluatorOptions,
    shards: int,
    name: str | None,
    location: str | None,
) -> PrecisionSpec:
    """A precision promise in the listener's charge."""
    listener = listener_of(spark)
    chosen = listener.handler(PrecisionHandler).fresh_name("standing") if name is None else name
    asked = None if confidence is None else units.ratio(confidence, option="confidence")
    spec = PrecisionSpec(chosen, asked, options.method, shards, driver_folder(spark, chosen, location))
    listener.add(PrecisionHandler, spec)
    return spec


def _ms(duration: Duration | None, option: str) -> float | None:
    return None if duration is None else units.duration_ms(duration, option=option)


def time_and_value(time: str, value: str) -> tuple[Column, Column]:
    """A row's time and value as the shards take them."""
    return (
        F.unix_micros(F.col(quoted(time)).cast("timestamp")).alias("at_us"),
        F.col(quoted(value)).cast("double").alias("value"),
    )


def evaluated(
    rows: DataFrame,
    ticks: DataFrame,
    weights: Callable[[int, list[str]], ShardWeights],
    options: EvaluatorOptions,
    spec: PrecisionSpec,
    query: StructField,
) -> DataFrame:
    """The answers of all shards: rows (shard, stream, at_us, value) go to theirs, ticks of the clock to each.

    ``weights`` gives a shard's queries from its number and the streams that it has seen. What each shard did is
    observed, in counts.
    """
    keys = shard_keys(spec.shards)
    nothing = F.lit(None)
    clock = ticks.select(
        F.explode(F.array(*(F.lit(key) for key in keys))).alias("shard"),
        nothing.cast("string").alias("stream"),
        nothing.cast("long").alias("at_us"),
        nothing.cast("double").alias("value"),
        "clock_ms",
    )
    schema = StructType(
        [
            query,
            StructField("at", TimestampType()),
            *(StructField(column, DoubleType()) for column in ("value", "drift", "error_bound")),
            StructField("interrupted_streams", LongType()),
            StructField("next_evaluation_at", TimestampType()),
            StructField(SHARD_COUNTS, SHARD_COUNTS_TYPE),
        ]
    )

    def evaluate(key: Any, parts: Iterator[pd.DataFrame], state: Any) -> Iterator[pd.DataFrame]:
        settle_worker()
        frame = pd.concat(list(parts), ignore_index=True)
        number = keys.index(int(key[0]))
        data = frame[frame["stream"].notna()]
        names = data["stream"].to_numpy(dtype=object)
        before = from_text(state.get[0]) if state.exists else None
        seen = list(dict.fromkeys([*known_streams(before), *names]))
        shard = Shard(weights(number, seen), options, number, before)
        clock_ms = frame["clock_ms"].max()
        found = shard.tick(
            names,
            data["at_us"].to_numpy(dtype=np.float64, na_value=np.nan) / 1e3,
            data["value"].to_numpy(dtype=np.float64, na_value=np.nan),
            None if pd.isna(clock_ms) else float(clock_ms),
        )
        state.update((as_text(shard.state()),))
        if len(found):
            found["drift"] *= 1e3  # per second
            for column in ("at", "next_evaluation_at"):
                found[column] = pd.to_datetime((found[column] * 1e3).round(), unit="us", utc=True)
            yield found.rename(columns={"query": query.name}).assign(**{SHARD_COUNTS: None})
        yield shard_counts_row(shard.counts, schema)

    answers = (
        rows.withColumn("clock_ms", nothing.cast("long"))
        .unionByName(clock)
        .groupBy("shard")
        .applyInPandasWithState(evaluate, schema, "state string", "append", "NoTimeout")
    )
    return observe_shard_counts(answers, spec.name)


def _check_columns(values: DataFrame, key: str, event_time: str, value: str) -> None:
    for option, column in (("key", key), ("event_time", event_time), ("value", value)):
        if column not in values.columns:
            raise InvalidStream(
                "no-such-column", f"{option}={column!r} is not a column", f"use one of: {', '.join(values.columns)}"
            )
    if not isinstance(values.schema[event_time].dataType, TimestampType):
        raise InvalidStream("not-a-timestamp", f"event_time={event_time!r} is no timestamp", "cast it first")
    if not isinstance(values.schema[value].dataType, NumericType):
        raise InvalidStream("not-a-number", f"value={value!r} is no number", "cast it first")


def landmark_ms(spark: SparkSession, landmark: Any) -> float:
    try:
        at = pd.Timestamp(landmark)
    except (ValueError, TypeError) as error:
        raise InvalidOption(
            "invalid-landmark", f"landmark={landmark!r} is no point in time", "write '2024-01-31 12:00:00'"
        ) from error
    if at.tzinfo is None:
        at = at.tz_localize(spark.conf.get("spark.sql.session.timeZone") or "UTC")
    return float(at.timestamp() * 1e3)


def _weights(
    spark: SparkSession, weights: DataFrame | str, table: WeightsTable, name: str, location: str | None
) -> tuple[WeightsTable, DataType]:
    """The table that the shards read, and the type of a query's id."""
    frame, folder = _frame_and_folder(spark, weights)
    if frame.isStreaming:
        raise InvalidStream("streaming-weights", "the weights are a stream", "give a folder of Parquet files")
    for column in table.columns:
        if column not in frame.columns:
            raise InvalidStream(
                "no-such-column", f"the weights have no column {column!r}", f"give {', '.join(table.columns)}"
            )
    kind = frame.schema[table.query].dataType
    if not isinstance(kind, StringType | LongType | IntegerType):
        raise InvalidStream(
            "invalid-id", f"query={table.query!r} is a {kind.simpleString()}", "use a string or an integer"
        )
    if not isinstance(frame.schema[table.weight].dataType, NumericType):
        raise InvalidStream("not-a-number", f"weight={table.weight!r} is no number", "cast it first")
    if folder is None:
        folder = str(mailbox_for(spark, name, location).folder / "weights")
        plain = [F.col(quoted(column)) for column in table.columns]
        plain[2] = plain[2].cast("double").alias(table.weight)
        frame.select(*plain).write.mode("overwrite").parquet(folder)
    return WeightsTable(
        folder, table.query, table.stream, table.weight, table.within, table.confidence, table.shards
    ), kind


def _frame_and_folder(spark: SparkSession, weights: DataFrame | str) -> tuple[DataFrame, str | None]:
    """The weights, and the folder that may be read again; None where they are taken as they are."""
    if isinstance(weights, DataFrame):
        return weights, None
    if "/" in weights:
        return spark.read.parquet(weights), weights
    if not spark.catalog.tableExists(weights):
        raise InvalidStream("no-such-table", f"there is no table {weights!r}", "give a folder, a table or a DataFrame")
    said = {row[0]: row[1] for row in spark.sql(f"DESCRIBE TABLE EXTENDED {weights}").collect()}
    provider, folder = said.get("Provider"), said.get("Location")
    return spark.table(weights), folder if provider is not None and provider.lower() == "parquet" else None
