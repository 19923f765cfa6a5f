"""Queries with WITHIN: the text of a standing query becomes the DataFrame of its answers."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import IntegerType, LongType, StringType, StructField, StructType

from slackwater import units
from slackwater.control.deferral import DEFAULT_METHOD
from slackwater.errors import InvalidStream
from slackwater.kernel.standing.options import EvaluatorOptions
from slackwater.kernel.standing.weights import ShardWeights, group_weights
from slackwater.language import Query
from slackwater.names import quoted
from slackwater.plan.names import table_name
from slackwater.plan.standing import ANSWER_COLUMNS, StandingShape, standing_shape
from slackwater.promises import Duration
from slackwater.spark.runtime.catalog import Registration, describe, registration_of, table_of
from slackwater.spark.runtime.json_key import as_json, from_json
from slackwater.spark.runtime.sharding import shard_keys
from slackwater.spark.runtime.types import type_text
from slackwater.spark.standing.api import evaluated, landmark_ms, new_precision, standing, time_and_value
from slackwater.spark.standing.clock import clock_ticks
from slackwater.spark.standing.handler import PrecisionSpec


def standing_query(
    spark: SparkSession,
    query: Query,
    *,
    name: str | None = None,
    method: str | None = None,
    shards: int | None = None,
    location: str | None = None,
    tick: Duration = "1 second",
    clock_file: str | None = None,
) -> DataFrame:
    """The answers of a query with WITHIN: its keys, ``at``, the answer, and how far it may be believed.

    A joined table holds the weights; without one every stream that passes the filter is a member of its group, from
    its first row on. A Parquet table joined by its name, with plain columns for the group and the weight, is read again
    when it changes; any other table is taken as it is when the query is built.
    """
    tables = {table.name: table_of(spark, table_name(table)) for table in query.tables()}
    streams = [table for table, frame in tables.items() if frame.isStreaming]
    if len(streams) != 1:
        raise InvalidStream("not-a-stream", f"{len(streams)} of {', '.join(tables)} are streams", "read from one")
    events = tables[streams[0]]
    said = registration_of(spark, streams[0]) or Registration(None, None, None)
    shape = standing_shape(query, streams[0], events.columns, said.value)
    time = shape.time or describe(streams[0], events, said).time
    if time is None:
        raise InvalidStream(
            "no-time",
            f"nothing says which column of {streams[0]} is its time",
            "sw.stream(…, event_time=…), or --event-time",
        )
    if shape.single_stream and (
        shape.table is not None or (said.key is not None and said.key not in dict(shape.keys).values())
    ):
        raise InvalidStream(
            "not-standing",
            f"the extreme is of {shape.value} itself, and {streams[0]} has many streams",
            "write MAX(AVG(…)), or GROUP BY the stream's key",
        )
    if shape.stream_filter is not None:
        events = events.where(shape.stream_filter)
    if shape.counts is not None:
        events = events.withColumn(shape.value, F.expr(shape.counts))
    options = EvaluatorOptions(
        aggregate=shape.extreme or "linear",  # type: ignore[arg-type]
        window=shape.window_ms,
        landmark=None if shape.landmark is None else landmark_ms(spark, shape.landmark),
        method=method or DEFAULT_METHOD,
    )
    count = shards or 2 * spark.sparkContext.defaultParallelism
    if shape.table is not None:
        return _joined(spark, shape, events, time, tables, count, options, name, location, tick, clock_file)
    if not shape.keys:
        count = 1  # one answer: one shard
    ticks = clock_ticks(spark, units.duration_ms(tick, option="tick"), clock_file)
    spec = new_precision(spark, shape.confidence, options, count, name, location)
    return _grouped(spark, shape, events, said.key, time, spec, options, ticks)


def _joined(
    spark: SparkSession,
    shape: StandingShape,
    events: DataFrame,
    time: str,
    tables: dict[str, DataFrame],
    count: int,
    options: EvaluatorOptions,
    name: str | None,
    location: str | None,
    tick: Duration,
    clock_file: str | None,
) -> DataFrame:
    assert shape.join is not None
    assert shape.table is not None
    member, key = shape.join
    table = spark.table(shape.table)
    typed = table.selectExpr(*(f"{expression} AS {quoted(column)}" for column, expression in shape.keys)).schema
    weights: DataFrame | str = _weights(table, shape, member, key)
    ids, weight = "query", "weight"
    plain = _plain_columns(shape, table)
    if plain is not None and member == key:
        # Named columns of a table: sw.standing can follow it.
        weights, ids, weight = shape.table, plain[0], plain[1]
    found = standing(
        events.selectExpr(quoted(key), quoted(time), f"CAST({quoted(shape.value)} AS double) AS {quoted(shape.value)}"),
        key=key,
        event_time=time,
        value=shape.value,
        weights=weights,
        query=ids,
        weight=weight,
        within=shape.bound,
        confidence=shape.confidence,
        aggregate=shape.extreme or "sum",  # type: ignore[arg-type]
        window=None if shape.window_ms is None else shape.window_ms / 1e3,
        landmark=shape.landmark,
        method=options.method,
        shards=count,
        name=name,
        location=location,
        tick=tick,
        clock_file=clock_file,
    )
    if plain is not None and member == key:
        return _answers(found, [f"{quoted(ids)} AS {quoted(shape.keys[0][0])}"], shape)
    return _unfolded(found, typed, shape)


def _plain_columns(shape: StandingShape, table: DataFrame) -> tuple[str, str] | None:
    """The columns of query and weight, where the text says nothing that a table's own columns do not."""
    weight = shape.weight.removeprefix("1.0D * (").removesuffix(")").strip("`")
    if len(shape.keys) != 1 or shape.average or shape.table_filter is not None or weight not in table.columns:
        return None
    key = shape.keys[0][1].strip("`")
    if key not in table.columns or not isinstance(table.schema[key].dataType, StringType | LongType | IntegerType):
        return None
    return key, weight


def _weights(table: DataFrame, shape: StandingShape, member: str, key: str) -> DataFrame:
    """The table of weights that the text describes: (query, the stream's key, weight)."""
    if shape.table_filter is not None:
        table = table.where(shape.table_filter)
    rows = table.selectExpr(
        f"{_folded(shape)} AS query", f"{quoted(member)} AS {quoted(key)}", f"{shape.weight} AS weight"
    )
    if not shape.average:
        return rows
    size = rows.groupBy("query").agg(F.count(F.lit(1)).alias("members"))
    return rows.join(size, "query").selectExpr("query", quoted(key), "weight / members AS weight")


def _folded(shape: StandingShape) -> str:
    """All keys in one text."""
    keys = ", ".join(f"{expression} AS {quoted(column)}" for column, expression in shape.keys)
    return as_json(f"struct({keys})") if keys else "'{}'"


def _unfolded(found: DataFrame, typed: StructType, shape: StandingShape) -> DataFrame:
    if not shape.keys:
        return _answers(found, [], shape)
    schema = ", ".join(f"{quoted(field.name)} {type_text(field.dataType)}" for field in typed.fields)
    keyed = found.withColumn("__key", F.expr(from_json("query", schema)))
    return _answers(keyed, [f"__key.{quoted(column)} AS {quoted(column)}" for column, _ in shape.keys], shape)


def _answers(found: DataFrame, keys: list[str], shape: StandingShape) -> DataFrame:
    return found.selectExpr(*keys, "at", f"value AS {quoted(shape.result)}", *ANSWER_COLUMNS)


@dataclass(frozen=True, slots=True)
class Members:
    """Weights of groups whose members are the streams seen in them."""

    weight: float
    average: bool
    within: str | float
    confidence: float

    def shard_of(self, number: int, streams: list[str]) -> ShardWeights:
        """The groups of the streams seen; they are few, and built anew when a stream appears."""
        return _built(self, tuple(streams))


@lru_cache(maxsize=32)
def _built(said: Members, streams: tuple[str, ...]) -> ShardWeights:
    return group_weights(list(streams), said.weight, said.average, said.within, said.confidence)


def _grouped(
    spark: SparkSession,
    shape: StandingShape,
    events: DataFrame,
    key: str | None,
    time: str,
    spec: PrecisionSpec,
    options: EvaluatorOptions,
    ticks: DataFrame,
) -> DataFrame:
    typed = events.selectExpr(*(f"{expression} AS {quoted(column)}" for column, expression in shape.keys)).schema
    keys = shard_keys(spec.shards)
    group = F.expr(_folded(shape))
    place = (F.pmod(F.xxhash64(group), spec.shards) + 1).cast("int")
    shard = F.element_at(F.array(*(F.lit(one) for one in keys)), place)
    member = F.lit("") if key is None else F.col(quoted(key)).cast("string")
    rows = events.where(member.isNotNull()).select(
        shard.alias("shard"), F.concat(group, F.lit("\x1f"), member).alias("stream"), *time_and_value(time, shape.value)
    )
    weight = spark.sql(f"SELECT CAST({shape.weight} AS double)").collect()[0][0]
    said = Members(float(weight), shape.average, shape.bound, shape.confidence)
    found = evaluated(rows, ticks, said.shard_of, options, spec, StructField("query", StringType()))
    return _unfolded(found, typed, shape)
