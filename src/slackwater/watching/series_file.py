"""The file of a series, in the promise's folder beside the checkpoint.

The first line is a snapshot of the series as JSON; each further line is one change, such as a point. After
``_MAX_LINES`` lines the file is replaced by one with a new snapshot. An incomplete last line, left by a crash, is
ignored.
"""

from __future__ import annotations

import json
import os
import tempfile
from dataclasses import asdict
from pathlib import Path
from typing import Any, TextIO

from slackwater.watching.point import Point
from slackwater.watching.series import About, ResultRows, Series

PATTERN = "series-*.jsonl"
_MAX_LINES = 500


def series_path(folder: Path, query_id: str) -> Path:
    """The file of a query's series in the folder of its promise."""
    return folder / f"series-{query_id}.jsonl"


def snapshot_line(series: Series) -> str:
    """The first line of the file of a series, which is a whole file."""
    return json.dumps({"series": series.snapshot()}, separators=(",", ":")) + "\n"


class SeriesWriter:
    """Keeps a series in memory and in its file, and continues the file of an earlier run.

    ``next_batch`` is the batch that comes next. If the file is at this batch or beyond, it belongs to an earlier
    checkpoint and is replaced. A micro-batch costs one short write without fsync, so a power cut may lose points.
    """

    def __init__(self, path: Path, about: About, next_batch: int) -> None:
        self._path = path
        self.series = SeriesReader(path).read() or Series(about)
        last = self.series.last
        if last is not None and last.batch >= next_batch:
            self.series = Series(about)
        self.series.about = about
        self._file: TextIO | None = None
        self._lines = 0
        self._rewrite()

    def add(self, point: Point) -> None:
        """Add a micro-batch."""
        self.series.add(point)
        self._write({"point": point.as_json()})
        if self._lines >= _MAX_LINES:
            self._rewrite()

    def mark_alive(self, at_ms: float) -> None:
        """Note that an idle query reported at this time."""
        self.series.mark_alive(at_ms)
        self._write({"seen_ms": at_ms})

    def add_results(self, results: ResultRows) -> None:
        """Add published results."""
        self.series.add_results(results)
        self._write({"results": asdict(results)})

    def end(self, how: str) -> None:
        """Note how the query ended, and close the file."""
        self.series.end(how)
        self._write({"ended": how})
        if self._file is not None:
            self._file.close()
            self._file = None

    def _write(self, line: dict[str, Any]) -> None:
        if self._file is None:
            self._file = self._path.open("a", encoding="utf-8")
        self._file.write(json.dumps(line, separators=(",", ":")) + "\n")
        self._file.flush()
        self._lines += 1

    def _rewrite(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None
        self._path.parent.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=self._path.parent, prefix=f".{self._path.name}.")
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(snapshot_line(self.series))
        Path(temporary).replace(self._path)
        self._lines = 0


class SeriesReader:
    """Follows a series that another thread or process writes: each call of ``read`` reads what is new."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._inode = -1
        self._position = 0
        self.series: Series | None = None

    def read(self) -> Series | None:
        """The series as far as it is written; None if the file does not exist or cannot be read."""
        try:
            with self._path.open("rb") as file:
                status = os.fstat(file.fileno())
                if status.st_ino != self._inode or status.st_size < self._position:
                    self._inode, self._position, self.series = status.st_ino, 0, None
                if status.st_size == self._position:
                    return self.series
                file.seek(self._position)
                text = file.read()
        except OSError:
            return self.series
        complete = text.rfind(b"\n") + 1
        self._position += complete
        for line in text[:complete].splitlines():
            self._apply(line)
        return self.series

    def _apply(self, line: bytes) -> None:
        """Apply one line; a line that cannot be read is skipped."""
        try:
            values = json.loads(line)
            if "series" in values:
                self.series = Series.resume(values["series"])
            elif self.series is None:
                return
            elif "point" in values:
                self.series.add(Point.from_json(values["point"]))
            elif "results" in values:
                self.series.add_results(ResultRows.from_json(values["results"]))
            elif "seen_ms" in values:
                self.series.mark_alive(values["seen_ms"])
            elif "ended" in values:
                self.series.end(values["ended"])
        except (ValueError, KeyError, TypeError, AttributeError, IndexError, OverflowError, RecursionError):
            return
