"""The listener's desk for standing queries: what their shards say they did, micro-batch by micro-batch."""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

import pandas as pd
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.streaming.listener import StreamingQueryProgress
from pyspark.sql.types import DataType, DoubleType, LongType, StringType, StructField, StructType, TimestampType

from slackwater.kernel.standing.shard_counts import ShardCounts

STANDING_PREFIX = "slackwater-standing:"
SHARD_COUNTS = "__sw_told"
SHARD_COUNTS_TYPE = StructType(
    [StructField(field.name, LongType() if field.type == "int" else DoubleType()) for field in fields(ShardCounts)]
)


@dataclass(frozen=True, slots=True)
class PrecisionSpec:
    """A precision promise as it was made on a DataFrame; without a confidence each query has its own."""

    name: str
    confidence: float | None
    method: str
    shards: int
    folder: Path


def shard_counts_row(told: ShardCounts, schema: StructType) -> pd.DataFrame:
    """One row beside a shard's answers: its counts, and nothing that matters in the columns of an answer."""
    # zeros of the columns' own types: Spark puts frames together, and pandas would guess at the type of nothing
    nothing: dict[DataType, Any] = {StringType(): "", TimestampType(): pd.Timestamp(0, tz="UTC"), DoubleType(): 0.0}
    row = {field.name: [nothing.get(field.dataType, 0)] for field in schema.fields if field.name != SHARD_COUNTS}
    return pd.DataFrame({**row, SHARD_COUNTS: [asdict(told)]})


def observe_shard_counts(answers: DataFrame, name: str) -> DataFrame:
    """The answers alone; what the shards told is observed as ``slackwater-standing:<name>``.

    It costs a row a shard in each micro-batch, and one look at each answer.
    """
    observed = answers.observe(STANDING_PREFIX + name, F.collect_list(SHARD_COUNTS).alias("shards"))
    return observed.where(F.col(SHARD_COUNTS).isNull()).drop(SHARD_COUNTS)


class PrecisionHandler:
    """All precision promises of a session. Not thread-safe by itself: the listener calls it under its lock."""

    def __init__(self) -> None:
        self._specs: dict[str, PrecisionSpec] = {}

    def add(self, spec: PrecisionSpec) -> None:
        """Take charge of a promise."""
        self._specs[spec.name] = spec

    def has(self, name: str) -> bool:
        """Whether a precision promise of that name was made in this session."""
        return name in self._specs

    def shard_counts_of(self, progress: StreamingQueryProgress) -> list[tuple[PrecisionSpec, list[ShardCounts]]]:
        """What the shards of each promise said in a micro-batch; shards that got neither row nor tick say nothing."""
        found = []
        for key, metrics in progress.observedMetrics.items():
            spec = self._specs.get(key.removeprefix(STANDING_PREFIX)) if key.startswith(STANDING_PREFIX) else None
            if spec is not None:
                found.append((spec, [ShardCounts(**row.asDict()) for row in metrics["shards"] or []]))
        return found
