"""The control line of a micro-batch, as the driver answers for it while Spark plans."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, field
from typing import Any

from pyspark.sql import SparkSession

from slackwater.spark.completeness.fresh_offers import FreshOffers
from slackwater.spark.runtime.checks import WATERMARK_POLICY, refuse_max_policy
from slackwater.spark.runtime.driver_lines import PlannedBatch
from slackwater.spark.worker.control_line import WIDTH, ControlLine
from slackwater.spark.worker.heartbeat_offset import HeartbeatOffset
from slackwater.spark.worker.heartbeat_source import BELOW_MS
from slackwater.spark.worker.mailbox import Mailbox, Offer
from slackwater.units import MS_US


@dataclass(frozen=True, slots=True)
class _Run:
    """A run of a query: its epoch, and whether it has no promise but this one."""

    run_id: str | None
    epoch: str
    is_only: bool


@dataclass(slots=True)
class ControlLines:
    """The control lines of one promise.

    The heartbeat reader writes them when Spark plans a micro-batch. Spark does not call it before it repeats one after
    a restart. So in the first micro-batch of every run, the query's epoch and the heartbeat that judges the rows are
    taken from its checkpoint. That costs some milliseconds, once.

    ``follows_rows``: the rows of the plan can raise the heartbeat. They do if the query has no other promise, since the
    watermark of a query is the lowest of all its watermarks. The heartbeat is then Spark's watermark, and the line is
    made here, from the report of the micro-batch that has just ended.
    """

    spark: SparkSession
    mailbox: Mailbox
    follows_rows: bool = False
    _runs: dict[str, _Run] = field(default_factory=dict)
    _offers: FreshOffers = field(init=False)

    def __post_init__(self) -> None:
        self._offers = FreshOffers(self.mailbox)

    def text_for(self, planned: PlannedBatch | None) -> str:
        """The line with one number more: when the micro-batch was planned, in microseconds."""
        if planned is None:
            return _text(ControlLine(), 0)
        run = self._runs.get(planned.query_id)
        if run is None or run.run_id != planned.run_id:
            context: Any = self.spark.sparkContext
            refuse_max_policy(context._jvm.org.apache.spark.sql.SparkSession.active().conf().get(WATERMARK_POLICY))
        return _text(self._line_for(planned), planned.at_us)

    def _line_for(self, planned: PlannedBatch) -> ControlLine:
        run = self._runs.get(planned.query_id)
        if run is not None and run.run_id == planned.run_id:
            if run.is_only:
                return self._following(planned, self._offers.after(run.epoch, planned.batch - 1))
            line = self.mailbox.control.read(run.epoch)
            if line is not None:
                return line
        offsets = _heartbeat_offsets(self.spark, planned.query_id, planned.batch)
        epoch = self._epoch_among(offsets)
        if epoch is None:
            return ControlLine()
        is_only = self.follows_rows and len(offsets) == 1
        self._runs[planned.query_id] = _Run(planned.run_id, epoch, is_only)
        if is_only:
            return self._following(planned, self.mailbox.read_offer(epoch))
        before = _heartbeat_offsets(self.spark, planned.query_id, planned.batch - 1)
        heartbeats = [offset.heartbeat_ms for offset in before if offset.epoch == epoch]
        return self.mailbox.control.line_of(epoch, heartbeats[0] if heartbeats else None)

    def _following(self, planned: PlannedBatch, offer: Offer | None) -> ControlLine:
        """The line of a micro-batch whose rows may raise the heartbeat of the next one."""
        watermark_ms = _watermark_ms(self.spark, planned.query_id, planned.batch)
        heartbeat_ms = watermark_ms + BELOW_MS if watermark_ms else None
        if offer is None or offer.policy is None:
            return ControlLine.for_batch(heartbeat_ms).in_room(None)
        clock_ms = math.floor(offer.policy.clock_at(planned.at_us / MS_US))
        return ControlLine.for_batch(heartbeat_ms, clock_ms, offer.sample_cells).in_room(offer.policy.room)

    def _epoch_among(self, offsets: list[HeartbeatOffset]) -> str | None:
        """The epoch under which the query has this promise; offsets of earlier versions do not name their promise."""
        mine = [offset for offset in offsets if offset.promise == self.mailbox.promise]
        mine = mine or [offset for offset in offsets if self.mailbox.control.has(offset.epoch)]
        mine = mine or (offsets if len(offsets) == 1 else [])
        return mine[0].epoch if mine else None


def _planned(spark: SparkSession, query_id: str, batch: int) -> Any:
    """The entry of a micro-batch in the offset log of a running query; None if there is none.

    Spark writes it before it plans the micro-batch, and keeps the last ones in memory. It has no public API for them.
    """
    query: Any = spark.streams.get(query_id)
    if batch < 0 or query is None:
        return None
    entry = query._jsq.streamingQuery().offsetLog().get(batch)
    return None if entry.isEmpty() else entry.get()


def _watermark_ms(spark: SparkSession, query_id: str, batch: int) -> int:
    """Spark's watermark in a micro-batch; 0 if there is none yet."""
    entry = _planned(spark, query_id, batch)
    if entry is None:
        return 0
    metadata = entry.productElement(1)  # its name differs between versions of Spark
    return 0 if metadata.isEmpty() else int(metadata.get().batchWatermarkMs())


def _heartbeat_offsets(spark: SparkSession, query_id: str, batch: int) -> list[HeartbeatOffset]:
    """The heartbeat offsets at the end of a micro-batch."""
    found: list[HeartbeatOffset] = []
    entry = _planned(spark, query_id, batch)
    if entry is None:
        return found
    offsets = entry.offsets()
    for number in range(offsets.size()):
        offset = offsets.apply(number)
        if offset.isEmpty():
            continue
        try:
            found.append(HeartbeatOffset.from_json(json.loads(offset.get().json())))
        except (TypeError, KeyError, json.JSONDecodeError):
            continue  # the offset of another source
    return found


def _text(line: ControlLine, planned_at_us: int) -> str:
    return f"{line.text().rstrip()} {planned_at_us:+0{WIDTH}d}\n"
