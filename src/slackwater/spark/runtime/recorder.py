"""Records the history of every promise of a session: one series in memory and on disk per promise and query."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from slackwater.spark.runtime.handler import SeriesEntry
from slackwater.watching.folders import register_folder
from slackwater.watching.series import About, ResultRows, Series
from slackwater.watching.series_file import SeriesReader, SeriesWriter, series_path

_log = logging.getLogger("slackwater")


class SeriesRecorder:
    """All series of a session: the one history that report, metrics and page read.

    Not thread-safe: the listener calls it under its lock. A micro-batch costs less than a millisecond per promise. If a
    series cannot be written, the promise is kept all the same and the failure is logged once.
    """

    def __init__(self) -> None:
        self._writers: dict[tuple[str, str], SeriesWriter] = {}
        self._failure_logged = False

    def record(self, entries: list[SeriesEntry], batch: int) -> None:
        """Add a committed micro-batch to the series of its promises."""
        for entry in entries:
            with self._failures_logged():
                self._add(entry, batch)

    def _add(self, entry: SeriesEntry, batch: int) -> None:
        writer = self._writer(entry.about, entry.folder, batch)
        writer.add(entry.point_after(writer.series.last))

    def on_idle(self, query_id: str, now_ms: float) -> None:
        """Note that the query is alive without rows."""
        for writer in self._of(query_id):
            with self._failures_logged():
                writer.mark_alive(now_ms)

    def on_ended(self, query_id: str, failure: str | None) -> None:
        """Note how the query ended.

        Only the first line of a failure is kept: the rest may be a plan with names and values of the user's data.
        """
        how = "stopped" if failure is None else f"failed: {failure.strip().splitlines()[0][:200]}"
        for writer in self._of(query_id):
            with self._failures_logged():
                writer.end(how)

    def add_results(self, promise: str, results: ResultRows) -> None:
        """Add published results to the series of the promise's running queries."""
        for (_, name), writer in self._writers.items():
            if name == promise and writer.series.ended is None:
                with self._failures_logged():
                    writer.add_results(results)

    def forget(self, query_id: str) -> None:
        """A query starts, perhaps again: its series continue from their files."""
        for key in [key for key in self._writers if key[0] == query_id]:
            del self._writers[key]

    def series_of(self, query_id: str, promise: str, folder: Path) -> Series | None:
        """A copy of a promise's series as it is now; before the first micro-batch of a run, that of the run before."""
        writer = self._writers.get((query_id, promise))
        return SeriesReader(series_path(folder, query_id)).read() if writer is None else writer.series.copy()

    def _of(self, query_id: str) -> list[SeriesWriter]:
        return [writer for (query, _), writer in self._writers.items() if query == query_id]

    def _writer(self, about: About, folder: Path, batch: int) -> SeriesWriter:
        key = (about.query_id, about.promise)
        writer = self._writers.get(key)
        if writer is None or writer.series.about != about:
            path = series_path(folder, about.query_id)
            register_folder(path.parent)
            writer = self._writers[key] = SeriesWriter(path, about, batch)
        return writer

    @contextmanager
    def _failures_logged(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            if not self._failure_logged:
                self._failure_logged = True
                _log.warning("[series-not-written] %s; promises are kept all the same, without a history", error)
