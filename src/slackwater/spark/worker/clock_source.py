"""The clock as a stream: one row a tick, so that time passes for a query even when no data comes."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pyspark.sql.datasource import DataSource, SimpleDataSourceStreamReader
from pyspark.sql.types import StructType

FORMAT = "slackwater_clock"


class ClockReader(SimpleDataSourceStreamReader):
    """A tick whenever the clock has moved on by the interval; its offset is the time, so a replay sees the same one.

    Runs beside the driver, in a process of its own. ``hand`` is a file that holds the time in milliseconds in the
    place of the machine's clock, for whoever turns time by hand.
    """

    def __init__(self, interval_ms: float, hand: str | None) -> None:
        self._interval_ms = interval_ms
        self._hand = None if hand is None else Path(hand)

    def initialOffset(self) -> dict[str, Any]:
        return {"clock_ms": 0}

    def read(self, start: dict[str, Any]) -> tuple[Iterator[tuple[Any, ...]], dict[str, Any]]:
        now_ms = int(time.time() * 1000) if self._hand is None else int(self._hand.read_text())
        if now_ms < start["clock_ms"] + self._interval_ms:
            return iter([]), start
        end = {"clock_ms": now_ms}
        return self.readBetweenOffsets(start, end), end

    def readBetweenOffsets(self, start: dict[str, Any], end: dict[str, Any]) -> Iterator[tuple[Any, ...]]:
        return iter([(end["clock_ms"],)] if end["clock_ms"] > start["clock_ms"] else [])


class ClockSource(DataSource):
    """Rows of one column, the clock in milliseconds."""

    @classmethod
    def name(cls) -> str:
        return FORMAT

    def schema(self) -> str:
        return "clock_ms long"

    def simpleStreamReader(self, schema: StructType) -> ClockReader:
        return ClockReader(float(self.options["interval_ms"]), self.options.get("hand"))
