"""One micro-batch of one shard of standing queries, as a Python worker runs it."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, fields, replace
from functools import lru_cache
from typing import Any, NamedTuple, Protocol

import numpy as np
import pandas as pd
from pyspark.sql.streaming.state import GroupState
from pyspark.sql.types import (
    DataType,
    DoubleType,
    LongType,
    MapType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from slackwater.kernel.standing.options import EvaluatorOptions
from slackwater.kernel.standing.shard import Shard, known_streams
from slackwater.kernel.standing.shard_counts import ShardCounts
from slackwater.kernel.standing.tick_budget import Processor
from slackwater.kernel.standing.weights import ShardWeights, group_weights
from slackwater.spark.worker.columns import SHARD_COUNTS
from slackwater.spark.worker.settle import settle_worker
from slackwater.spark.worker.state_text import as_text, from_text
from slackwater.spark.worker.waiting_values import release
from slackwater.units import MS_US, SECOND_MS

BEAT_US = "beat_us"
"""The column of a heartbeat."""

TESTED = "tested"
"""Beside the counts: the streams tested for normality, and their p-values."""

SHARD_COUNTS_TYPE = StructType(
    [
        *(
            StructField(field.name, LongType() if field.type == "int" else DoubleType())
            for field in fields(ShardCounts)
        ),
        StructField(TESTED, MapType(StringType(), DoubleType())),
    ]
)


def _processor_ms() -> float:
    return time.process_time() * SECOND_MS


class WeightsSource(Protocol):
    """Where a shard gets its queries from."""

    def shard(self, number: int, streams: Sequence[str]) -> ShardWeights:
        """The queries of shard ``number``, given the names of all streams it has seen."""


@dataclass(frozen=True, slots=True)
class GroupWeights:
    """Queries over groups: every stream seen in a group is a member, each with the same ``weight``."""

    weight: float
    average: bool
    within: str | float
    confidence: float

    def shard(self, number: int, streams: Sequence[str]) -> ShardWeights:
        """One query per group. Rebuilt when a stream appears."""
        return _group_weights(self, tuple(streams))


@lru_cache(maxsize=32)
def _group_weights(groups: GroupWeights, members: tuple[str, ...]) -> ShardWeights:
    return group_weights(list(members), groups.weight, groups.average, groups.within, groups.confidence)


class _Held(NamedTuple):
    """The time up to which every row is known, the rows that wait, as text, and their number."""

    until_ms: float
    waiting: str
    rows: int


@dataclass(frozen=True, slots=True)
class StandingStep:
    """What every shard of a standing query shares. ``query`` is the column with the query's id.

    ``copied_rows`` says that every shard gets every row; then only the first one counts and tests them.
    ``processor_share`` is a shard's share of a processor; None means that the time of evaluations is not limited. With
    ``held``, rows wait until the heartbeat is past them.
    """

    weights: WeightsSource
    options: EvaluatorOptions
    query: StructField
    copied_rows: bool = False
    processor_share: float | None = None
    held: bool = False

    @property
    def state_schema(self) -> str:
        """What a shard keeps in Spark's state store."""
        return "state string, waiting string" if self.held else "state string"

    @property
    def schema(self) -> StructType:
        """The columns of an answer, and the column for the counts of a shard."""
        return StructType(
            [
                self.query,
                StructField("at", TimestampType()),
                *(StructField(column, DoubleType()) for column in ("value", "drift", "error_bound")),
                StructField("interrupted_streams", LongType()),
                StructField("next_evaluation_at", TimestampType()),
                StructField(SHARD_COUNTS, SHARD_COUNTS_TYPE),
            ]
        )

    def run(self, number: int, parts: Iterable[pd.DataFrame], state: GroupState) -> Iterator[pd.DataFrame]:
        """Evaluate shard ``number``: yield its answers, then one row with its counts.

        Rows have the columns ``stream``, ``at_us``, ``value`` and ``clock_ms``. Only a tick of the clock has the last
        one, and it has no other. A row without a stream is invalid. With ``held`` there is ``BEAT_US`` too, and a
        heartbeat has no other.
        """
        settle_worker()
        frame = pd.concat(list(parts), ignore_index=True)
        rows = frame[frame["clock_ms"].isna()]
        if self.held:
            yield from self._run_held(number, frame, rows, state)
        else:
            yield from self._tick(number, frame, rows, state)

    def _run_held(
        self, number: int, frame: pd.DataFrame, rows: pd.DataFrame, state: GroupState
    ) -> Iterator[pd.DataFrame]:
        """Take in the rows that the heartbeat is past. Without a new heartbeat there are none, and nothing is due."""
        beat_us = frame[BEAT_US].max()
        saved, waiting = state.get if state.exists else ("", "")
        rows, waiting, count = release(waiting, rows[rows[BEAT_US].isna()], None if pd.isna(beat_us) else int(beat_us))
        if pd.isna(beat_us):
            state.update((saved, waiting))
        else:
            # No row on time can come below the heartbeat, so everything before it is known.
            yield from self._tick(number, frame, rows, state, _Held((float(beat_us) - 1.0) / MS_US, waiting, count))

    def _tick(
        self, number: int, frame: pd.DataFrame, rows: pd.DataFrame, state: GroupState, held: _Held | None = None
    ) -> Iterator[pd.DataFrame]:
        names = rows["stream"].to_numpy(dtype=object)
        before = from_text(state.get[0]) if state.exists and state.get[0] else None
        streams = list(dict.fromkeys([*known_streams(before), *names[pd.notna(names)]]))
        share = self.processor_share
        processor = None if share is None else Processor(share, _processor_ms)
        shard = Shard(self.weights.shard(number, streams), self.options, number, before, processor)
        clock_ms = frame["clock_ms"].max()
        answers = shard.tick(
            names,
            rows["at_us"].to_numpy(dtype=np.float64, na_value=np.nan) / MS_US,
            rows["value"].to_numpy(dtype=np.float64, na_value=np.nan),
            None if pd.isna(clock_ms) else float(clock_ms),
            None if held is None else held.until_ms,
        )
        began_ms = _processor_ms()
        found = [self._answer_rows(answers)] if len(answers) else []
        shard.learn_cost(_processor_ms() - began_ms)
        after = as_text(shard.state())
        state.update((after,) if held is None else (after, held.waiting))
        yield from found
        if self.copied_rows and number:
            yield self._counts_row(shard.counts.without_rows(), {})
        else:
            waiting = 0 if held is None else held.rows
            yield self._counts_row(replace(shard.counts, waiting=waiting), shard.tested)

    def _answer_rows(self, answers: pd.DataFrame) -> pd.DataFrame:
        rows = answers.rename(columns={"query": self.query.name})
        rows["drift"] *= SECOND_MS  # from per millisecond to per second
        for column in ("at", "next_evaluation_at"):
            rows[column] = pd.to_datetime((rows[column] * MS_US).round(), unit="us", utc=True)
        return rows.assign(**{SHARD_COUNTS: None})

    def _counts_row(self, counts: ShardCounts, tested: dict[str, float]) -> pd.DataFrame:
        """One row with the counts and the tested streams, and placeholders in the columns of an answer."""
        # Spark concatenates the frames. Placeholders of the right type keep pandas from guessing the type of nulls.
        placeholders: dict[DataType, Any] = {
            StringType(): "",
            TimestampType(): pd.Timestamp(0, tz="UTC"),
            DoubleType(): 0.0,
        }
        row = {field.name: [placeholders.get(field.dataType, 0)] for field in self.schema.fields}
        return pd.DataFrame({**row, SHARD_COUNTS: [{**asdict(counts), TESTED: tested}]})
