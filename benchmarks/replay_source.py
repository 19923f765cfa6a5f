"""A streaming source that replays recorded arrivals, for benchmarks.

Row *i* becomes available at ``start + arrivals[i]``. Its columns are ``id``, ``arrived`` and ``value``; ``value`` is
computed from ``id``, so a run can be repeated exactly. With lateness there is an event time too: ``ts`` is
``arrived − lateness[i]``. Arrivals (sorted) and lateness are NumPy arrays of seconds, in files that driver and
executors can read.
"""

from __future__ import annotations

import itertools
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyspark import cloudpickle
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, ReadMaxRows

FORMAT = "slackwater_replay"
SCHEMA = "id bigint, arrived timestamp, value double"


def load_us(path: str, start_us: int = 0) -> NDArray[np.int64]:
    """A file of seconds, as microseconds after ``start_us``."""
    return np.asarray(start_us + np.rint(np.load(path) * 1e6), dtype=np.int64)


@dataclass
class _Rows(InputPartition):
    first: int
    last: int


class _ReplayReader(DataSourceStreamReader):
    def __init__(
        self,
        path: str,
        lateness_path: str | None,
        start_us: int,
        partitions: int,
        rows_per_batch: int | None,
        report_latest: bool,
    ) -> None:
        self._path = path
        self._lateness_path = lateness_path
        self._start_us = start_us
        self._partitions = partitions
        self._rows_per_batch = rows_per_batch
        self._report_latest = report_latest
        self._loaded_us: NDArray[np.int64] | None = None

    def _arrivals_us(self) -> NDArray[np.int64]:
        if self._loaded_us is None:  # not a cached_property: its lock cannot be pickled on Python 3.11
            self._loaded_us = load_us(self._path, self._start_us)
        return self._loaded_us

    def initialOffset(self) -> dict[str, int]:
        return {"row": 0}

    def getDefaultReadLimit(self) -> ReadLimit:
        return ReadAllAvailable() if self._rows_per_batch is None else ReadMaxRows(self._rows_per_batch)

    def _due(self) -> int:
        return int(np.searchsorted(self._arrivals_us(), time.time_ns() // 1000, side="right"))

    def reportLatestOffset(self) -> dict[str, int] | None:
        return {"row": self._due()} if self._report_latest else None

    def latestOffset(self, start: dict[str, int], limit: ReadLimit) -> dict[str, int]:
        due = self._due()
        return {"row": min(due, start["row"] + limit.max_rows) if isinstance(limit, ReadMaxRows) else due}

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> list[_Rows]:
        cuts = np.linspace(start["row"], end["row"], self._partitions + 1).astype(int).tolist()
        return [_Rows(first, last) for first, last in itertools.pairwise(cuts) if last > first]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, _Rows)
        ids = np.arange(partition.first, partition.last, dtype=np.int64)
        arrived = self._arrivals_us()[partition.first : partition.last]
        micros = pa.timestamp("us", tz="UTC")
        columns = {
            "id": pa.array(ids),
            "arrived": pa.array(arrived).cast(micros),
            "value": pa.array((ids * 7919 % 1000).astype(np.float64)),
        }
        if self._lateness_path is not None:
            lateness = load_us(self._lateness_path)[partition.first : partition.last]
            columns["ts"] = pa.array(arrived - lateness).cast(micros)
        yield pa.record_batch(list(columns.values()), names=list(columns))


class ReplaySource(DataSource):
    """``format("slackwater_replay")``; its options are ``replay``'s, with the file of arrivals as ``path``."""

    @classmethod
    def name(cls) -> str:
        return FORMAT

    def schema(self) -> str:
        return SCHEMA + (", ts timestamp" if "lateness_path" in self.options else "")

    def streamReader(self, schema: object) -> _ReplayReader:
        rows_per_batch = self.options.get("rows_per_batch")
        return _ReplayReader(
            self.options["path"],
            self.options.get("lateness_path"),
            int(self.options["start_us"]),
            int(self.options.get("partitions", "2")),
            None if rows_per_batch is None else int(rows_per_batch),
            "report_latest" in self.options,
        )


def replay(
    spark: SparkSession,
    arrivals_s: Path,
    start_us: int,
    partitions: int = 2,
    rows_per_batch: int | None = None,
    lateness_s: Path | None = None,
    report_latest: bool = False,
) -> DataFrame:
    """The rows of an arrivals file (``.npy``, sorted seconds) as a stream that begins at ``start_us``.

    A micro-batch reads all available rows, or at most ``rows_per_batch`` of them. With a file of lateness the rows have
    the column ``ts``. With ``report_latest`` the source reports its latest offset in Spark's progress, as Kafka does.
    """
    # Python workers cannot import this folder's modules, so the class travels with the query.
    cloudpickle.register_pickle_by_value(sys.modules[__name__])  # type: ignore[no-untyped-call]
    spark.dataSource.register(ReplaySource)
    options = {"path": str(arrivals_s), "start_us": str(start_us), "partitions": str(partitions)}
    if lateness_s is not None:
        options["lateness_path"] = str(lateness_s)
    if rows_per_batch is not None:
        options["rows_per_batch"] = str(rows_per_batch)
    if report_latest:
        options["report_latest"] = "true"
    return spark.readStream.format(FORMAT).options(**options).load()
