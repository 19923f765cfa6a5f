"""What Spark itself wrote down: which rows each committed micro-batch read, and under which watermark."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd


@dataclass(frozen=True)
class LoggedBatch:
    """A committed micro-batch: the watermark that was in force, and the heartbeat that it read."""

    watermark_ms: int
    heartbeat_ms: int | None
    file_offset: int


@dataclass
class CheckpointLog:
    """The checkpoint of a query. Spark forgets old entries; this keeps what it has read."""

    folder: Path
    batches: dict[int, LoggedBatch] = field(default_factory=dict)
    _file_batches: dict[str, int] = field(default_factory=dict)

    def update(self) -> None:
        """Read the entries that are new."""
        for number in sorted(_numbers(self.folder / "commits")):
            if number not in self.batches:
                self.batches[number] = _parse((self.folder / "offsets" / str(number)).read_text())
        if self.batches:
            for entry in _entries(self._sources()):
                self._file_batches[Path(entry["path"]).name] = entry["batchId"]

    @property
    def last(self) -> LoggedBatch:
        return self.batches[max(self.batches)]

    def place(self, rows: pd.DataFrame) -> pd.DataFrame:
        """The rows of committed micro-batches, each with the number of its own in ``batch``."""
        names = [f"{number:06d}.json" for number in range(int(rows["file"].max()) + 1 if len(rows) else 0)]
        offsets = np.array([self._file_batches.get(name, np.iinfo(np.int64).max) for name in names], np.int64)
        numbers = sorted(self.batches)
        ends = np.array([self.batches[number].file_offset for number in numbers], np.int64)
        # the first micro-batch that ends at the offset of the file or after it
        positions = np.searchsorted(np.maximum.accumulate(ends), offsets[rows["file"]])
        found = rows[positions < len(numbers)].copy()
        found["batch"] = np.array(numbers)[positions[positions < len(numbers)]]
        return found

    def heartbeats_in_force(self, *, follows_rows: bool) -> pd.Series[float]:
        """The heartbeat that judges each micro-batch; NaN without one.

        Where it follows rows it is Spark's watermark, else what the micro-batch before read from the heartbeat stream.
        """
        if follows_rows:
            watermarks = {number: batch.watermark_ms for number, batch in self.batches.items()}
            return pd.Series({n: ms + 1 if ms else np.nan for n, ms in watermarks.items()}, dtype=float)
        read = {number: batch.heartbeat_ms for number, batch in self.batches.items()}
        return pd.Series({n: read.get(n - 1) for n in read}, dtype=float)

    def _sources(self) -> Path:
        """The log of the file source: the only source that writes one."""
        (first, *_) = sorted((self.folder / "sources").iterdir())
        return first


def _parse(text: str) -> LoggedBatch:
    _, head, *lines = text.splitlines()
    offsets = [json.loads(line) for line in lines]
    (heartbeat,) = [offset["heartbeat"] for offset in offsets if "epoch" in offset] or [None]
    files = [offset["logOffset"] for offset in offsets if "logOffset" in offset]
    return LoggedBatch(int(json.loads(head)["batchWatermarkMs"]), heartbeat, files[0] if files else -1)


@dataclass
class Published:
    """What a query has published, by ``foreachBatch`` into a folder per micro-batch or by Spark's file sink."""

    folder: Path
    _read: dict[Path, pd.DataFrame] = field(default_factory=dict)

    def table(self, last: int) -> pd.DataFrame:
        """All published rows up to a micro-batch."""
        files = list(self._files(last))
        for path in files:
            if path not in self._read:
                self._read[path] = pd.read_parquet(path)
        tables = [self._read[path] for path in files]
        return pd.concat([table for table in tables if len(table)] or tables[:1], ignore_index=True)

    def _files(self, last: int) -> Iterator[Path]:
        log = self.folder / "_spark_metadata"
        if log.is_dir():
            yield from sorted({Path(entry["path"].removeprefix("file://")) for entry in _entries(log)})
            return
        for number in range(last + 1):
            yield from sorted((self.folder / f"batch={number}").glob("*.parquet"))


def _numbers(folder: Path) -> Iterator[int]:
    return (int(path.name) for path in folder.iterdir() if path.name.isdigit())


def _entries(log: Path) -> Iterator[dict[str, Any]]:
    """The entries of one of Spark's logs, of which some may be in several files."""
    for path in sorted(log.iterdir()):
        if path.name.partition(".")[0].isdigit() and path.suffix in ("", ".compact"):
            for line in path.read_text().splitlines()[1:]:
                yield json.loads(line)
