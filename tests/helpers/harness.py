"""Streams of JSON files, one file per micro-batch, and the queries that read them."""

from __future__ import annotations

import datetime as dt
import json
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from slackwater.spark.completeness.report import CompletenessReport
from slackwater.spark.report import report
from slackwater.spark.runtime.listener import wait_for_batch

ORIGIN_S = 1_700_000_000
SCHEMA = "id long, ts timestamp, arrived timestamp, sensor string, value double"


def timestamp(seconds: float) -> str:
    """The time ``seconds`` after the origin, in ISO form."""
    return exact_timestamp(round((ORIGIN_S + seconds) * 1e6))


def exact_timestamp(us: int) -> str:
    """The time ``us`` microseconds after 1970, in ISO form."""
    return (dt.datetime(1970, 1, 1, tzinfo=dt.UTC) + dt.timedelta(microseconds=us)).isoformat()


def rows(
    arrivals_s: Sequence[float] | np.ndarray[Any, Any],
    lateness_s: Sequence[float] | np.ndarray[Any, Any],
    first_id: int = 0,
) -> list[dict[str, Any]]:
    """Rows of four sensors from arrival and lateness, in arrival order."""
    return [
        {
            "id": first_id + i,
            "ts": timestamp(arrival - late),
            "arrived": timestamp(arrival),
            "sensor": f"s{(first_id + i) % 4}",
            "value": float((first_id + i) % 97),
        }
        for i, (arrival, late) in enumerate(zip(arrivals_s, lateness_s, strict=True))
    ]


def batches(seed: int, count: int = 4, each: int = 60) -> list[list[dict[str, Any]]]:
    """``count`` micro-batches of ten seconds and ``each`` rows, which are 2.5 seconds late on average."""
    rng = np.random.default_rng(seed)
    arrivals = np.sort(rng.uniform(0, 10 * count, count * each))
    made = rows(arrivals, rng.exponential(2.5, count * each))
    return [made[i * each : (i + 1) * each] for i in range(count)]


@dataclass
class FileStream:
    """A folder of JSON lines; Spark reads one file per micro-batch, in the order in which they were put."""

    spark: SparkSession
    folder: Path
    schema: str = SCHEMA
    files: int = 0

    def put(self, batch: list[dict[str, Any]]) -> None:
        """Add one micro-batch."""
        self.folder.mkdir(parents=True, exist_ok=True)
        hidden, visible = self.folder / f".{self.files}", self.folder / f"{self.files:05d}.json"
        hidden.write_text("".join(json.dumps(row) + "\n" for row in batch))
        os.utime(hidden, (ORIGIN_S + self.files, ORIGIN_S + self.files))  # Spark reads the oldest file first
        hidden.rename(visible)
        self.files += 1

    def read_stream(self) -> DataFrame:
        self.folder.mkdir(parents=True, exist_ok=True)
        return self.spark.readStream.schema(self.schema).option("maxFilesPerTrigger", 1).json(str(self.folder))

    def read_batch(self) -> DataFrame:
        """The same rows as a batch."""
        return self.spark.read.schema(self.schema).json(str(self.folder))


def settle(query: StreamingQuery) -> None:
    """Wait until all rows are committed and all heartbeats that follow from them are in force."""
    while True:
        query.processAllAvailable()
        batch = _last_committed(query)
        wait_for_batch(str(query.id), batch, timeout_s=60)
        query.processAllAvailable()
        if _last_committed(query) == batch:
            return


def _last_committed(query: StreamingQuery) -> int:
    """The last micro-batch that this run has committed; -1 before the first.

    A query that finds nothing shows progress too, under the number of a micro-batch that it has not run.
    """
    last = query.lastProgress
    progress = [] if last is None else [last] if "addBatch" in last["durationMs"] else query.recentProgress
    return max((int(p["batchId"]) for p in progress if "addBatch" in p["durationMs"]), default=-1)


def promise_of(query: StreamingQuery) -> CompletenessReport:
    """The only promise of a query."""
    (promise,) = report(query).completeness
    return promise


def watermark_ms(progress: Any) -> float:
    """The watermark of a micro-batch, as Spark reports it."""
    return float(pd.Timestamp(progress["eventTime"].get("watermark", 0)).timestamp() * 1000)


def heartbeat_read_ms(progress: Any) -> int:
    """The heartbeat that a micro-batch read from its source; it becomes the watermark in the next one."""
    offsets = [json.loads(source["endOffset"]) for source in progress["sources"] if "epoch" in source["endOffset"]]
    (offset,) = offsets
    return int(offset["heartbeat"])


def start(result: DataFrame, folder: Path, mode: str = "append", name: str | None = None) -> StreamingQuery:
    """Run a query into Parquet files (append) or into memory under ``name``."""
    writer = result.writeStream.outputMode(mode).option("checkpointLocation", str(folder / "checkpoint"))
    if name is not None:
        return writer.format("memory").queryName(name).start()
    return writer.format("parquet").option("path", str(folder / "out")).start()


def start_idle(result: DataFrame, folder: Path) -> StreamingQuery:
    """Start a query whose stream has no rows yet, and wait until it is ready for the first.

    Spark gives the Python process of a source ten seconds to start. Queries that run side by side must not start
    those processes at the same time.
    """
    query = start(result, folder)
    query.processAllAvailable()
    return query


def collected(spark: SparkSession, folder: Path) -> DataFrame:
    """The Parquet rows that the query has written so far."""
    return spark.read.parquet(str(folder / "out"))


def same_rows(left: DataFrame, right: DataFrame) -> None:
    """Assert that both have the same rows, each the same number of times."""
    assert left.columns == right.columns
    got, expected = sorted(map(tuple, left.collect()), key=repr), sorted(map(tuple, right.collect()), key=repr)
    assert got == expected, f"only left: {set(got) - set(expected)}, only right: {set(expected) - set(got)}"


def values(frame: DataFrame) -> list[tuple[Any, ...]]:
    """All rows, sorted, with doubles rounded to nine digits, because a sum of doubles depends on its order."""
    return sorted((tuple(round(v, 9) if isinstance(v, float) else v for v in row) for row in frame.collect()), key=repr)
