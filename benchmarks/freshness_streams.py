"""The live streams of the freshness benchmark: generated readings, and recorded traces replayed in real time.

A stream can be started at any time and has the same rows every time, shifted by the time of its start.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

import numpy as np
from numpy.typing import NDArray
from pyspark.sql import DataFrame, SparkSession

from replay_source import load_us, replay
from slackwater.sim.recorded import read_recording
from slackwater.sim.trace import Trace
from slackwater.spark.worker.generator_source import Readings, read_stream


@dataclass(frozen=True, slots=True)
class Recorded:
    """A file of the folder of recorded traces, its two clocks, and how many times faster it is replayed."""

    event_time: str
    arrival: str
    speed: float


TRACES = {
    "ooo_umts": Recorded("event_ts", "arrival_ts", 2.0),
    "bike_trips": Recorded("event_ts", "arrival_ts", 4000.0),
    "nyc_flights": Recorded("dep_ts", "arr_ts", 8000.0),
    "pge_outages": Recorded("event_ts", "arrival_ts", 2000.0),
    "winlog_purplesharp_ad_25": Recorded("event_ts", "arrival_ts", 0.5),
}
"""Replayed this fast, waits of hours take seconds."""
DEFAULT_TRACES = ("ooo_umts", "bike_trips", "nyc_flights")


class LiveStream(Protocol):
    """A stream that can be repeated. Its columns are ``ts`` (event time), ``arrived``, and some more."""

    @property
    def name(self) -> str:
        """The name in tables."""

    @property
    def rows(self) -> int:
        """The number of rows."""

    def read(self, spark: SparkSession, start_us: int) -> DataFrame:
        """The stream from ``start_us`` on: each row becomes available at its arrival."""

    def trace(self, start_us: int) -> Trace:
        """The rows of ``read``, in arrival order."""


@dataclass(frozen=True, slots=True)
class Generated:
    """The readings of ``slackwater demo``."""

    readings: Readings

    @classmethod
    def of(cls, shape: str, rate_per_s: int, seconds: float, seed: int) -> Generated:
        """Readings of one shape, ``seconds`` long."""
        return cls(Readings(rate_per_s, int(rate_per_s * seconds), 0, shape, seed))

    @property
    def name(self) -> str:
        return f"{self.readings.shape} {self.readings.rate_per_s}/s"

    @property
    def rows(self) -> int:
        return self.readings.rows

    def read(self, spark: SparkSession, start_us: int) -> DataFrame:
        return read_stream(spark, replace(self.readings, start_us=start_us))

    def trace(self, start_us: int) -> Trace:
        table = replace(self.readings, start_us=start_us).table(0, self.rows)
        event_us, arrived_us = (table[column].cast("int64").to_numpy() for column in ("ts", "arrived"))
        return Trace(self.name, event_us / 1e3, arrived_us / 1e3)


@dataclass(frozen=True, slots=True)
class Replayed:
    """A stretch of a recorded trace. Arrivals and lateness are divided by the same factor."""

    name: str
    rows: int
    arrivals_s: Path
    lateness_s: Path

    @classmethod
    def of(cls, recorded: Trace, speed: float, seconds: float, folder: Path) -> Replayed:
        """The first ``seconds`` of the replay; its rows are written to ``folder``."""
        assert recorded.arrivals is not None
        arrivals_s = (recorded.arrivals - recorded.arrivals[0]) / 1e3 / speed
        rows = int(np.searchsorted(arrivals_s, seconds, "right"))
        lateness_s = (recorded.arrivals - recorded.values) / 1e3 / speed
        folder.mkdir(parents=True)
        paths = folder / "arrivals.npy", folder / "lateness.npy"
        for path, column in zip(paths, (arrivals_s, lateness_s), strict=True):
            np.save(path, column[:rows])
        return cls(recorded.name, rows, *paths)

    def read(self, spark: SparkSession, start_us: int) -> DataFrame:
        return replay(spark, self.arrivals_s, start_us, lateness_s=self.lateness_s)

    def trace(self, start_us: int) -> Trace:
        arrived_us: NDArray[np.int64] = load_us(str(self.arrivals_s), start_us)
        return Trace(self.name, (arrived_us - load_us(str(self.lateness_s))) / 1e3, arrived_us / 1e3)


def replayed(data: Path, names: list[str], seconds: float, folder: Path) -> list[Replayed]:
    """The named traces, as far as their files exist."""
    streams = []
    for name in names:
        recorded, path = TRACES[name], data / f"{name}.parquet"
        if path.exists():
            trace = read_recording(path, recorded.event_time, recorded.arrival).trace
            streams.append(Replayed.of(trace, recorded.speed, seconds, folder / name))
    return streams
