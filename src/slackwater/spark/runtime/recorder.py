"""Records the history of every promise of a session: one series in memory and on disk per promise and query."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager

from slackwater.spark.runtime.handler import SeriesEntry
from slackwater.spark.runtime.series_copy import SeriesCopy
from slackwater.spark.worker.mailbox import Mailbox
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
        self._copies: dict[tuple[str, str], SeriesCopy] = {}
        self._failure_logged = False

    def record(self, entries: list[SeriesEntry], batch: int) -> None:
        """Add a committed micro-batch to the series of its promises."""
        for entry in entries:
            with self._failures_logged():
                self._add(entry, batch)

    def _add(self, entry: SeriesEntry, batch: int) -> None:
        writer = self._writer(entry.about, entry.mailbox, batch)
        writer.add(entry.point_after(writer.series.last))
        self._copies[entry.about.query_id, entry.about.promise].copy_if_due(writer.series)

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
        for key, writer in self._writers.items():
            if key[0] == query_id:
                with self._failures_logged():
                    writer.end(how)
                    self._copies[key].copy(writer.series)

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

    def series_of(self, query_id: str, promise: str, mailbox: Mailbox) -> Series | None:
        """A copy of a promise's series as it is now; before the first micro-batch of a run, that of the run before."""
        writer = self._writers.get((query_id, promise))
        if writer is not None:
            return writer.series.copy()
        path = series_path(mailbox.series_folder, query_id)
        SeriesCopy(mailbox, path).fetch()
        return SeriesReader(path).read()

    def _of(self, query_id: str) -> list[SeriesWriter]:
        return [writer for (query, _), writer in self._writers.items() if query == query_id]

    def _writer(self, about: About, mailbox: Mailbox, batch: int) -> SeriesWriter:
        key = (about.query_id, about.promise)
        writer = self._writers.get(key)
        if writer is None or writer.series.about != about:
            path = series_path(mailbox.series_folder, about.query_id)
            register_folder(path.parent)
            copy = self._copies[key] = SeriesCopy(mailbox, path)
            copy.fetch()
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
