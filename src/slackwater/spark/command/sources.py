"""``--source``: a folder of files, the generator, or a recorded table."""

from __future__ import annotations

import os
import time as clock
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession

from slackwater.errors import InvalidData, InvalidOption
from slackwater.language import Measure
from slackwater.plan import Catalog
from slackwater.spark.worker.generator_source import SCHEMA, Readings, read_stream

_FILE_FORMATS = ("json", "parquet", "csv")
_UNBOUNDED_ROWS = 2**62
_DEFAULT_LENGTH_S = 60.0


@dataclass(frozen=True, slots=True)
class Source:
    """Where rows come from.

    ``kind`` is a file format, ``generator`` or ``replay``; ``where`` is the folder, the rows per second, or the file.
    A replay is cut into ``batches`` micro-batches and runs as fast as they can be processed.
    """

    kind: str
    where: str
    schema: str | None
    batches: int = 20

    @classmethod
    def parse(cls, text: str, schema: str | None, batches: int = 20) -> Source:
        """A source from the text of ``--source``.

        >>> Source.parse("generator:1000", None).kind
        'generator'
        """
        kind, _, where = text.partition(":")
        if kind not in (*_FILE_FORMATS, "generator", "replay") or not where:
            raise InvalidOption(
                "unknown-source",
                f"unknown source `{text}`",
                "use json:FOLDER, parquet:FOLDER, csv:FOLDER, generator:RATE or replay:FILE",
            )
        if kind in ("json", "csv") and schema is None:
            raise InvalidOption("no-schema", f"--source {text} needs a schema", "add --schema 'ts TIMESTAMP'")
        if kind == "generator" and not (where.isdigit() and int(where)):
            raise InvalidOption(
                "invalid-rate", f"--source {text}: {where} is not a positive whole number", "write generator:1000"
            )
        if kind in _FILE_FORMATS and not Path(where).is_dir():
            raise InvalidData("no-such-folder", f"--source {text}: {where} is not a folder", "name the files' folder")
        if kind == "replay" and not Path(where).is_file():
            raise InvalidData("no-such-file", f"--source {text}: {where} is not a file", "name a Parquet file")
        return cls(kind, where, schema, batches)

    @property
    def event_time(self) -> str | None:
        """The event-time column, if the source determines it."""
        return "ts" if self.kind == "generator" else None

    @property
    def recorded(self) -> bool:
        """Whether the stream is a recording: nothing is known after its last row."""
        return self.kind == "replay"

    @property
    def ends(self) -> bool:
        """Whether nothing comes after the last row: a folder may get more files."""
        return self.kind in ("generator", "replay")

    def columns(self) -> dict[str, Measure | None] | None:
        """The columns and their measures, or None if only Spark can find them out."""
        try:
            if self.kind in ("parquet", "replay"):
                schema = ds.dataset(self.where, format="parquet", partitioning="hive").schema
                return {field.name: Measure.TIME if pa.types.is_timestamp(field.type) else None for field in schema}
            schema = SCHEMA if self.kind == "generator" else self.schema
            return dict(Catalog.from_sql(f"CREATE TABLE t ({schema})").streams["t"].columns)
        except (pa.ArrowInvalid, OSError, InvalidData):
            return None

    def read(self, spark: SparkSession, order: str | None, limit_s: float | None, scratch: Path) -> DataFrame:
        """The source as a streaming DataFrame.

        A replay is sorted by the column ``order`` and cut into files below ``scratch``. Without ``limit_s`` the
        generator ends after a minute.
        """
        if self.kind == "generator":
            rate = int(self.where)
            rows = int(rate * _DEFAULT_LENGTH_S) if limit_s is None else _UNBOUNDED_ROWS
            return read_stream(spark, Readings(rate, rows, int(clock.time() * 1e6), "steady"))
        if self.kind == "replay":
            return self._replay(spark, order, scratch / "replay")
        reader = spark.readStream.option("maxFilesPerTrigger", 1)
        if self.schema is None:
            return reader.schema(spark.read.parquet(self.where).schema).parquet(self.where)
        return reader.schema(self.schema).format(self.kind).load(self.where)

    def _replay(self, spark: SparkSession, order: str | None, folder: Path) -> DataFrame:
        """Sort the file by ``order``, if it has that column, and write one file per micro-batch to ``folder``."""
        try:
            table = pq.read_table(self.where)
        except (pa.ArrowInvalid, OSError) as error:
            raise InvalidData("not-parquet", f"{self.where} is not a Parquet file", "name a Parquet file") from error
        if order is not None and order in table.column_names:
            table = table.take(pc.sort_indices(table, sort_keys=[(order, "ascending")]))
        table = _times_in_utc(table)
        folder.mkdir(parents=True)
        size = max(1, -(-len(table) // self.batches))
        for number, start in enumerate(range(0, len(table), size)):
            path = folder / f"{number:05d}.parquet"
            pq.write_table(table.slice(start, size), path)
            os.utime(path, (number, number))  # Spark reads the oldest file first
        schema = spark.read.parquet(str(folder)).schema
        return spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).parquet(str(folder))


def _times_in_utc(table: pa.Table) -> pa.Table:
    """Timestamps in microseconds with a time zone: Spark reads others as TIMESTAMP_NTZ, or not at all."""
    for index, field in enumerate(table.schema):
        if pa.types.is_timestamp(field.type):
            column = table.column(index).cast(pa.timestamp("us", tz=field.type.tz), safe=False)
            if field.type.tz is None:
                column = pc.assume_timezone(column, "UTC")
            table = table.set_column(index, field.name, column)
    return table
