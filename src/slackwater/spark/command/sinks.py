"""``--sink`` and ``--late-sink``: the console, Parquet files or JSON files."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from slackwater.errors import InvalidOption
from slackwater.files import is_remote, is_unused, require_output_folder
from slackwater.names import quoted
from slackwater.spark.command.result_rows import Show, result_rows

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.readwriter import DataStreamWriter

Emit = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Sink:
    """Where results go: ``kind`` is console, parquet or json; ``where`` is the folder of a file sink."""

    kind: str
    where: str | None

    @classmethod
    def parse(cls, text: str, option: str = "--sink") -> Sink:
        """A sink from the text of ``option``.

        >>> Sink.parse("parquet:out")
        Sink(kind='parquet', where='out')
        """
        kind, _, where = text.partition(":")
        if kind not in ("console", "parquet", "json") or (kind != "console") != bool(where):
            raise InvalidOption(
                "unknown-sink", f"{option}: unknown sink `{text}`", "use console, parquet:FOLDER or json:FOLDER"
            )
        return cls(kind, where or None)

    @property
    def folder(self) -> Path | None:
        """The folder on this machine that a run writes to, if any."""
        return None if self.where is None or is_remote(self.where) else Path(self.where.removeprefix("file://"))

    def check(self, checkpoint: Path | None, option: str) -> None:
        """Raise, before Spark starts, if the folder cannot be written or holds another run's results.

        Spark's file sink would take the first batches of the new query for batches that it has already written, and
        skip them.
        """
        if self.where is None:
            return
        require_output_folder(self.where, f"{option} {self.kind}:")
        if checkpoint is not None and checkpoint.exists():
            return
        if self.folder is not None and self.folder.is_dir() and not is_unused(self.folder):
            raise InvalidOption(
                "sink-in-use",
                f"{self.where} is not empty",
                "name another folder, or give the --checkpoint of the run that wrote it",
            )

    def write(self, frame: DataFrame, batch: int, emit: Emit, as_json: bool, show: Show) -> None:
        """Write the rows of one micro-batch. A batch repeated after a crash overwrites its first attempt.

        Rows on the console also go to ``show``, for the live page.
        """
        if self.where is not None:
            frame.write.mode("overwrite").format(self.kind).save(f"{self.where}/batch={batch}")
            return
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
    """The writer of ``result``: Spark's own file sink where it suffices, else ``foreachBatch``."""
    from slackwater.spark.windows.late_rows import late_rows, on_time

    if late is None and sink.where is not None:
        return result.writeStream.format(sink.kind).option("path", sink.where)

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
