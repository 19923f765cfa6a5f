"""Keeps the precision promises of a session: counts of what each shard did, micro-batch by micro-batch."""

from __future__ import annotations

from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as F
from pyspark.sql.streaming.listener import StreamingQueryProgress

from slackwater.kernel.standing.shard_counts import ShardCounts
from slackwater.kernel.standing.weights import stream_name
from slackwater.spark.runtime.handler import PromiseHandler, PromiseReport, SeriesEntry, SeriesOf
from slackwater.spark.runtime.progress import committed_ms, duration_s, query_name, state_rows
from slackwater.spark.runtime.queries import RunningQueries
from slackwater.spark.standing.report import PrecisionReport
from slackwater.spark.worker.columns import SHARD_COUNTS
from slackwater.spark.worker.mailbox import Mailbox
from slackwater.spark.worker.standing_step import TESTED
from slackwater.watching.point import Point
from slackwater.watching.precision import PrecisionCounts, precision_cause
from slackwater.watching.series import About

STANDING_PREFIX = "slackwater-standing:"


@dataclass(frozen=True, slots=True)
class PrecisionSpec:
    """A precision promise as it was made on a DataFrame; without a confidence each query has its own."""

    name: str
    confidence: float | None
    method: str
    shards: int
    mailbox: Mailbox

    @property
    def folder(self) -> Path:
        """Where the promise keeps its files."""
        return self.mailbox.series_folder


def observe_shard_counts(answers: DataFrame, name: str) -> DataFrame:
    """The answers alone; the counts of the shards are observed as ``slackwater-standing:<name>``.

    It costs one row per shard in each micro-batch, and one look at each answer.
    """
    observed = answers.observe(STANDING_PREFIX + name, F.collect_list(SHARD_COUNTS).alias("shards"))
    return observed.where(F.col(SHARD_COUNTS).isNull()).drop(SHARD_COUNTS)


class PrecisionHandler(PromiseHandler[PrecisionSpec]):
    """Writes the history of standing queries; the shards themselves keep the promise."""

    kind = "precision"
    metrics_prefix = STANDING_PREFIX

    def __init__(self, queries: RunningQueries, lock: AbstractContextManager[Any]) -> None:
        super().__init__(queries, lock)
        self._beginning: set[str] = set()

    def on_started(self, query_id: str) -> None:
        self._beginning.add(query_id)

    def on_progress(self, progress: StreamingQueryProgress) -> list[SeriesEntry]:
        self._beginning.discard(str(progress.id))
        entries = []
        for spec, metrics in self._observed(progress):
            # A shard that got neither a row nor a tick reports no counts.
            rows = [_values(row) for row in metrics["shards"] or []]
            tested = {stream_name(name): p for row in rows for name, p in (row.pop(TESTED) or {}).items()}
            entries.append(_entry(spec, [ShardCounts(**row) for row in rows], tested, progress))
        return entries

    def reports(self, query_id: str, series_of: SeriesOf) -> list[PromiseReport]:
        found = (series_of(spec.name, spec.mailbox) for spec in self._specs.values())
        mine = [series for series in found if series is not None and series.about.kind == self.kind]
        # What the run before committed and did not report is in the state, and the first micro-batch brings it.
        next_batch = self._queries.next_batch(query_id) if query_id in self._beginning else 0
        return [PrecisionReport(series, _missed(series.last, next_batch)) for series in mine]


def _values(row: Row | dict[str, Any]) -> dict[str, Any]:
    """The fields of a nested row, which is a dict in a progress event of Spark Connect."""
    return dict(row) if isinstance(row, dict) else row.asDict()


def _missed(last: Point | None, next_batch: int) -> int:
    """How many micro-batches there were between the last one in the history and the next one."""
    return max(0, next_batch - 1 - (-1 if last is None else last.batch))


def _entry(
    spec: PrecisionSpec, shards: list[ShardCounts], tested: dict[str, float], progress: StreamingQueryProgress
) -> SeriesEntry:
    """The micro-batch for the promise's history."""
    about = About(
        str(progress.id),
        query_name(progress),
        spec.name,
        "precision",
        spec.confidence or 0.0,
        f"{spec.method} deferral",
    )
    total = ShardCounts.together(shards)

    def point_after(last: Point | None) -> Point:
        before = (last.precision if last is not None else None) or PrecisionCounts()
        counts = before.after(total, whole=len(shards) == spec.shards, missed=_missed(last, progress.batchId))
        return Point(
            at_ms=committed_ms(progress),
            batch=progress.batchId,
            ledger=counts.ledger,
            cause=precision_cause(total) if shards else "no rows",
            duration_s=duration_s(progress),
            state_rows=state_rows(progress),
            precision=counts,
            normality=tuple(tested.items()),
        )

    return SeriesEntry(about, spec.mailbox, point_after)
