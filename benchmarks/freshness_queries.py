"""The queries of the freshness benchmark: a count per window, under a promise or under a constant watermark delay."""

from __future__ import annotations

import itertools
import json
import math
import threading
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.listener import QueryProgressEvent, StreamingQueryListener
from pyspark.sql.streaming.query import StreamingQuery

import slackwater as sw
from freshness_streams import LiveStream
from slackwater.control.disorder.protocol import UNKNOWN
from slackwater.sim.spark_batches import SparkBatches
from slackwater.spark.runtime.listener import listener_of
from slackwater.spark.runtime.progress import parse_ms
from slackwater.spark.worker.heartbeat_source import BELOW_MS

Floats = NDArray[np.float64]

LEAD_S = 12.0
"""The rows begin to arrive this long after the start, times the number of queries; longer if they are not ready."""
PATIENCE = 1.5
"""A run is given up after this multiple of its length."""
ATTEMPTS = 50
PHASES = ("latestOffset", "walCommit", "getBatch", "queryPlanning", "addBatch", "commitOffsets")
"""The phases of a micro-batch, in their order."""
_POLL_S = 0.5
_METRIC = "freshness"
_STARTING = ("Initializing StreamExecution", "Initializing sources")


@dataclass(frozen=True, slots=True)
class Windows:
    """What is computed: rows per window of this length, with this trigger interval (0: back to back)."""

    length_ms: int
    trigger_ms: int


@dataclass(frozen=True, slots=True, eq=False)
class FinishedRun:
    """The micro-batches of a finished query, one entry each. Times are milliseconds.

    - ``watermarks``: judged the rows of the batch.
    - ``chosen_at``: the arrival clock at which a promise's heartbeat was chosen; NaN if unknown.
    - ``decided_from``: the batch whose decision that heartbeat was; -1 if unknown.
    - ``heard``: when every listener had heard of the commit; NaN if unknown.
    - ``newest_window``: the highest window end published so far.

    ``windows`` are the published windows, of ``window_ms`` each: end, rows. ``phases`` is how long each phase of the
    batch took, by Spark's names. ``late`` is the promise's own count of late rows, None for plain Spark.
    """

    start_us: int
    window_ms: int
    batches: SparkBatches
    watermarks: Floats
    chosen_at: Floats
    decided_from: NDArray[np.int64]
    heard: Floats
    newest_window: Floats
    windows: tuple[Floats, NDArray[np.int64]]
    phases: dict[str, Floats]
    late: int | None = None

    @property
    def rows(self) -> int:
        """The rows that were read."""
        return int(self.batches.ends[-1])


class CommitTimes(StreamingQueryListener):
    """Notes when the listeners before it have dealt with each micro-batch."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._heard_ms: dict[tuple[str, int], float] = {}

    @classmethod
    def of(cls, spark: SparkSession) -> CommitTimes:
        """A listener that is called after the one that keeps the promises."""
        listener_of(spark)
        times = cls()
        spark.streams.addListener(times)
        return times

    def onQueryStarted(self, event: object) -> None:
        return

    def onQueryProgress(self, event: QueryProgressEvent) -> None:
        with self._lock:
            self._heard_ms[str(event.progress.id), event.progress.batchId] = time.time() * 1e3

    def onQueryTerminated(self, event: object) -> None:
        return

    def heard_ms(self, query_id: str, batch: int) -> float:
        """When the batch was reported; NaN if it is not known."""
        with self._lock:
            return self._heard_ms.get((query_id, batch), math.nan)


Query = tuple[Callable[[DataFrame], DataFrame], Windows]
"""How the events get their watermark, and what is computed from them."""


def promised(ratio: float) -> Callable[[DataFrame], DataFrame]:
    """The events under a promise."""
    name = f"freshness-{uuid.uuid4().hex[:8]}"
    return lambda events: sw.with_drop_ratio(events, "ts", ratio, arrival="arrived", name=name)


def constant(delay_ms: int) -> Callable[[DataFrame], DataFrame]:
    """The events under Spark's watermark with a constant delay."""
    return lambda events: events.withWatermark("ts", f"{delay_ms} milliseconds")


def run_together(
    spark: SparkSession,
    times: CommitTimes,
    stream: LiveStream,
    queries: list[Query],
    folder: Path,
    seconds: float,
) -> list[FinishedRun]:
    """Run the queries beside each other over the same stream, until all its rows are read."""
    lead_s = LEAD_S * len(queries)
    while True:
        start_us = int((time.time() + lead_s) * 1e3) * 1000
        running: list[StreamingQuery] = []
        try:
            for under, windows in queries:
                running.append(_started(under(stream.read(spark, start_us)), windows, folder))
            if time.time() * 1e6 >= start_us:
                lead_s *= 2
                continue
            _await_rows(running, stream.rows, PATIENCE * (lead_s + seconds))
            for query in running:
                query.stop()
            return [
                _finish(spark, query, start_us, windows, times)
                for query, (_, windows) in zip(running, queries, strict=True)
            ]
        finally:
            for query in running:
                query.stop()
                spark.catalog.dropTempView(query.name)


def _started(events: DataFrame, windows: Windows, folder: Path) -> StreamingQuery:
    """Start a query and return once its sources are open.

    Spark gives the Python process of a source ten seconds to start, which a busy machine may exceed; then try again.
    """
    for attempt in itertools.count(1):
        query = _start(events, windows, folder / uuid.uuid4().hex)
        try:
            while query.status["message"] in _STARTING:
                time.sleep(_POLL_S)
                _raise_failure(query)
            return query
        except StreamingQueryException as error:
            if attempt == ATTEMPTS or "failed to connect back" not in str(error):
                raise
    raise AssertionError("unreachable")


def _await_rows(running: list[StreamingQuery], rows: int, timeout_s: float) -> None:
    """Return once every query has read this many rows, or after the timeout."""
    deadline_s = time.monotonic() + timeout_s
    while time.monotonic() < deadline_s and not all(_rows_read(query) >= rows for query in running):
        time.sleep(_POLL_S)
        for query in running:
            _raise_failure(query)


def _raise_failure(query: StreamingQuery) -> None:
    if (error := query.exception()) is not None:
        raise error


def _start(events: DataFrame, windows: Windows, checkpoint: Path) -> StreamingQuery:
    counted = (
        events.groupBy(F.window("ts", f"{windows.length_ms} milliseconds"))
        .agg(F.count("*").alias("n"))
        .select(F.unix_millis("window.end").alias("end_ms"), "n")
        .observe(_METRIC, F.max("end_ms").alias("newest_ms"))
    )
    writer = (
        counted.writeStream.outputMode("append")
        .format("memory")
        .queryName(f"freshness_{uuid.uuid4().hex}")
        .option("checkpointLocation", str(checkpoint))
    )
    if windows.trigger_ms:
        writer = writer.trigger(processingTime=f"{windows.trigger_ms} milliseconds")
    return writer.start()


def _offsets(progress: Any, which: str) -> list[dict[str, Any]]:
    """The offsets of all sources at the start or end of a micro-batch; Spark writes ``null`` before the first."""
    return [json.loads(source[which] or "null") or {} for source in progress["sources"]]


def _end_row(progress: Any) -> int:
    """The number of rows of the stream that have been read up to the end of a micro-batch."""
    offsets = _offsets(progress, "endOffset")
    return max((int(offset["row"]) for offset in offsets if "row" in offset), default=0)


def _rows_read(query: StreamingQuery) -> int:
    progress = query.lastProgress
    return 0 if progress is None else _end_row(progress)


def _heartbeat_offset(progress: Any) -> dict[str, Any]:
    """The offset of the heartbeat stream at the start of a micro-batch; empty for plain Spark and the first batch."""
    return next((offset for offset in _offsets(progress, "startOffset") if "heartbeat" in offset), {})


def _finish(
    spark: SparkSession, query: StreamingQuery, start_us: int, windows: Windows, times: CommitTimes
) -> FinishedRun:
    """What a stopped query has done."""
    reports = sw.report(query).completeness if _is_promised(query) else []
    by_batch = {p["batchId"]: p for p in query.recentProgress if "addBatch" in p["durationMs"]}
    progress = [by_batch[batch] for batch in sorted(by_batch)]
    planned = np.array([parse_ms(p["timestamp"]) for p in progress])
    took = np.array([float(p["durationMs"]["triggerExecution"]) for p in progress])
    watermarks = np.array([parse_ms(p["eventTime"].get("watermark", "1970-01-01T00:00:00Z")) for p in progress])
    offsets = [_heartbeat_offset(p) for p in progress]
    newest = [(p["observedMetrics"].get(_METRIC) or {"newest_ms": None})["newest_ms"] for p in progress]
    newest_window = np.maximum.accumulate([UNKNOWN if end is None else float(end) for end in newest])
    published = spark.table(query.name).orderBy("end_ms").toPandas()
    # A micro-batch that the stop interrupted may have published, but it is not committed.
    published = published[published["end_ms"] <= newest_window[-1]]
    return FinishedRun(
        start_us,
        windows.length_ms,
        SparkBatches(np.array([_end_row(p) for p in progress], dtype=np.int64), planned, planned + took),
        np.where(watermarks > 0, watermarks + (BELOW_MS if reports else 0), UNKNOWN),
        np.array([math.nan if at.get("clock") is None else float(at["clock"]) for at in offsets]),
        np.array([at.get("batch", -1) for at in offsets], dtype=np.int64),
        np.array([times.heard_ms(str(query.id), p["batchId"]) for p in progress]),
        newest_window,
        (published["end_ms"].to_numpy(dtype=np.float64), published["n"].to_numpy(dtype=np.int64)),
        {name: np.array([float(p["durationMs"].get(name, 0)) for p in progress]) for name in PHASES},
        reports[0].ledger.late if reports else None,
    )


def _is_promised(query: StreamingQuery) -> bool:
    progress = query.lastProgress
    return progress is not None and any(key.startswith("slackwater:") for key in progress["observedMetrics"] or {})
