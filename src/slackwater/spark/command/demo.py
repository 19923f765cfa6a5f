"""Two queries over the same generated stream: one under a promise, one under a fixed watermark."""

from __future__ import annotations

import json
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.query import StreamingQuery

from slackwater.spark.completeness.api import with_drop_ratio
from slackwater.spark.completeness.report import CompletenessReport
from slackwater.spark.report import report
from slackwater.spark.runtime.listener import listener_of
from slackwater.spark.runtime.results import observe_results
from slackwater.spark.worker.generator_source import Readings, read_batch, read_stream
from slackwater.watching.series import MAX_RESULT_ROWS, ResultRows

WINDOW = "1 second"
_CLOCK = "fixed-watermark"


@dataclass(frozen=True, slots=True)
class QueryState:
    """The state of one of the two queries.

    ``rows`` were read and ``windows`` were closed. ``latest`` holds (start, rows, peak) of the newest windows, newest
    first.
    """

    rows: int
    wait_ms: float | None
    mean_wait_ms: float | None
    windows: int
    latest: list[tuple[str, int, float]]


@dataclass(frozen=True, slots=True)
class MissingRows:
    """Rows missing in the windows that a query closed, compared with a batch job over the same rows."""

    windows: int
    rows: int
    missing: int

    @property
    def ratio(self) -> float:
        """Missing rows / rows of those windows."""
        return self.missing / self.rows if self.rows else 0.0


class SideBySide:
    """Starts both queries over the same readings and reports their state until ``stop()``."""

    def __init__(
        self, spark: SparkSession, readings: Readings, drop_ratio: float, fixed_wait: str, method: str
    ) -> None:
        self._spark = spark
        self._readings = readings
        self._folder = tempfile.TemporaryDirectory(prefix="slackwater-demo-", ignore_cleanup_errors=True)
        self._fixed_waits: dict[int, tuple[int, float]] = {}
        self._newest_window = ""
        promised = with_drop_ratio(
            read_stream(spark, readings), "ts", drop_ratio, arrival="arrived", name="demo", method=method
        )
        fixed = (
            read_stream(spark, readings)
            .observe(_CLOCK, F.count(F.lit(1)).alias("rows"), F.unix_millis(F.max("arrived")).alias("clock_ms"))
            .withWatermark("ts", fixed_wait)
        )
        self.promised = self._start(observe_results(_windows(promised), "demo"), "promised")
        self.fixed = self._start(_windows(fixed), "fixed")

    def _start(self, windows: DataFrame, name: str) -> StreamingQuery:
        return (
            windows.writeStream.outputMode("append")
            .format("memory")
            .queryName(name)
            .option("checkpointLocation", str(Path(self._folder.name) / name))
            .start()
        )

    @property
    def done(self) -> bool:
        """Whether both have read every row, or one has failed."""
        if not (self.promised.isActive and self.fixed.isActive):
            return True
        return all(_rows_read(query) >= self._readings.rows for query in (self.promised, self.fixed))

    def failure(self) -> str | None:
        """The first line of a failed query's error, if one failed."""
        for query in (self.promised, self.fixed):
            error = query.exception()
            if error is not None:
                return str(error).splitlines()[0]
        return None

    def promise(self) -> CompletenessReport | None:
        """The report of the promise; None before the first micro-batch."""
        if self.promised.lastProgress is None:
            return None
        promises = report(self.promised).completeness
        return promises[0] if promises else None

    def promised_state(self) -> QueryState:
        """The state of the query under the promise. Also sends its newest windows to the live page."""
        promise = self.promise()
        if promise is None:
            return QueryState(0, None, None, 0, [])
        windows, latest = self._results("promised")
        newer = tuple(
            (window, f"{rows:,}", f"{peak:.2f}") for window, rows, peak in latest if window > self._newest_window
        )
        if newer:
            self._newest_window = newer[0][0]
            listener_of(self._spark).add_results("demo", ResultRows(("window", "rows", "peak"), newer))
        return QueryState(promise.ledger.input, promise.wait_ms, promise.mean_wait_ms, windows, latest)

    def fixed_state(self) -> QueryState:
        """The state of the query under the fixed watermark; batches before its first watermark have no wait."""
        for progress in self.fixed.recentProgress:
            metrics = (progress["observedMetrics"] or {}).get(_CLOCK)
            if metrics and metrics["rows"]:
                watermark_ms = pd.Timestamp(progress["eventTime"]["watermark"]).timestamp() * 1000
                wait_ms = metrics["clock_ms"] - watermark_ms if watermark_ms > 0 else 0.0
                self._fixed_waits[progress["batchId"]] = (metrics["rows"], wait_ms)
        waits = [(rows, wait) for rows, wait in self._fixed_waits.values() if wait > 0]
        waiting_rows = sum(rows for rows, _ in waits)
        windows, latest = self._results("fixed")
        return QueryState(
            sum(rows for rows, _ in self._fixed_waits.values()),
            waits[-1][1] if waits else None,
            sum(rows * wait for rows, wait in waits) / waiting_rows if waiting_rows else None,
            windows,
            latest,
        )

    def _results(self, name: str) -> tuple[int, list[tuple[str, int, float]]]:
        """How many windows the query closed, and the newest of them."""
        results = self._spark.table(name)
        latest = results.groupBy("window").agg(F.sum("n").alias("n"), F.max("peak").alias("peak"))
        newest = latest.orderBy(F.desc("window")).limit(MAX_RESULT_ROWS).collect()
        return latest.count(), [(f"{row.window.start:%H:%M:%S}", row.n, row.peak) for row in newest]

    def missing(self, name: str) -> MissingRows:
        """Compare the windows that a query ("promised" or "fixed") closed with a batch job over the same rows."""
        closed = self._spark.table(name).groupBy("window").agg(F.sum("n").alias("got"))
        truth = read_batch(self._spark, self._readings).groupBy(F.window("ts", WINDOW)).agg(F.count("*").alias("n"))
        row = closed.join(truth, "window").agg(F.count("*"), F.sum("n"), F.sum(F.col("n") - F.col("got"))).collect()[0]
        return MissingRows(int(row[0]), int(row[1] or 0), int(row[2] or 0))

    def stop(self) -> None:
        """Stop both queries."""
        for query in (self.promised, self.fixed):
            query.stop()
        self._folder.cleanup()


def new_readings(rate_per_s: int, seconds: float, seed: int) -> Readings:
    """Readings from now on, whose lateness is steady, then drifts, then comes in bursts."""
    return Readings(rate_per_s, int(rate_per_s * seconds), time.time_ns() // 1000, seed=seed)


def _windows(events: DataFrame) -> DataFrame:
    return events.groupBy(F.window("ts", WINDOW), "sensor").agg(F.count("*").alias("n"), F.max("value").alias("peak"))


def _rows_read(query: StreamingQuery) -> int:
    progress = query.lastProgress
    if progress is None:
        return 0
    offsets: list[dict[str, Any]] = [json.loads(source["endOffset"] or "{}") for source in progress["sources"]]
    return max((int(offset["row"]) for offset in offsets if "row" in offset), default=0)
