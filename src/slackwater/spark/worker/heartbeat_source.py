"""The heartbeat source: a streaming source whose offset is the heartbeat, so that Spark's checkpoint stores it."""

from __future__ import annotations

import datetime as dt
import json
import time
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pyspark.sql.datasource import DataSource, SimpleDataSourceStreamReader
from pyspark.sql.types import StructType

from slackwater.control.policy import Policy
from slackwater.errors import PromiseConflict
from slackwater.spark.worker.available_now import ReportWait, SupportsTriggerAvailableNow
from slackwater.spark.worker.control_line import ControlLine
from slackwater.spark.worker.control_row_file import ControlRowFile
from slackwater.spark.worker.heartbeat_offset import HeartbeatOffset
from slackwater.spark.worker.mailbox import Mailbox

FORMAT = "slackwater_heartbeats"
BELOW_MS = 1
"""The watermark is the heartbeat minus this: Spark drops a row at exactly the watermark, and a tie is on time."""


class HeartbeatReader(SimpleDataSourceStreamReader, SupportsTriggerAvailableNow):
    """Chooses the heartbeat by the offered policy whenever Spark plans a micro-batch, and writes the control line.

    It runs beside the driver in a process of its own, once per query. It emits a row only when the heartbeat has risen.
    Spark calls ``readBetweenOffsets`` on an executor, to repeat a micro-batch: it needs the offsets and nothing else.
    A run of ``Trigger.AvailableNow`` ends: without rows there is no new policy, and each policy raises it once.

    :param folder: the promise's folder.
    :param columns: the columns of the events.
    :param column: the event-time column.
    :param state: what the query's state is made of. It is kept in the offsets: a checkpoint with another value is
        refused, because Spark itself compares only the columns of the state.
    :param row_file: whether micro-batches read the control row from a file; else they ask the driver.
    """

    def __init__(
        self, folder: str, columns: list[str], column: str, state: dict[str, str], row_file: bool = False
    ) -> None:
        self._mailbox = Mailbox(Path(folder))
        self._promise = self._mailbox.folder.name
        self._row_file = ControlRowFile(Path(folder)) if row_file else None
        self._columns = columns
        self._column = column
        self._state = state
        self._used_policy: Policy | None = None
        self._judging: HeartbeatOffset | None = None
        self._report_wait: ReportWait | None = None

    def prepareForTriggerAvailableNow(self) -> None:
        self._report_wait = ReportWait(self._mailbox)

    def initialOffset(self) -> dict[str, Any]:
        start = HeartbeatOffset(uuid.uuid4().hex, state=self._state, promise=self._promise)
        self._write_control(start, None)
        return start.as_json()

    def read(self, start: dict[str, Any]) -> tuple[Iterator[tuple[Any, ...]], dict[str, Any]]:
        at = HeartbeatOffset.from_json(start)
        self._refuse_other_state(at)
        wait = self._report_wait
        offer = self._mailbox.read_offer(at.epoch) if wait is None else wait.newest_offer(at.epoch)
        chosen = None if offer is None else offer.heartbeat_at(time.time() * 1000.0)
        # What was read for the micro-batch before this one is the watermark now: it judges the rows.
        self._write_control(at, chosen)
        # A policy is used once: its heartbeat would go on rising with the clock, and each rise is a micro-batch.
        if offer is None or chosen is None or offer.policy == self._used_policy:
            return iter([]), start
        self._used_policy, self._judging = offer.policy, chosen
        if not chosen.rises_above(at):
            return iter([]), start
        return self._rows(chosen), {**chosen.as_json(), "state": self._state, "promise": self._promise}

    def readBetweenOffsets(self, start: dict[str, Any], end: dict[str, Any]) -> Iterator[tuple[Any, ...]]:
        before, after = HeartbeatOffset.from_json(start), HeartbeatOffset.from_json(end)
        self._refuse_other_state(before)
        return self._rows(after) if after.rises_above(before) else iter([])

    def _refuse_other_state(self, start: HeartbeatOffset) -> None:
        before = start.state or self._state
        for what, now in self._state.items():
            if before.get(what) != now:
                raise PromiseConflict(
                    "other-query",
                    f"the checkpoint is that of a query with {what} {before.get(what)}, and this one has {what} {now}",
                    "start it as it was, or with a checkpoint of its own",
                )

    def _write_control(self, start: HeartbeatOffset, chosen: HeartbeatOffset | None) -> None:
        """Put the control line in force before Spark plans the micro-batch: its heartbeat is the watermark."""
        judging = start if self._judging is None else self._judging
        line = ControlLine.for_batch(
            start.heartbeat_ms,
            None if chosen is None else chosen.clock_ms,
            sample_cells=chosen is not None and chosen.sample_cells,
            chosen_at_ms=judging.clock_ms,
            decided_at_ms=judging.decided_at_ms,
        )
        if self._row_file is not None:
            self._row_file.write(line)
        self._mailbox.control.write(start.epoch, line)

    def _rows(self, offset: HeartbeatOffset) -> Iterator[tuple[Any, ...]]:
        assert offset.heartbeat_ms is not None
        at = dt.datetime.fromtimestamp((offset.heartbeat_ms - BELOW_MS) / 1000, dt.UTC)
        return iter([tuple(at if name == self._column else None for name in self._columns)])


class HeartbeatSource(DataSource):
    """Rows of the events' schema: the heartbeat in the event-time column, null in the others.

    The columns are real. The optimizer would fold a branch of null literals away, and the watermark operator with it.
    """

    @classmethod
    def name(cls) -> str:
        return FORMAT

    def schema(self) -> StructType:
        return StructType.fromJson(json.loads(self.options["schema"]))

    def simpleStreamReader(self, schema: StructType) -> HeartbeatReader:
        options = self.options
        return HeartbeatReader(
            options["folder"],
            list(schema.names),
            options["column"],
            json.loads(options["state"]),
            options["row_file"] == "true",
        )
