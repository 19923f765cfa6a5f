"""A recorded stream to try things on: generated readings with both clocks, some of them wrong."""

from __future__ import annotations

import datetime as dt
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from slackwater.errors import InvalidData
from slackwater.spark.worker.generator_source import Readings

START = dt.datetime(2026, 1, 5, 8, tzinfo=dt.UTC)
"""The arrival of the first row."""
_SLOWER = 5
"""Times the lateness of the generator: that of devices on a mobile network."""
_WRONG_TIMES = (dt.datetime(1970, 1, 1, 0, 1, tzinfo=dt.UTC), dt.datetime(2099, 1, 1, tzinfo=dt.UTC), None)


def recorded_readings(rows: int, rate_per_s: int, wrong_clocks: int, seed: int) -> pa.Table:
    """Readings whose lateness is steady, then drifts, then comes in bursts; 99% of the first come within five seconds.

    ``wrong_clocks`` rows, evenly spread, have an event time in 1970, in 2099 or none, in turn.
    """
    readings = Readings(rate_per_s, rows, round(START.timestamp() * 1e6), seed=seed)
    table = pa.Table.from_batches([readings.table(0, rows)])
    arrived = pc.cast(table.column("arrived"), pa.int64())
    stamps = pc.subtract(arrived, pa.array(_SLOWER * readings.lateness_us(0, rows)))
    times = pc.cast(stamps, table.schema.field("ts").type).to_pylist()
    for number in range(wrong_clocks):
        spread = (2 * number + 1) * rows // (2 * wrong_clocks) + number  # not all of one sensor
        times[min(spread, rows - 1)] = _WRONG_TIMES[number % len(_WRONG_TIMES)]
    return table.set_column(0, "ts", pa.array(times, table.schema.field("ts").type))


def write_recording(path: Path, table: pa.Table) -> None:
    """Write the rows to a new Parquet file."""
    if path.exists():
        raise InvalidData("file-exists", f"{path} is there already", "name a new file")
    try:
        pq.write_table(table, path)
    except OSError as error:
        raise InvalidData(
            "not-writable", f"cannot write {path} ({error.strerror or error})", "name a file in a folder that exists"
        ) from error
