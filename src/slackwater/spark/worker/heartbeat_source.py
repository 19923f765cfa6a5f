"""The heartbeat source: its offset is the heartbeat, so that Spark's checkpoint stores it."""

from __future__ import annotations

import datetime as dt
import json
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pyspark.sql.datasource import DataSource, SimpleDataSourceStreamReader
from pyspark.sql.types import StructType

from slackwater.errors import PromiseConflict
from slackwater.spark.worker.mailbox import Mailbox

FORMAT = "slackwater_heartbeats"
BELOW_MS = 1  # Spark drops a row at exactly the watermark, and a tie with the heartbeat is on time


class HeartbeatReader(SimpleDataSourceStreamReader):
    """Runs beside the driver, in a process of its own, once for each query; costs no executor a Python worker.

    An offset is ``{"epoch": of the query, "heartbeat": ms or null, …}``; what stands beside the heartbeat (batch
    and ledger) survives with it. A row is emitted only when the heartbeat has risen; while
    nothing is offered, or only to other queries, it stays where it is.

    ``held`` says what the state of the query is made of, and is in its offsets too: a checkpoint of another query is
    refused, since Spark compares no more than the columns of states.
    """

    def __init__(self, folder: str, columns: list[str], column: str, held: dict[str, str]) -> None:
        self._mailbox = Mailbox(Path(folder))
        self._columns = columns
        self._column = column
        self._held = held
        self._announced = False

    def initialOffset(self) -> dict[str, Any]:
        self._mailbox.start_afresh()
        return {"epoch": uuid.uuid4().hex, "heartbeat": None, "held": self._held}

    def read(self, start: dict[str, Any]) -> tuple[Iterator[tuple[Any, ...]], dict[str, Any]]:
        self._refuse_others(start)
        # Spark asks when it puts a micro-batch together, and what was read for the one before is then the watermark
        offered = self._mailbox.offer_for(start["epoch"])
        self._write_control(start, offered)
        if offered is None or not _rises(start, offered):
            return iter([]), start
        end = {"epoch": start["epoch"], "held": self._held, **offered}
        return self._rows(end), end

    def readBetweenOffsets(self, start: dict[str, Any], end: dict[str, Any]) -> Iterator[tuple[Any, ...]]:
        self._refuse_others(start)
        self._write_control(start, None)
        return self._rows(end) if _rises(start, end) else iter([])

    def _refuse_others(self, start: dict[str, Any]) -> None:
        before = start.get("held") or self._held
        for what, now in self._held.items():
            if before.get(what) != now:
                raise PromiseConflict(
                    "other-query",
                    f"the checkpoint is that of a query with {what} {before.get(what)}, and this one has {what} {now}",
                    "start it as it was, or with a checkpoint of its own",
                )

    def _write_control(self, offset: dict[str, Any], offered: dict[str, Any] | None) -> None:
        """The control row is never older than the watermark; where queries share it, the furthest one's counts."""
        if not self._announced:
            self._mailbox.announce(offset["epoch"])
            self._announced = True
        in_force, sampled = self._mailbox.read_control()
        own, sample_cells = offset["heartbeat"], offered is not None and offered["thin"]
        if own is None:
            if in_force is None and offered is not None:
                self._mailbox.write_control(None, offered["clock"], sample_cells)
        elif in_force is None or in_force < own or sample_cells != sampled:
            self._mailbox.write_control(own if in_force is None else max(in_force, own), sample_cells=sample_cells)

    def _rows(self, offset: dict[str, Any]) -> Iterator[tuple[Any, ...]]:
        at = dt.datetime.fromtimestamp((offset["heartbeat"] - BELOW_MS) / 1000, dt.UTC)
        return iter([tuple(at if name == self._column else None for name in self._columns)])


def _rises(start: dict[str, Any], end: dict[str, Any]) -> bool:
    below = start["heartbeat"]
    return end["heartbeat"] is not None and (below is None or bool(end["heartbeat"] > below))


class HeartbeatSource(DataSource):
    """Rows of the events' own schema: the heartbeat in the event-time column, null elsewhere.

    Real columns, since null literals would fold away and take the watermark operator with them.
    """

    @classmethod
    def name(cls) -> str:
        return FORMAT

    def schema(self) -> StructType:
        return StructType.fromJson(json.loads(self.options["schema"]))

    def simpleStreamReader(self, schema: StructType) -> HeartbeatReader:
        options = self.options
        return HeartbeatReader(options["folder"], list(schema.names), options["column"], json.loads(options["held"]))
