"""``--sink`` and ``--late-sink``: the console, files or a Kafka topic."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from slackwater.errors import InvalidOption
from slackwater.files import is_remote, is_unused, require_output_folder
from slackwater.names import quoted
from slackwater.spark.command.kafka_address import is_kafka
from slackwater.spark.command.kafka_sink import KafkaSink
from slackwater.spark.command.result_rows import Emit, Show, result_rows

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.readwriter import DataStreamWriter

_FORMATS = ("parquet", "json")


class Sink(Protocol):
    """Where results go."""

    @property
    def folder(self) -> Path | None:
        """The folder on this machine that a run writes to, if any."""

    def check(self, checkpoint: Path | None, option: str) -> None:
        """Raise, before Spark starts, if the sink cannot take the results of this run."""

    def stream_writer(self, result: DataFrame) -> DataStreamWriter | None:
        """Spark's own sink for a streaming DataFrame; None if results are written one micro-batch at a time."""

    def write(self, frame: DataFrame, batch: int, emit: Emit, as_json: bool, show: Show) -> None:
        """Write the rows of one micro-batch. Rows on the console also go to ``show``, for the live page."""


def parse_sink(text: str, option: str = "--sink") -> Sink:
    """A sink from the text of ``option``.

    >>> parse_sink("parquet:out")
    FileSink(kind='parquet', where='out')
    """
    if is_kafka(text):
        return KafkaSink.parse(option, text)
    kind, _, where = text.partition(":")
    if kind == "console" and not where:
        return ConsoleSink()
    if kind not in _FORMATS or not where:
        raise InvalidOption(
            "unknown-sink",
            f"{option}: unknown sink `{text}`",
            "use console, parquet:FOLDER, json:FOLDER or kafka://HOST:PORT/TOPIC",
        )
    return FileSink(kind, where)


@dataclass(frozen=True, slots=True)
class FileSink:
    """A folder of Parquet or JSON files. A micro-batch that is repeated after a crash overwrites its first attempt."""

    kind: str
    where: str

    @property
    def folder(self) -> Path | None:
        """The folder, unless it is on another machine."""
        return None if is_remote(self.where) else Path(self.where.removeprefix("file://"))

    def check(self, checkpoint: Path | None, option: str) -> None:
        """Raise, before Spark starts, if the folder cannot be written or holds another run's results.

        Spark's file sink would take the first batches of the new query for batches that it has already written, and
        skip them.
        """
        require_output_folder(self.where, f"{option} {self.kind}:")
        if checkpoint is not None and checkpoint.exists():
            return
        if self.folder is not None and self.folder.is_dir() and not is_unused(self.folder):
            raise InvalidOption(
                "sink-in-use",
                f"{self.where} is not empty",
                "name another folder, or give the --checkpoint of the run that wrote it",
            )

    def stream_writer(self, result: DataFrame) -> DataStreamWriter:
        """Spark's own file sink."""
        return result.writeStream.format(self.kind).option("path", self.where)

    def write(self, frame: DataFrame, batch: int, emit: Emit, as_json: bool, show: Show) -> None:
        """Write the rows of one micro-batch to a folder of its own."""
        frame.write.mode("overwrite").format(self.kind).save(f"{self.where}/batch={batch}")


@dataclass(frozen=True, slots=True)
class ConsoleSink:
    """Standard output, as a table or as JSON lines."""

    @property
    def folder(self) -> None:
        """There is none."""

    def check(self, checkpoint: Path | None, option: str) -> None:
        """The console takes everything."""

    def stream_writer(self, result: DataFrame) -> None:
        """Nothing: Spark's console sink prints what people do not need."""

    def write(self, frame: DataFrame, batch: int, emit: Emit, as_json: bool, show: Show) -> None:
        """Print the rows of one micro-batch."""
        if as_json:
            values = []
            for line in as_json_lines(frame):
                emit(line)
                values.append(json.loads(line))
            if values:
                show(result_rows(values))
            return
        rows = frame.drop("parts").toPandas()
        if len(rows):
            emit(rows.to_string(index=False))
            show(result_rows(rows.to_dict("records")))


def as_json_lines(frame: DataFrame) -> Iterator[str]:
    """The rows of a frame as JSON texts."""
    from pyspark.sql import functions as F

    lines = frame.select(F.to_json(F.struct(*(F.col(quoted(name)) for name in frame.columns))).alias("line"))
    return (str(row.line) for row in lines.toLocalIterator())


def writer_to(
    result: DataFrame, sink: Sink, late: Sink | None, emit: Emit, as_json: bool, show: Show
) -> DataStreamWriter:
    """The writer of ``result``: Spark's own sink where it suffices, else ``foreachBatch``."""
    from slackwater.spark.windows.late_rows import late_rows, on_time

    writer = sink.stream_writer(result) if late is None else None
    if writer is not None:
        return writer

    def write_batch(frame: DataFrame, batch: int) -> None:
        if late is None:
            sink.write(frame, batch, emit, as_json, show)
            return
        frame.persist()
        try:
            sink.write(on_time(frame), batch, emit, as_json, show)
            late.write(late_rows(frame), batch, emit, as_json, lambda rows: None)
        finally:
            frame.unpersist()

    return result.writeStream.foreachBatch(write_batch)
