"""Queries over the same generated stream: one under a promise, the others under guessed watermarks."""

from __future__ import annotations

import math
import statistics
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.query import StreamingQuery

from slackwater.spark.command.comparison import PROMISED, Course, Published, Span, course_of
from slackwater.spark.command.feed import Feed
from slackwater.spark.command.publications import CommitListener, Publications
from slackwater.spark.completeness.api import with_drop_ratio
from slackwater.spark.completeness.report import CompletenessReport
from slackwater.spark.report import report
from slackwater.spark.runtime.listener import listener_of
from slackwater.spark.runtime.results import observe_results
from slackwater.spark.runtime.starting import start_with_retries
from slackwater.spark.worker.generator_source import Readings
from slackwater.units import duration_ms
from slackwater.watching.series import ResultRows

_WINDOW = "1 second"
_WINDOW_US = 1_000_000
_TRIGGER = "1 second"
SESSION = {
    # The demo is short: thorough compilation would take the time of the queries.
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:ReservedCodeCacheSize=200m",
    # Hadoop starts a process for every local file that it creates or links; these settings avoid most of them. What
    # they give up is durability, and the demo's checkpoints are deleted with it.
    "spark.hadoop.fs.file.impl": "org.apache.hadoop.fs.RawLocalFileSystem",
    "spark.sql.streaming.checkpoint.fileChecksum.enabled": "false",
    "spark.sql.streaming.checkpointFileManagerClass": (
        "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
    ),
}
"""Settings of the demo's session. They hold for all queries."""
_WARM_BATCHES = 3
_MAX_TAIL_S = 60.0


def demo_readings(rate_per_s: int, seconds: float, longest_guess_s: float, seed: int) -> Readings:
    """Readings whose lateness is steady, then drifts, then comes in bursts; they begin at time 0.

    The tail is as long as the longest guess, but at most a minute: a guess closes a window when rows that much newer
    have come.
    """
    tail_rows = int(rate_per_s * min(longest_guess_s + 2, _MAX_TAIL_S))
    return Readings(rate_per_s, int(rate_per_s * seconds) + tail_rows, 0, seed=seed, tail_rows=tail_rows)


def spans_of(readings: Readings) -> list[Span]:
    """The phases of the readings in windows, with the lateness of each."""
    spans = []
    for phase in readings.phases():
        lateness_ms = readings.lateness_us(phase.first, phase.last) / 1e3
        within_ms = float(np.quantile(lateness_ms, 0.99)) if len(lateness_ms) else math.nan
        start, end = (row * 1_000_000 // (readings.rate_per_s * _WINDOW_US) for row in (phase.first, phase.last))
        spans.append(Span(phase.name, start, end, within_ms))
    return spans


class SideBySide:
    """Runs one query under the promise and one per guess over the same rows, until ``stop()``.

    All queries read the same files, compute the same windows and have the same trigger.
    """

    def __init__(
        self, spark: SparkSession, readings: Readings, drop_ratio: float, guesses: Sequence[str], method: str
    ) -> None:
        self._spark = spark
        self._readings = readings
        self.spans = spans_of(readings)
        self._folder = tempfile.TemporaryDirectory(prefix="slackwater-demo-", ignore_cleanup_errors=True)
        self.feed = Feed(readings, Path(self._folder.name) / "rows", _WINDOW_US)
        self._publications = {name: Publications() for name in (PROMISED, *guesses)}
        self._listener = CommitListener(self._publications)
        spark.streams.addListener(self._listener)
        events = with_drop_ratio(
            self.feed.stream(spark), "ts", drop_ratio, arrival="arrived", name="demo", method=method
        )
        self.queries = {PROMISED: self._start(PROMISED, observe_results(_windows(events), "demo"))}
        for guess in guesses:
            delay = f"{duration_ms(guess, option='guess'):.0f} milliseconds"  # Spark does not read "1s"
            self.queries[guess] = self._start(guess, _windows(self.feed.stream(spark).withWatermark("ts", delay)))

    def _start(self, name: str, windows: DataFrame) -> StreamingQuery:
        def publish(results: DataFrame, batch: int) -> None:
            start = F.date_format("window.start", "HH:mm:ss").alias("start")
            rows = results.select(start, F.unix_micros("window.end").alias("end_us"), "n", "peak").collect()
            self._publications[name].add_results(batch, [(row.end_us, row.n) for row in rows])
            if rows and name == PROMISED:
                listener_of(self._spark).add_results("demo", _result_rows(rows))

        return start_with_retries(
            windows.writeStream.outputMode("append")
            .foreachBatch(publish)
            .trigger(processingTime=_TRIGGER)
            .queryName(name)
            .option("checkpointLocation", str(Path(self._folder.name) / name.replace(" ", "-")))
        )

    @property
    def ready(self) -> bool:
        """Whether every query has committed micro-batches with rows, and is as fast as it will be."""
        return all(each.rows_read and each.batches >= _WARM_BATCHES for each in self._publications.values())

    @property
    def elapsed_s(self) -> float:
        """Seconds since the first phase began; 0 before."""
        start_us = self.feed.start_us
        return 0.0 if start_us is None else max(0.0, time.time() - start_us / 1e6)

    @property
    def length_s(self) -> float:
        """The length of the stream in seconds, without its tail."""
        return (self._readings.rows - self._readings.tail_rows) / self._readings.rate_per_s

    def waiting_for(self) -> list[str]:
        """The queries that have not yet published every window of the phases."""
        last = self.spans[-1].end
        return [name for name in self.queries if max(self.published(name), default=0) < last]

    @property
    def all_read(self) -> bool:
        """Whether every query has read every row."""
        return self.feed.done and all(each.rows_read >= self.feed.written for each in self._publications.values())

    @property
    def median_batch_s(self) -> float | None:
        """How long a micro-batch took in the median, over all queries."""
        durations_s = [each_s for publications in self._publications.values() for each_s in publications.durations_s]
        return statistics.median(durations_s) if durations_s else None

    def failure(self) -> str | None:
        """The first line of a failed query's error, if one failed."""
        for query in self.queries.values():
            error = query.exception()
            if error is not None:
                return str(error).splitlines()[0]
        return None

    def promise(self) -> CompletenessReport | None:
        """The report of the promise; None before the first micro-batch."""
        query = self.queries[PROMISED]
        promises = () if query.lastProgress is None else report(query).completeness
        return promises[0] if promises else None

    def courses(self, counts: Mapping[int, int]) -> dict[str, Course]:
        """What each query has lost and how old its results were: first the promise, then the guesses.

        ``counts`` are the rows of every window: those of the feed while it runs, those of the batch job at the end.
        """
        return {name: course_of(self.published(name), counts, self.spans) for name in self.queries}

    def published(self, name: str) -> dict[int, Published]:
        """The windows that a query has published, by their end, in windows since the start."""
        start_us = self.feed.start_us
        return {} if start_us is None else self._publications[name].windows(start_us, _WINDOW_US)

    def batch_counts(self) -> dict[int, int]:
        """The rows of every window, counted by a batch job over the files that the queries have read."""
        counted = self.feed.batch(self._spark).groupBy(F.window("ts", _WINDOW)).agg(F.count("*").alias("n"))
        rows = counted.select(F.unix_micros("window.end").alias("end_us"), "n").collect()
        start_us = self.feed.start_us or 0
        return {(row.end_us - start_us) // _WINDOW_US: row.n for row in rows}

    def halt(self) -> None:
        """Stop the feed and all queries. What they have published stays."""
        self.feed.stop()
        for query in self.queries.values():
            query.stop()

    def stop(self) -> None:
        """Halt, and delete the files."""
        self.halt()
        self._spark.streams.removeListener(self._listener)
        self._folder.cleanup()


def _windows(events: DataFrame) -> DataFrame:
    return events.groupBy(F.window("ts", _WINDOW), "sensor").agg(F.count("*").alias("n"), F.max("value").alias("peak"))


def _result_rows(rows: list[Row]) -> ResultRows:
    """The results as the live page shows them: all sensors of a window together, the newest window first."""
    windows: dict[int, tuple[str, int, float]] = {}
    for row in rows:
        _, count, peak = windows.get(row.end_us, ("", 0, -math.inf))
        windows[row.end_us] = (row.start, count + row.n, max(peak, row.peak))
    newest_first = (windows[end_us] for end_us in sorted(windows, reverse=True))
    return ResultRows(
        ("window", "rows", "peak"), tuple((start, f"{count:,}", f"{peak:.2f}") for start, count, peak in newest_first)
    )
