"""Writes generated readings into a folder while they arrive, so that several queries can read the same files."""

from __future__ import annotations

import math
import threading
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession

from slackwater.spark.worker.generator_source import SCHEMA, Readings

_FILE_S = 0.25
_UNBOUNDED_ROWS = 2**62


class Feed:
    """A thread that writes a Parquet file of new rows four times a second.

    Until ``begin()`` the rows are steady: queries need some micro-batches to become as fast as they can be. Then come
    the ``readings``, and the feed ends with the last of them. A row is written at most a quarter of a second after its
    arrival, unless the machine is too busy.
    """

    def __init__(self, readings: Readings, folder: Path, window_us: int) -> None:
        self._readings = readings
        self._folder = folder
        self._window_us = window_us
        self._lead: Readings | None = None
        self._lead_rows = 0
        self._rows = 0
        self._counts: dict[int, int] = {}
        self._start_us = math.inf
        self._lock = threading.Lock()
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name="slackwater-feed", daemon=True)
        folder.mkdir(parents=True, exist_ok=True)

    def start(self) -> None:
        """Let steady rows arrive from now on."""
        rate, seed = self._readings.rate_per_s, self._readings.seed
        self._lead = Readings(rate, _UNBOUNDED_ROWS, time.time_ns() // 1000, "steady", seed)
        self._thread.start()

    def begin(self) -> None:
        """Let the first of the readings arrive at the next whole second."""
        self.begin_at((time.time_ns() // 1_000_000_000 + 1) * 1_000_000)

    def begin_at(self, start_us: int) -> None:
        """Let the first of the readings arrive at ``start_us``."""
        with self._lock:
            self._readings = replace(self._readings, start_us=start_us)
            self._start_us = start_us

    def stop(self) -> None:
        """Write no more rows."""
        self._stopped.set()
        if self._thread.is_alive():
            self._thread.join()

    @property
    def start_us(self) -> int | None:
        """When the first of the readings arrives; None before ``begin()``."""
        return None if math.isinf(self._start_us) else int(self._start_us)

    @property
    def done(self) -> bool:
        """Whether every row has been written."""
        with self._lock:
            return self._rows == self._readings.rows

    @property
    def written(self) -> int:
        """How many rows have been written, before and since the beginning."""
        with self._lock:
            return self._lead_rows + self._rows

    @property
    def counts(self) -> dict[int, int]:
        """The readings written so far per window. A window is named by its end, in windows since the beginning."""
        with self._lock:
            return dict(self._counts)

    def stream(self, spark: SparkSession) -> DataFrame:
        """The rows as a stream."""
        return spark.readStream.schema(SCHEMA).parquet(str(self._folder))

    def batch(self, spark: SparkSession) -> DataFrame:
        """The rows written so far as a batch."""
        return spark.read.schema(SCHEMA).parquet(str(self._folder))

    def _run(self) -> None:
        while not self.done and not self._stopped.wait(_FILE_S):
            self.write_until(time.time_ns() // 1000)

    def write_until(self, now_us: int) -> None:
        """Write the rows that have arrived at ``now_us`` and are not written yet."""
        with self._lock:
            if self._lead is not None:
                last = self._lead.arrived_by(int(min(now_us, self._start_us)))
                self._write(self._lead, self._lead_rows, last, "lead")
                self._lead_rows = max(self._lead_rows, last)
            if now_us >= self._start_us:
                last = self._readings.arrived_by(now_us)
                self._count(self._write(self._readings, self._rows, last, "rows"))
                self._rows = max(self._rows, last)

    def _write(self, readings: Readings, first: int, last: int, name: str) -> pa.RecordBatch:
        rows = readings.table(first, max(first, last))
        if rows.num_rows:
            # Spark ignores names that begin with a dot: it sees only complete files.
            unfinished = self._folder / f".{name}-{first:012d}.parquet"
            pq.write_table(pa.Table.from_batches([rows]), unfinished)
            unfinished.rename(self._folder / f"{name}-{first:012d}.parquet")
        return rows

    def _count(self, rows: pa.RecordBatch) -> None:
        since_us = np.asarray(rows.column("ts").cast(pa.int64())) - self._readings.start_us
        ends, counts = np.unique(since_us // self._window_us + 1, return_counts=True)
        for end, count in zip(ends.tolist(), counts.tolist(), strict=True):
            self._counts[end] = self._counts.get(end, 0) + count
