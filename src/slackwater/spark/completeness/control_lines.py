"""The control line of a micro-batch, as the driver answers for it while Spark plans."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

from pyspark.sql import SparkSession

from slackwater.spark.runtime.checks import WATERMARK_POLICY, refuse_max_policy
from slackwater.spark.runtime.driver_lines import PlannedBatch
from slackwater.spark.worker.control_line import WIDTH, ControlLine
from slackwater.spark.worker.heartbeat_offset import HeartbeatOffset
from slackwater.spark.worker.mailbox import Mailbox


@dataclass(slots=True)
class ControlLines:
    """The control lines of one promise.

    The heartbeat reader writes them when Spark plans a micro-batch. Spark does not call it before it repeats one after
    a restart. So in the first micro-batch of every run, the query's epoch and the heartbeat that judges the rows are
    taken from its checkpoint. That costs some milliseconds, once.
    """

    spark: SparkSession
    mailbox: Mailbox
    _epochs: dict[str, tuple[str | None, str]] = field(default_factory=dict)

    def text_for(self, planned: PlannedBatch | None) -> str:
        """The line with one number more: when the micro-batch was planned, in microseconds."""
        if planned is None:
            return _text(ControlLine(), 0)
        context: Any = self.spark.sparkContext
        refuse_max_policy(context._jvm.org.apache.spark.sql.SparkSession.active().conf().get(WATERMARK_POLICY))
        return _text(self._line_for(planned), planned.at_us)

    def _line_for(self, planned: PlannedBatch) -> ControlLine:
        run_id, known = self._epochs.get(planned.query_id, (None, ""))
        line = self.mailbox.control.read(known) if run_id == planned.run_id else None
        if line is not None:
            return line
        offsets = _heartbeat_offsets(self.spark, planned.query_id, planned.batch)
        epoch = self._epoch_among(offsets)
        if epoch is None:
            return ControlLine()
        self._epochs[planned.query_id] = planned.run_id, epoch
        before = _heartbeat_offsets(self.spark, planned.query_id, planned.batch - 1)
        heartbeats = [offset.heartbeat_ms for offset in before if offset.epoch == epoch]
        return self.mailbox.control.line_of(epoch, heartbeats[0] if heartbeats else None)

    def _epoch_among(self, offsets: list[HeartbeatOffset]) -> str | None:
        """The epoch under which the query has this promise; offsets of earlier versions do not name their promise."""
        mine = [offset for offset in offsets if offset.promise == self.mailbox.promise]
        mine = mine or [offset for offset in offsets if self.mailbox.control.has(offset.epoch)]
        mine = mine or (offsets if len(offsets) == 1 else [])
        return mine[0].epoch if mine else None


def _heartbeat_offsets(spark: SparkSession, query_id: str, batch: int) -> list[HeartbeatOffset]:
    """The heartbeat offsets at the end of a micro-batch, from the checkpoint of a running query.

    Spark writes them before it plans the micro-batch, and keeps the last ones in memory. It has no public API for them.
    """
    query: Any = spark.streams.get(query_id)
    found: list[HeartbeatOffset] = []
    if batch < 0 or query is None:
        return found
    entry = query._jsq.streamingQuery().offsetLog().get(batch)
    if entry.isEmpty():
        return found
    offsets = entry.get().offsets()
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
