"""``--source``: files, the generator, a recorded stream, or Kafka topics. Spark is imported when rows are read."""

from __future__ import annotations

import time as clock
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from slackwater.errors import InvalidData, InvalidOption
from slackwater.files import data_files, format_of, is_remote
from slackwater.names import quoted
from slackwater.plan import Stream
from slackwater.spark.command.columns import parquet_dataset, spark_schema, stream_of_arrow, stream_of_text
from slackwater.spark.command.kafka_address import is_kafka
from slackwater.spark.command.kafka_source import KafkaSource
from slackwater.spark.command.replay_source import ReplaySource, csv_options

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_FILE_FORMATS = ("json", "parquet", "csv")
_UNBOUNDED_ROWS = 2**62
_DEFAULT_LENGTH_S = 60.0


@dataclass(frozen=True, slots=True)
class Source:
    """Where rows come from.

    ``kind`` is a file format or ``generator``; ``where`` is the folder or pattern of files, or the rows per second.
    """

    kind: str
    where: str
    schema: str | None

    @classmethod
    def parse(cls, text: str, schema: str | None, batches: int | None = None) -> Source | ReplaySource | KafkaSource:
        """A source from the text of ``--source``; ``batches`` are the micro-batches of a replay.

        >>> Source.parse("generator:1000", None).where
        '1000'
        """
        kind, _, where = text.partition(":")
        if is_kafka(text) and batches is None:
            return KafkaSource.parse("--source", text, schema)
        if kind not in (*_FILE_FORMATS, "generator", "replay", "kafka") or not where:
            raise InvalidOption(
                "unknown-source",
                f"unknown source `{text}`",
                "use json:FOLDER, parquet:FOLDER, csv:FOLDER, generator:RATE, replay:FILE or kafka://HOST:PORT/TOPIC",
            )
        if kind == "replay":
            return ReplaySource.parse(where, schema, batches)
        if batches is not None:
            raise InvalidOption("option-not-used", "--batches is for a replay", "leave it out")
        if kind in ("json", "csv") and schema is None:
            raise InvalidOption("no-schema", f"--source {text} needs a schema", "add --schema 'ts TIMESTAMP'")
        if kind == "generator" and not (where.isdigit() and int(where)):
            raise InvalidOption(
                "invalid-rate", f"--source {text}: {where} is not a positive whole number", "write generator:1000"
            )
        return cls(kind, where, None if schema is None else spark_schema(schema))

    @property
    def event_time(self) -> str | None:
        """The event-time column, if the source determines it."""
        return "ts" if self.kind == "generator" else None

    @property
    def recorded(self) -> bool:
        """Whether the stream is a recording: nothing is known after its last row."""
        return False

    @property
    def ends(self) -> bool:
        """Whether nothing comes after the last row: a folder may get more files."""
        return self.kind == "generator"

    @property
    def is_empty(self) -> bool:
        """Whether it is a folder on this machine without a file."""
        return self.kind != "generator" and not is_remote(self.where) and not data_files(self.where)

    def check(self) -> None:
        """Raise, before Spark starts, if the rows cannot be read."""
        if self.kind == "generator" or is_remote(self.where):
            return
        option, place = f"--source {self.kind}:{self.where}", Path(self.where.removeprefix("file://"))
        if place.is_file():
            raise InvalidData(
                "no-such-folder",
                f"{option}: {self.where} is a file, not a folder",
                f"name its folder, a pattern such as '{place.parent}/*', or replay:{self.where}",
            )
        files = data_files(self.where)
        other = next((file for file in files if format_of(file) not in (None, self.kind)), None)
        if other is not None:
            problem = f"{option}: {other.name} is a file of {format_of(other)}"
            raise InvalidData("other-format", problem, f"write --source {format_of(other)}:{self.where}")
        if not files and not place.is_dir():
            raise InvalidData(
                "no-such-folder", f"{option}: {self.where} is not a folder", "name the files' folder, or a pattern"
            )
        if self.schema is None:
            if not files:
                raise InvalidData(
                    "no-such-file", f"{option} has no files to take the columns from", "add --schema 'ts TIMESTAMP, …'"
                )
            parquet_dataset(self.where, "name a folder of Parquet files")

    def stream(self, name: str) -> Stream | None:
        """The stream under a name of the query, or None if only Spark can find out its columns."""
        if self.kind == "generator":
            return stream_of_text(name, "ts TIMESTAMP, arrived TIMESTAMP, sensor INT, value DOUBLE")
        if self.schema is not None:
            return stream_of_text(name, self.schema)
        return None if is_remote(self.where) else stream_of_arrow(name, parquet_dataset(self.where).schema, in_utc=True)

    def read(self, spark: SparkSession, limit_s: float | None) -> DataFrame:
        """The source as a streaming DataFrame. Without ``limit_s`` the generator ends after a minute."""
        if self.kind == "generator":
            from slackwater.spark.worker.generator_source import Readings, read_stream

            rate = int(self.where)
            rows = int(rate * _DEFAULT_LENGTH_S) if limit_s is None else _UNBOUNDED_ROWS
            return read_stream(spark, Readings(rate, rows, int(clock.time() * 1e6), "steady"))
        reader = spark.readStream.option("maxFilesPerTrigger", 1)
        if self.schema is None:
            return _in_utc(reader.schema(spark.read.parquet(self.where).schema).parquet(self.where))
        files = data_files(self.where)
        if self.kind == "csv" and files:
            reader = reader.options(**csv_options(files[0], self.schema))
        return reader.schema(self.schema).format(self.kind).load(self.where)


def _in_utc(frame: DataFrame) -> DataFrame:
    """The rows with timestamps without a time zone read as UTC, which is the session's time zone, as in a replay."""
    zoneless = [name for name, kind in frame.dtypes if kind == "timestamp_ntz"]
    return frame.withColumns({name: frame[quoted(name)].cast("timestamp") for name in zoneless}) if zoneless else frame
