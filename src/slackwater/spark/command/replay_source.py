"""``--source replay:…``: a recorded stream, cut into micro-batches and released as fast as asked for."""

from __future__ import annotations

import json
import os
import threading
import time as clock
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from slackwater.errors import InvalidData, InvalidOption, PromiseConflict
from slackwater.files import common_format, data_files
from slackwater.names import find_name
from slackwater.plan import Stream
from slackwater.spark.command.columns import parquet_dataset, spark_schema, stream_of_arrow, stream_of_text
from slackwater.spark.command.replay_cuts import DEFAULT_BATCHES, Cuts, cut_rows, cut_times
from slackwater.units import SECOND_MS, duration_ms

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_OPTIONS = ("every", "speed")


@dataclass(frozen=True, slots=True)
class ReplaySource:
    """A recorded stream in files of one format, replayed in the order of arrival.

    It is cut into ``batches`` parts, or into parts of ``every_ms`` of arrival time. At ``speed`` 60 an hour takes a
    minute; without it every part is there at once. ``files`` are read into memory.
    """

    where: str
    files: tuple[Path, ...]
    format: str
    schema: str | None = None
    batches: int | None = None
    every_ms: float | None = None
    speed: float | None = None

    @classmethod
    def parse(cls, where: str, schema: str | None, batches: int | None = None) -> ReplaySource:
        """A replay from the text after ``replay:``, such as ``FILE?every=10s&speed=60x``."""
        option = "--source replay:"
        path, _, query = where.partition("?")
        if query and data_files(where):
            path, query = where, ""  # a pattern with a question mark
        options = dict(parse_qsl(query, keep_blank_values=True))
        unknown = [name for name in options if name not in _OPTIONS]
        if unknown:
            problem = f"{option}{where}: unknown option {unknown[0]!r}"
            raise InvalidOption("unknown-option", problem, "use every=10s and speed=60x")
        format_ = common_format(path, option)
        if format_ != "parquet" and schema is None:
            problem = f"{option}{path}: {format_.upper()} files have no types"
            raise InvalidOption("no-schema", problem, "add --schema 'ts TIMESTAMP, …'")
        if format_ == "parquet" and schema is not None:
            problem = f"{option}{path}: Parquet files name their columns, --schema has no effect"
            raise InvalidOption("option-not-used", problem, "leave out --schema")
        columns = None if schema is None else spark_schema(schema)
        if "every" in options and batches is not None:
            raise InvalidOption("two-batch-sizes", "--batches contradicts every=", "give one of them")
        every_ms = None if "every" not in options else duration_ms(options["every"], option=f"{option}…?every")
        if every_ms is not None and every_ms <= 0:
            raise InvalidOption("invalid-duration", f"every={options['every']} is not positive", "write every=10s")
        speed = None if "speed" not in options else _speed(options["speed"])
        return cls(path, tuple(data_files(path)), format_, columns, batches, every_ms, speed)

    @property
    def event_time(self) -> str | None:
        """No column is known to be the event time."""
        return None

    @property
    def recorded(self) -> bool:
        """Nothing is known after the last row of a recording."""
        return True

    @property
    def ends(self) -> bool:
        """Nothing comes after the last row."""
        return True

    def check(self) -> None:
        """Raise, before Spark starts, if the files cannot be read."""
        if self.format == "parquet":
            parquet_dataset(self.where)

    def stream(self, name: str) -> Stream:
        """The stream under a name of the query."""
        if self.schema is not None:
            return stream_of_text(name, self.schema)
        return stream_of_arrow(name, parquet_dataset(self.where).schema, in_utc=True)

    def replay(self, spark: SparkSession, order: str | None, folder: Path) -> Replay:
        """The replay in the order of the column ``order``, by way of files in ``folder``.

        If the folder holds a part of the same replay, it goes on from there; that of another one is refused.
        """
        table = _times_in_utc(self._table(spark))
        order = None if order is None else find_name(order, table.column_names)
        table = _in_order(table, order)
        cuts = self._cuts(table, order)
        identity = {
            "files": [[str(file.resolve()), file.stat().st_size, file.stat().st_mtime_ns] for file in self.files],
            "order": order,
            "ends": list(cuts.ends),
        }
        _claim(folder, identity, self.where)
        return Replay(table, cuts, folder / "rows", self.speed)

    def _cuts(self, table: pa.Table, order: str | None) -> Cuts:
        by_time = self.every_ms is not None or self.speed is not None
        if order is None:
            if by_time:
                raise InvalidOption(
                    "no-arrival",
                    "every= and speed= need the time at which each row arrived",
                    "name its column in the window: ARRIVAL column",
                )
            return Cuts(cut_rows(len(table), None, self.batches or DEFAULT_BATCHES), None)
        column = table[order].combine_chunks()
        if not pa.types.is_timestamp(column.type):
            if by_time:
                problem = f"every= and speed= need times, and {order} is a {column.type}"
                raise InvalidOption("no-arrival", problem, "name a timestamp column: ARRIVAL column")
            ranks = column.dictionary_encode().indices.fill_null(-1) if len(column) else pa.array([], pa.int32())
            return Cuts(cut_rows(len(table), _steps(ranks), self.batches or DEFAULT_BATCHES), None)
        times_us = column.cast(pa.int64())
        times_us = times_us.fill_null(pc.max(times_us)).to_numpy(zero_copy_only=False)
        every_ms = self.every_ms
        if every_ms is None and self.speed is not None and self.batches is None:
            every_ms = SECOND_MS * self.speed  # a micro-batch per second of the replay
        if every_ms is None:
            ends = cut_rows(len(table), times_us, self.batches or DEFAULT_BATCHES)
        else:
            ends = cut_times(times_us / 1e3, every_ms)
        return Cuts(ends, tuple(((times_us[np.array(ends, dtype=int) - 1] - times_us[:1]) / 1e3).tolist()))

    def _table(self, spark: SparkSession) -> pa.Table:
        if self.format == "parquet":
            try:
                return parquet_dataset(self.where).to_table()
            except (pa.ArrowInvalid, OSError) as error:
                problem = f"{self.where} cannot be read ({str(error).splitlines()[0]})"
                raise InvalidData("unreadable-file", problem, "check the files") from error
        assert self.schema is not None
        reader = spark.read.schema(self.schema).format(self.format)
        if self.format == "csv":
            reader = reader.options(**csv_options(self.files[0], self.schema))
        return reader.load([str(file) for file in self.files]).toArrow()


def csv_options(file: Path, schema: str) -> dict[str, str]:
    """How Spark reads a CSV file: with a header if its first line has the names of the columns, in their order."""
    columns = stream_of_text("", schema).columns
    with pa.input_stream(str(file), compression="detect") as stream:
        first = stream.read(64_000).decode("utf-8-sig", "replace")
    names = [name.strip().strip('"').lower() for name in first.partition("\n")[0].split(",")]
    wanted = [name.lower() for name in columns]
    if names != wanted and sorted(names) == sorted(wanted):
        problem = f"{file}: the header has the columns in another order than --schema ({', '.join(names)})"
        raise InvalidData("other-columns", problem, "write --schema in the order of the header")
    return {"header": "true"} if names == wanted else {}


class Replay:
    """The rows of a replay on their way into the folder that Spark reads, one file per micro-batch.

    Without a speed all files are there after ``start``; with one, a thread releases each when its last row is due.
    """

    def __init__(self, table: pa.Table, cuts: Cuts, folder: Path, speed: float | None) -> None:
        self._table = table
        self._cuts = cuts
        self._folder = folder
        self._speed = speed
        self._released = threading.Event()
        self._stopped = threading.Event()
        self._failure: OSError | None = None
        self._thread = threading.Thread(target=self._run, name="slackwater-replay", daemon=True)

    def stream(self, spark: SparkSession) -> DataFrame:
        """The rows as a stream."""
        self._folder.mkdir(parents=True, exist_ok=True)
        kind = self._folder.parent / "schema.parquet"
        pq.write_table(self._table.slice(0, 0), kind)
        schema = spark.read.parquet(str(kind)).schema
        return spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).parquet(str(self._folder))

    def start(self) -> None:
        """Begin to release the micro-batches."""
        self._thread.start()
        if self._speed is None:
            self._thread.join()

    def wait(self, timeout_s: float) -> bool:
        """Whether every micro-batch was released, now or within the timeout; raises if one could not be written."""
        released = self._released.wait(timeout_s)
        if self._failure is not None:
            raise self._failure
        return released

    def stop(self) -> None:
        """Release nothing more."""
        self._stopped.set()
        if self._thread.is_alive():
            self._thread.join()

    def _run(self) -> None:
        started_s, first_ms = clock.monotonic(), None
        try:
            for number, end in enumerate(self._cuts.ends):
                file = self._folder / f"{number:05d}.parquet"
                if file.exists():
                    continue
                if self._speed is not None and self._cuts.arrived_ms is not None:
                    # A replay that goes on releases its next micro-batch at once.
                    due_ms = self._cuts.arrived_ms[number]
                    first_ms = (due_ms if number else 0.0) if first_ms is None else first_ms
                    passed_s = clock.monotonic() - started_s
                    if self._stopped.wait(max(0.0, (due_ms - first_ms) / SECOND_MS / self._speed - passed_s)):
                        return
                self._write(file, self._cuts.ends[number - 1] if number else 0, end, number)
                if self._stopped.is_set():
                    return
        except OSError as error:
            self._failure = error
        finally:
            if not self._stopped.is_set():
                self._released.set()

    def _write(self, file: Path, start: int, end: int, number: int) -> None:
        unfinished = file.with_name(f".{file.name}")  # Spark ignores names that begin with a dot
        pq.write_table(self._table.slice(start, end - start), unfinished)
        os.utime(unfinished, (number, number))  # Spark reads the oldest file first
        unfinished.rename(file)


def _claim(folder: Path, identity: dict[str, Any], where: str) -> None:
    """Note which replay the folder belongs to; refuses that of another one."""
    note = folder / "replay.json"
    if note.exists():
        before = json.loads(note.read_text())
        if before != identity:
            same_files = before["files"] == identity["files"]
            what = "cut otherwise" if same_files else f"of {', '.join(Path(f[0]).name for f in before['files'][:3])}"
            raise PromiseConflict(
                "other-replay",
                f"the checkpoint is that of a replay {what}, and this one is of {where}",
                "give the same --source and --batches, or a checkpoint of its own",
            )
        return
    folder.mkdir(parents=True, exist_ok=True)
    note.write_text(json.dumps(identity))


def _speed(text: str) -> float:
    """
    >>> _speed("60x"), _speed("0.5")
    (60.0, 0.5)
    """
    try:
        speed = float(text.removesuffix("x"))
    except ValueError:
        speed = 0.0
    if not 0.0 < speed < float("inf"):
        raise InvalidOption("invalid-speed", f"speed={text} is not a positive number", "write speed=60x")
    return speed


def _steps(ranks: pa.Array) -> np.ndarray[Any, np.dtype[np.int64]]:
    """How often the value has changed up to each row: equal for neighbours with the same value."""
    values = ranks.to_numpy(zero_copy_only=False)
    return np.cumsum(np.diff(values, prepend=values[:1]) != 0).astype(np.int64)


def _in_order(table: pa.Table, order: str | None) -> pa.Table:
    if order is None:
        return table
    return table.take(pc.sort_indices(table, sort_keys=[(order, "ascending")]))


def _times_in_utc(table: pa.Table) -> pa.Table:
    """Timestamps in microseconds with a time zone: Spark reads others as TIMESTAMP_NTZ, or not at all."""
    for index, field in enumerate(table.schema):
        if pa.types.is_timestamp(field.type):
            column = table.column(index).cast(pa.timestamp("us", tz=field.type.tz), safe=False)
            if field.type.tz is None:
                column = pc.assume_timezone(column, "UTC")
            table = table.set_column(index, field.name, column)
    return table
