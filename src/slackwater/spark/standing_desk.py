"""The supervisor's desk for standing queries: what their shards say they did, micro-batch by micro-batch."""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

import pandas as pd
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.streaming.listener import StreamingQueryProgress
from pyspark.sql.types import DataType, DoubleType, LongType, StringType, StructField, StructType, TimestampType

from slackwater.kernel.told import Told

STANDING_PREFIX = "slackwater-standing:"
TOLD = "__sw_told"
TOLD_TYPE = StructType(
    [StructField(field.name, LongType() if field.type == "int" else DoubleType()) for field in fields(Told)]
)


@dataclass(frozen=True, slots=True)
class StandingSpec:
    """A precision promise as it was made on a DataFrame; without a confidence each query has its own."""

    name: str
    confidence: float | None
    method: str
    shards: int
    folder: Path


def told_row(told: Told, schema: StructType) -> pd.DataFrame:
    """One row beside a shard's answers: its counts, and nothing that matters in the columns of an answer."""
    # zeros of the columns' own types: Spark puts frames together, and pandas would guess at the type of nothing
    nothing: dict[DataType, Any] = {StringType(): "", TimestampType(): pd.Timestamp(0, tz="UTC"), DoubleType(): 0.0}
    row = {field.name: [nothing.get(field.dataType, 0)] for field in schema.fields if field.name != TOLD}
    return pd.DataFrame({**row, TOLD: [asdict(told)]})


def observe_told(answers: DataFrame, name: str) -> DataFrame:
    """The answers alone; what the shards told is observed as ``slackwater-standing:<name>``.

    It costs a row a shard in each micro-batch, and one look at each answer.
    """
    observed = answers.observe(STANDING_PREFIX + name, F.collect_list(TOLD).alias("shards"))
    return observed.where(F.col(TOLD).isNull()).drop(TOLD)


class StandingDesk:
    """All precision promises of a session. Not thread-safe by itself: the supervisor calls it under its lock."""

    def __init__(self) -> None:
        self._specs: dict[str, StandingSpec] = {}

    def add(self, spec: StandingSpec) -> None:
        """Take charge of a promise."""
        self._specs[spec.name] = spec

    def has(self, name: str) -> bool:
        """Whether a precision promise of that name was made in this session."""
        return name in self._specs

    def told_of(self, progress: StreamingQueryProgress) -> list[tuple[StandingSpec, list[Told]]]:
        """What the shards of each promise said in a micro-batch; shards that got neither row nor tick say nothing."""
        found = []
        for key, metrics in progress.observedMetrics.items():
            spec = self._specs.get(key.removeprefix(STANDING_PREFIX)) if key.startswith(STANDING_PREFIX) else None
            if spec is not None:
                found.append((spec, [Told(**row.asDict()) for row in metrics["shards"] or []]))
        return found
