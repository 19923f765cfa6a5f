"""A series on disk, in the promise's folder beside the checkpoint.

One JSON line a micro-batch after a line that holds everything before it; the file is rewritten when it has grown by
``_LINES`` lines. A line that a crash cut short is left aside.
"""

from __future__ import annotations

import json
import os
import tempfile
from dataclasses import asdict
from pathlib import Path
from typing import Any, TextIO

from slackwater.watching.point import Point
from slackwater.watching.series import About, Series, Shown, shown_from

PATTERN = "series-*.jsonl"
_LINES = 500


def series_path(folder: Path, query_id: str) -> Path:
    """Where the series of a query under the promise of that folder is."""
    return folder / f"series-{query_id}.jsonl"


class SeriesWriter:
    """Keeps a series in memory and on disk; goes on with what an earlier run left there.

    A micro-batch costs one short write, without waiting for the disk: a power cut may take the latest points.
    """

    def __init__(self, path: Path, about: About, next_batch: int) -> None:
        self._path = path
        self.series = SeriesReader(path).read() or Series(about)
        last = self.series.last
        if last is not None and last.batch >= next_batch:
            self.series = Series(about)  # of another life of the query: its checkpoint has begun anew
        self.series.about = about
        self._file: TextIO | None = None
        self._lines = 0
        self._rewrite()

    def add(self, point: Point) -> None:
        """Take one more micro-batch."""
        self.series.add(point)
        self._write({"point": point.as_json()})
        if self._lines >= _LINES:
            self._rewrite()

    def saw(self, at_ms: float) -> None:
        """A sign of life of a query that has nothing to do."""
        self.series.saw(at_ms)
        self._write({"seen_ms": at_ms})

    def show(self, shown: Shown) -> None:
        """Results that were published."""
        self.series.show(shown)
        self._write({"shown": asdict(shown)})

    def end(self, how: str) -> None:
        """The query has ended."""
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
            file.write(json.dumps({"series": self.series.snapshot()}, separators=(",", ":")) + "\n")
        Path(temporary).replace(self._path)
        self._lines = 0


class SeriesReader:
    """Follows a series that somebody else writes: each call reads what is new."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._inode = -1
        self._place = 0
        self.series: Series | None = None

    def read(self) -> Series | None:
        """The series as far as it is written; None while there is none, or where it cannot be read."""
        try:
            with self._path.open("rb") as file:
                status = os.fstat(file.fileno())
                if status.st_ino != self._inode or status.st_size < self._place:
                    self._inode, self._place, self.series = status.st_ino, 0, None
                if status.st_size == self._place:
                    return self.series
                file.seek(self._place)
                text = file.read()
        except OSError:
            return self.series
        whole = text.rfind(b"\n") + 1
        self._place += whole
        for line in text[:whole].splitlines():
            self._take(line)
        return self.series

    def _take(self, line: bytes) -> None:
        try:
            values = json.loads(line)
            if "series" in values:
                self.series = Series.resume(values["series"])
            elif self.series is None:
                return
            elif "point" in values:
                self.series.add(Point.from_json(values["point"]))
            elif "shown" in values:
                self.series.show(shown_from(values["shown"]))
            elif "seen_ms" in values:
                self.series.saw(values["seen_ms"])
            elif "ended" in values:
                self.series.end(values["ended"])
        except (ValueError, KeyError, TypeError):
            return
