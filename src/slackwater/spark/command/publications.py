"""The windows that a query has published, with the time at which each micro-batch was committed."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping

from pyspark.sql.streaming.listener import (
    QueryIdleEvent,
    QueryProgressEvent,
    QueryStartedEvent,
    QueryTerminatedEvent,
    StreamingQueryListener,
    StreamingQueryProgress,
)

from slackwater.spark.command.comparison import Published
from slackwater.spark.runtime.progress import committed_ms, duration_s

_FILES = "FileStreamSource"


class Publications:
    """The windows of one query by their end. A window counts once its micro-batch has been committed.

    Results come from ``foreachBatch`` and commits from the listener, in threads of their own.
    """

    def __init__(self) -> None:
        self._results: dict[int, list[tuple[int, int]]] = {}
        self._committed_ms: dict[int, float] = {}
        self._durations_s: list[float] = []
        self._rows_read = 0
        self._lock = threading.Lock()

    def add_results(self, batch: int, results: Iterable[tuple[int, int]]) -> None:
        """Add the results of a micro-batch: the end of a window in microseconds, and rows in it.

        A batch that is repeated replaces its first attempt.
        """
        with self._lock:
            self._results[batch] = list(results)

    def add_commit(self, progress: StreamingQueryProgress) -> None:
        """Note when a micro-batch was committed, and how many rows it read from files."""
        files = (source for source in progress.sources if source.description.startswith(_FILES))
        with self._lock:
            self._committed_ms[progress.batchId] = committed_ms(progress)
            self._durations_s.append(duration_s(progress))
            self._rows_read += sum(source.numInputRows for source in files)

    @property
    def rows_read(self) -> int:
        """How many rows the committed micro-batches have read."""
        with self._lock:
            return self._rows_read

    @property
    def batches(self) -> int:
        """How many micro-batches were committed."""
        with self._lock:
            return len(self._committed_ms)

    @property
    def durations_s(self) -> list[float]:
        """How long each micro-batch took, from planning to commit."""
        with self._lock:
            return list(self._durations_s)

    def windows(self, start_us: int, window_us: int) -> dict[int, Published]:
        """The published windows by their end, in windows since ``start_us``."""
        found: dict[int, Published] = {}
        with self._lock:
            for batch, at_ms in self._committed_ms.items():
                for end_us, rows in self._results.get(batch, ()):
                    before = found.get(number := (end_us - start_us) // window_us)
                    # A window has one result per sensor, all in the same micro-batch.
                    total = rows if before is None else before.rows + rows
                    found[number] = Published(total, at_ms - end_us / 1e3)
        return found


class CommitListener(StreamingQueryListener):
    """Passes the commits of queries on to their publications, by the query's name."""

    def __init__(self, publications: Mapping[str, Publications]) -> None:
        self._publications = publications

    def onQueryStarted(self, event: QueryStartedEvent) -> None:
        """Nothing to note."""

    def onQueryProgress(self, event: QueryProgressEvent) -> None:
        publications = self._publications.get(event.progress.name or "")
        if publications is not None:
            publications.add_commit(event.progress)

    def onQueryIdle(self, event: QueryIdleEvent) -> None:
        """Nothing to note."""

    def onQueryTerminated(self, event: QueryTerminatedEvent) -> None:
        """Nothing to note."""
