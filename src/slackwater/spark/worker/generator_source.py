"""A source of sensor readings that arrive out of order, for demonstrations and benchmarks.

Row *i* arrives at ``start + i / rate``; its event time is a random lateness earlier. The options determine every row,
so a stream can be repeated exactly, as a stream or as a batch.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator
from dataclasses import dataclass, fields

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    InputPartition,
)

from slackwater.errors import InvalidOption
from slackwater.spark.worker.data_sources import register_source

FORMAT = "slackwater_generator"
SCHEMA = "ts timestamp, arrived timestamp, sensor int, value double"
SENSORS = 20
SHAPES = ("steady", "drifting", "bursty", "tour")
_TOUR = ("steady", "drift", "bursts")
_DRIFT = 10.0
_BURST = 5.0
_BLOCK = 4096
_SPLIT = 25_000


@dataclass(frozen=True, slots=True)
class Phase:
    """A part of the course of lateness: the rows ``[first, last)``."""

    name: str
    first: int
    last: int


@dataclass(frozen=True)
class Readings:
    """``rows`` readings at ``rate_per_s``, from ``start_us`` on. ``shape`` is the course of their lateness.

    - ``steady``: lognormal, median 150 ms, 99% within a second
    - ``drifting``: the median rises tenfold over the run
    - ``bursty``: each sixth of the run starts with a burst of five times the lateness
    - ``tour``: a third of the run is steady; in the next, the median rises tenfold and stays there; the last is steady
      again, with three bursts

    The last ``tail_rows`` come after the course and are steady: windows close only while newer rows come.
    """

    rate_per_s: int
    rows: int
    start_us: int
    shape: str = "tour"
    seed: int = 0
    tail_rows: int = 0

    def phases(self) -> list[Phase]:
        """The phases of the course, without the tail."""
        names = _TOUR if self.shape == "tour" else (self.shape,)
        course = self.rows - self.tail_rows
        cuts = [course * cut // len(names) for cut in range(len(names) + 1)]
        return [Phase(name, *edges) for name, edges in zip(names, itertools.pairwise(cuts), strict=True)]

    def lateness_us(self, first: int, last: int) -> NDArray[np.int64]:
        """Lateness of the rows ``[first, last)``. A row has the same lateness in every range that contains it."""
        blocks = range(first // _BLOCK, -(-last // _BLOCK))
        normal = np.concatenate([self._noise(block) for block in blocks]) if len(blocks) else np.empty(0)
        noise = normal[first - blocks.start * _BLOCK :][: last - first]
        progress = np.arange(first, last) / max(self.rows - self.tail_rows, 1)
        scale = np.where(progress < 1, self._scale(progress), 1.0)
        return np.asarray(150_000.0 * scale * np.exp(0.8 * noise), dtype=np.int64)

    def _noise(self, block: int) -> NDArray[np.float64]:
        return np.random.Generator(np.random.Philox(key=self.seed, counter=block << 64)).standard_normal(_BLOCK)

    def _scale(self, progress: NDArray[np.float64]) -> NDArray[np.float64]:
        if self.shape == "steady":
            return np.ones_like(progress)
        if self.shape == "drifting":
            return np.asarray(_DRIFT**progress)
        if self.shape == "bursty":
            return np.where(progress * 6 % 1 < 0.15, _BURST, 1.0)
        third = np.minimum((progress * 3).astype(int), 2)
        within = progress * 3 - third
        # Each burst comes after a calm while: the phase begins where the drift has just ended.
        burst = (within * 3 % 1 >= 0.5) & (within * 3 % 1 < 0.8)
        drift = _DRIFT ** np.minimum(within / 0.6, 1.0)
        return np.select([third == 0, third == 1], [np.ones_like(within), drift], np.where(burst, _BURST, 1.0))

    def table(self, first: int, last: int) -> pa.RecordBatch:
        """The rows ``[first, last)`` in arrival order."""
        index = np.arange(first, last, dtype=np.int64)
        arrived = self.start_us + index * 1_000_000 // self.rate_per_s
        micros = pa.timestamp("us", tz="UTC")
        return pa.record_batch(
            [
                pa.array(arrived - self.lateness_us(first, last), pa.int64()).cast(micros),
                pa.array(arrived, pa.int64()).cast(micros),
                pa.array((index * 7919 % SENSORS).astype(np.int32)),
                pa.array(20.0 + 5.0 * np.sin(index / 1e5)),
            ],
            names=["ts", "arrived", "sensor", "value"],
        )

    def arrived_by(self, now_us: int) -> int:
        """The number of rows that have arrived at ``now_us``."""
        return min(self.rows, max(0, (now_us - self.start_us) * self.rate_per_s // 1_000_000))


@dataclass
class _Range(InputPartition):
    first: int
    last: int


class _Rows:
    def __init__(self, readings: Readings) -> None:
        self._readings = readings

    def split(self, first: int, last: int) -> list[_Range]:
        cuts = [*range(first, last, max(_SPLIT, -(-(last - first) // 8))), last]
        return [_Range(a, b) for a, b in itertools.pairwise(cuts)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, _Range)
        for first in range(partition.first, partition.last, _SPLIT):
            yield self._readings.table(first, min(first + _SPLIT, partition.last))


class _BatchReader(_Rows, DataSourceReader):
    def partitions(self) -> list[_Range]:
        return self.split(0, self._readings.rows)


class _StreamReader(_Rows, DataSourceStreamReader):
    def initialOffset(self) -> dict[str, int]:
        return {"row": 0}

    def latestOffset(self, *_: object) -> dict[str, int]:
        return {"row": self._readings.arrived_by(time.time_ns() // 1000)}

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> list[_Range]:
        return self.split(start["row"], end["row"])


class GeneratorSource(DataSource):
    """``format("slackwater_generator")``; its options are the fields of ``Readings``."""

    @classmethod
    def name(cls) -> str:
        return FORMAT

    def schema(self) -> str:
        return SCHEMA

    def reader(self, schema: object) -> _BatchReader:
        return _BatchReader(self._readings())

    def streamReader(self, schema: object) -> _StreamReader:
        return _StreamReader(self._readings())

    def _readings(self) -> Readings:
        get = self.options.get
        return Readings(
            int(get("rate_per_s", "50000")),
            int(get("rows", str(2**62))),
            int(get("start_us", "0")),
            get("shape", "tour"),
            int(get("seed", "0")),
            int(get("tail_rows", "0")),
        )


def read_stream(spark: SparkSession, readings: Readings) -> DataFrame:
    """The readings as a stream: each row becomes available at its arrival time."""
    return _load(spark, readings, streaming=True)


def read_batch(spark: SparkSession, readings: Readings) -> DataFrame:
    """The same readings as a batch."""
    return _load(spark, readings, streaming=False)


def _load(spark: SparkSession, readings: Readings, streaming: bool) -> DataFrame:
    if readings.shape not in SHAPES:
        raise InvalidOption("unknown-shape", f"unknown shape {readings.shape!r}", f"use one of: {', '.join(SHAPES)}")
    name = register_source(spark, GeneratorSource)
    options = {field.name: str(getattr(readings, field.name)) for field in fields(readings)}
    return (spark.readStream if streaming else spark.read).format(name).options(**options).load()
