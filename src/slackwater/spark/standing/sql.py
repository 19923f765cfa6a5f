"""Queries with WITHIN: from the text of a standing query to the DataFrame of its answers."""

from __future__ import annotations

import datetime as dt
from dataclasses import replace
from typing import Any

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StringType, StructField, StructType

from slackwater import units
from slackwater.control.choice import Law, Method
from slackwater.control.deferral import DEFAULT_METHOD, Deferral
from slackwater.errors import InvalidOption, InvalidStream
from slackwater.kernel.standing.weights import MEMBER_SEPARATOR
from slackwater.language import Query
from slackwater.names import quoted
from slackwater.plan.names import table_name
from slackwater.plan.standing import ANSWER_COLUMNS, StandingShape, standing_shape
from slackwater.promises import Duration
from slackwater.spark.runtime.catalog import Registration, describe, registration_of, table_of
from slackwater.spark.runtime.json_key import as_json, from_json
from slackwater.spark.runtime.sharding import shard_keys
from slackwater.spark.runtime.types import type_text
from slackwater.spark.standing.api import (
    disorder_of,
    evaluate,
    evaluator_options,
    fresh_standing_name,
    new_precision,
    processor_share,
    shard_count,
    shard_rows,
    standing,
)
from slackwater.spark.standing.clock import clock_ticks
from slackwater.spark.standing.weights import ID_TYPES
from slackwater.spark.timeliness.api import with_max_delay
from slackwater.spark.worker.standing_step import GroupWeights, StandingStep


def standing_query(
    spark: SparkSession,
    query: Query,
    *,
    name: str | None = None,
    deferral: str | Deferral | None = None,
    method: str | Method | None = None,
    law: str | Law | None = None,
    shards: int | None = None,
    location: str | None = None,
    tick: Duration = "1 second",
    _clock_file: str | None = None,
    _limited: bool = True,
) -> DataFrame:
    """The answers of a query with WITHIN: its keys, ``at``, the answer, and the columns that ``standing`` adds.

    A joined table holds the weights. Without one, every stream that passes the filter is a member of its group from its
    first row on. A Parquet table that is joined by name, with plain columns for the group and the weight, is read again
    when it changes. Any other table is taken as it is when the query is built. The options are those of ``standing``.
    ``_limited`` is false where no clock runs beside the stream; then processor time limits nothing.
    """
    tables = {table.name: table_of(spark, table_name(table)) for table in query.tables()}
    stream = _only_stream(tables)
    events = tables[stream]
    registration = registration_of(spark, stream) or Registration(None, None, None)
    shape = standing_shape(query, stream, events.columns, registration.value)
    time = shape.time or describe(stream, events, registration).time
    if time is None:
        raise InvalidStream(
            "no-time",
            f"the time column of {stream} is not known",
            "name it: sw.stream(…, event_time=…), or --event-time",
        )
    _check_single_stream(shape, stream, registration.key)
    if shape.stream_filter is not None:
        events = events.where(shape.stream_filter)
    if shape.counts is not None:
        events = events.withColumn(shape.value, F.expr(shape.counts))
    chosen = _deferral(shape, deferral)
    if name is None and (shape.drop_ratio is not None or shape.delay_ms is not None):
        name = fresh_standing_name(spark)
    if shape.delay_ms is not None:
        events = _with_shedding(events, shape, name, law, location)
    if shape.table is not None:
        options = {
            "name": name,
            "deferral": chosen,
            "shards": shards,
            "location": location,
            "tick": tick,
            "method": method,
        }
        return _joined(spark, shape, events, time, {**options, "_clock_file": _clock_file, "_limited": _limited})
    aggregate: Any = shape.extreme or "linear"
    evaluation = evaluator_options(spark, aggregate, shape.window_ms, shape.landmark, chosen)
    evaluation.check_order(limited=_limited)
    count = shard_count(spark, shards) if shape.keys else 1  # a single answer needs one shard
    spec = new_precision(spark, shape.confidence, evaluation, count, name, location)
    arrival = shape.arrival if shape.drop_ratio is not None else None
    disorder = disorder_of(shape.drop_ratio, arrival, list(shape.sources), method)
    columns = _group_columns(shape, registration.key, count)
    rows = shard_rows(events, columns, time, shape.value, disorder, spec, location)
    weight = float(spark.sql(f"SELECT CAST({shape.weight} AS double)").collect()[0][0])
    weights = GroupWeights(weight, shape.average, shape.bound, shape.confidence)
    ticks = clock_ticks(spark, units.duration_ms(tick, option="tick"), _clock_file)
    share = processor_share(spark, count) if _limited else None
    step = StandingStep(weights, evaluation, StructField("query", StringType()), processor_share=share)
    step = replace(step, held=disorder is not None)
    answers = evaluate(rows, ticks, step, spec)
    return _with_key_columns(answers, _key_schema(events, shape), shape)


def _deferral(shape: StandingShape, given: str | Deferral | None) -> str | Deferral:
    """The deferral of the text, or the one given beside it."""
    if shape.deferral is not None and given is not None:
        raise InvalidOption(
            "two-deferrals", f"the text has USING, and deferral={given!r} is given too", "leave out one of them"
        )
    return shape.deferral or given or DEFAULT_METHOD


def _only_stream(tables: dict[str, DataFrame]) -> str:
    streams = [table for table, frame in tables.items() if frame.isStreaming]
    if len(streams) != 1:
        raise InvalidStream(
            "not-a-stream",
            f"{len(streams)} of {', '.join(tables)} are streams",
            "read from exactly one stream; join streams first: sw.stream('Joined', sw.sql(…), …)",
        )
    return streams[0]


def _check_single_stream(shape: StandingShape, stream: str, key: str | None) -> None:
    """Refuse MAX(value) over several streams: only the extreme of an aggregate over them is defined."""
    several = shape.table is not None or (key is not None and key not in dict(shape.keys).values())
    if shape.single_stream and several:
        raise InvalidStream(
            "not-standing",
            f"{shape.value} is not aggregated over the streams of {stream}",
            "write MAX(AVG(…)), or GROUP BY the stream's key",
        )


def _joined(
    spark: SparkSession, shape: StandingShape, events: DataFrame, time: str, options: dict[str, Any]
) -> DataFrame:
    """The answers of a query whose weights are in a table."""
    assert shape.join is not None
    assert shape.table is not None
    member, key = shape.join
    table = spark.table(shape.table)
    # With plain columns, ``standing`` can read the table itself and follow its changes.
    plain = _plain_columns(shape, table) if member == key else None
    weights: DataFrame | str = shape.table if plain else _computed_weights(table, shape, member, key)
    query, weight = plain or ("query", "weight")
    aggregate: Any = shape.extreme or "sum"
    answers = standing(
        events.withColumn(shape.value, F.col(quoted(shape.value)).cast("double")),
        key=key,
        event_time=time,
        value=shape.value,
        weights=weights,
        query=query,
        weight=weight,
        within=shape.bound,
        confidence=shape.confidence,
        aggregate=aggregate,
        window=None if shape.window_ms is None else shape.window_ms / units.SECOND_MS,
        landmark=shape.landmark,
        drop_ratio=shape.drop_ratio,
        arrival=shape.arrival if shape.drop_ratio is not None else None,
        source=list(shape.sources),
        **options,
    )
    if plain:
        return _answer_columns(answers, [f"{quoted(query)} AS {quoted(shape.keys[0][0])}"], shape)
    return _with_key_columns(answers, _key_schema(table, shape), shape)


def _plain_columns(shape: StandingShape, table: DataFrame) -> tuple[str, str] | None:
    """The table's columns for the query and the weight; None if the text computes one of them."""
    weight = shape.weight.removeprefix("1.0D * (").removesuffix(")").strip("`")
    if len(shape.keys) != 1 or shape.average or shape.table_filter is not None or weight not in table.columns:
        return None
    key = shape.keys[0][1].strip("`")
    if key not in table.columns or not isinstance(table.schema[key].dataType, ID_TYPES):
        return None
    return key, weight


def _computed_weights(table: DataFrame, shape: StandingShape, member: str, key: str) -> DataFrame:
    """The weights that the text describes: (query, the stream's key, weight)."""
    if shape.table_filter is not None:
        table = table.where(shape.table_filter)
    rows = table.selectExpr(
        f"{_key_text(shape)} AS query", f"{quoted(member)} AS {quoted(key)}", f"{shape.weight} AS weight"
    )
    if not shape.average:
        return rows
    size = rows.groupBy("query").agg(F.count(F.lit(1)).alias("members"))
    return rows.join(size, "query").selectExpr("query", quoted(key), "weight / members AS weight")


def _with_shedding(
    events: DataFrame, shape: StandingShape, name: str | None, law: str | Law | None, location: str | None
) -> DataFrame:
    """The events under the timeliness promise of DELAY, without its weights: the newest value needs none."""
    assert shape.delay_ms is not None
    kept = with_max_delay(
        events,
        dt.timedelta(milliseconds=shape.delay_ms),
        arrival=shape.arrival,
        name=f"{name}-delay",
        law=law,
        location=location,
    )
    return kept.select(*(F.col(quoted(column)) for column in events.columns))


def _group_columns(shape: StandingShape, key: str | None, shards: int) -> tuple[Column, Column]:
    """The shard of a row's group, and the name of the row's stream as a member of it."""
    group = F.expr(_key_text(shape))
    position = (F.pmod(F.xxhash64(group), shards) + 1).cast("int")
    shard = F.element_at(F.array(*(F.lit(key) for key in shard_keys(shards))), position)
    member = F.lit("") if key is None else F.col(quoted(key)).cast("string")
    return shard.alias("shard"), F.concat(group, F.lit(MEMBER_SEPARATOR), member).alias("stream")


def _key_text(shape: StandingShape) -> str:
    """All keys as one JSON text."""
    keys = ", ".join(f"{expression} AS {quoted(column)}" for column, expression in shape.keys)
    return as_json(f"struct({keys})") if keys else "'{}'"


def _key_schema(frame: DataFrame, shape: StandingShape) -> StructType:
    """The names and types of the keys."""
    return frame.selectExpr(*(f"{expression} AS {quoted(column)}" for column, expression in shape.keys)).schema


def _with_key_columns(answers: DataFrame, key_schema: StructType, shape: StandingShape) -> DataFrame:
    """The answers with the keys as columns again."""
    if not shape.keys:
        return _answer_columns(answers, [], shape)
    schema = ", ".join(f"{quoted(field.name)} {type_text(field.dataType)}" for field in key_schema.fields)
    keyed = answers.withColumn("__key", F.expr(from_json("query", schema)))
    return _answer_columns(keyed, [f"__key.{quoted(column)} AS {quoted(column)}" for column, _ in shape.keys], shape)


def _answer_columns(answers: DataFrame, keys: list[str], shape: StandingShape) -> DataFrame:
    return answers.selectExpr(*keys, "at", f"value AS {quoted(shape.result)}", *ANSWER_COLUMNS)
