"""The clock as a Spark source: one row per tick, so that time passes even when no data comes."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pyspark.sql.datasource import DataSource, SimpleDataSourceStreamReader
from pyspark.sql.types import StructType

from slackwater.spark.worker.available_now import SupportsTriggerAvailableNow

FORMAT = "slackwater_clock"


class ClockReader(SimpleDataSourceStreamReader, SupportsTriggerAvailableNow):
    """Emits a tick whenever the clock has advanced by the interval. The offset is the time, so a replay sees it again.

    For a run of ``Trigger.AvailableNow`` the clock stands still at its start, so that the run ends.

    Runs in a Python process beside the driver. ``clock_file`` holds the time in milliseconds and replaces the machine's
    clock; tests and replays use it.
    """

    def __init__(self, interval_ms: float, clock_file: str | None) -> None:
        self._interval_ms = interval_ms
        self._clock_file = None if clock_file is None else Path(clock_file)
        self._stands_at_ms: int | None = None

    def prepareForTriggerAvailableNow(self) -> None:
        self._stands_at_ms = self._now_ms()

    def initialOffset(self) -> dict[str, Any]:
        return {"clock_ms": 0}

    def read(self, start: dict[str, Any]) -> tuple[Iterator[tuple[Any, ...]], dict[str, Any]]:
        now_ms = self._now_ms() if self._stands_at_ms is None else self._stands_at_ms
        if now_ms < start["clock_ms"] + self._interval_ms:
            return iter([]), start
        end = {"clock_ms": now_ms}
        return self.readBetweenOffsets(start, end), end

    def readBetweenOffsets(self, start: dict[str, Any], end: dict[str, Any]) -> Iterator[tuple[Any, ...]]:
        return iter([(end["clock_ms"],)] if end["clock_ms"] > start["clock_ms"] else [])

    def _now_ms(self) -> int:
        return int(time.time() * 1000) if self._clock_file is None else int(self._clock_file.read_text())


class ClockSource(DataSource):
    """Rows with one column: the clock in milliseconds."""

    @classmethod
    def name(cls) -> str:
        return FORMAT

    def schema(self) -> str:
        return "clock_ms long"

    def simpleStreamReader(self, schema: StructType) -> ClockReader:
        return ClockReader(float(self.options["interval_ms"]), self.options.get("clock_file"))
