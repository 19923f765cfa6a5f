"""The listener: passes a session's streaming events on to the handlers of its promises."""

from __future__ import annotations

import atexit
import contextlib
import logging
import threading
from functools import partial
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

from pyspark.sql import SparkSession
from pyspark.sql.streaming.listener import (
    QueryIdleEvent,
    QueryProgressEvent,
    QueryStartedEvent,
    QueryTerminatedEvent,
)
from pyspark.sql.streaming.query import StreamingQueryManager

from slackwater.errors import PromiseConflict
from slackwater.spark.runtime.handler import PromiseHandler, PromiseReport, SeriesEntry
from slackwater.spark.runtime.progress import parse_ms
from slackwater.spark.runtime.progress_events import JsonProgressListener
from slackwater.spark.runtime.queries import RunningQueries
from slackwater.spark.runtime.recorder import SeriesRecorder
from slackwater.spark.runtime.starting import start_failure
from slackwater.watching.series import Kind, ResultRows

_log = logging.getLogger("slackwater")
Handler = TypeVar("Handler", bound=PromiseHandler[Any])
Reports = dict[Kind, list[PromiseReport]]


class PromiseListener(JsonProgressListener):
    """Dispatches the events of one Spark session to its handlers; knows no kind of promise.

    Spark calls it after a micro-batch has been committed. If a handler fails, the failure is logged and the query goes
    on under its last heartbeat and shed ratio, which costs waiting time and no rows.
    """

    def __init__(self, spark: SparkSession) -> None:
        self._queries = RunningQueries(spark.streams)
        self._handlers: list[PromiseHandler[Any]] = []
        self._recorder = SeriesRecorder()
        self._started: set[str] = set()
        self._ended: set[str] = set()
        self._handled_batch: dict[str, int] = {}
        self._changed = threading.Condition()

    def handler(self, kind: type[Handler]) -> Handler:
        """The session's handler of that class; created when first asked for."""
        with self._changed:
            for handler in self._handlers:
                if isinstance(handler, kind):
                    return handler
            created = kind(self._queries, self._changed)
            self._handlers = sorted([*self._handlers, created], key=lambda handler: handler.order)
            return created

    def add(self, kind: type[PromiseHandler[Any]], spec: Any) -> None:
        """Put a promise in the charge of its handler; refuses one whose folder is that of a promise of another kind."""
        handler = self.handler(kind)
        with self._changed:
            for other in self._handlers:
                if other is not handler and spec.folder in other.folders():
                    raise PromiseConflict(
                        "name-taken",
                        f"there is a promise of {other.kind} named {spec.name!r} already, and both would keep their "
                        f"files in {spec.folder}",
                        "give one of them another name with name=",
                    )
            handler.add(spec)

    def add_results(self, promise: str, results: ResultRows) -> None:
        """Add published results to a promise's history, for the live page."""
        with self._changed:
            self._recorder.add_results(promise, results)

    def wait_for_batch(self, query_id: str, batch: int, timeout_s: float) -> None:
        """Return once every handler has dealt with the batch and has counted what it missed, or after the timeout."""
        with self._changed:
            if query_id in self._started:
                self._changed.wait_for(lambda: self._handled_batch.get(query_id, -1) >= batch, timeout_s)
        for handler in list(self._handlers):
            handler.await_recounts(query_id, timeout_s)

    def wait_for_end(self, query_id: str, timeout_s: float) -> None:
        """Return once the end of the query has been dealt with, or after the timeout."""
        with self._changed:
            self._changed.wait_for(lambda: query_id in self._ended, timeout_s)

    def reports(self, query_id: str) -> Reports:
        """The reports of a query's promises by kind; empty if it makes none."""
        with self._changed:
            series_of = partial(self._recorder.series_of, query_id)
            found = {handler.kind: handler.reports(query_id, series_of) for handler in self._handlers}
        return {kind: reports for kind, reports in found.items() if reports}

    def end_stream(self, query_id: str) -> None:
        """Let a query whose sources have ended publish what it still holds back."""
        with self._changed:
            for handler in self._handlers:
                handler.end_stream(query_id)

    def onQueryStarted(self, event: QueryStartedEvent) -> None:
        # Spark calls this synchronously, before the query opens its sources.
        query_id = str(event.id)
        with self._changed:
            self._started.add(query_id)
            self._ended.discard(query_id)
            self._handled_batch.pop(query_id, None)
            self._recorder.forget(query_id)
            for handler in self._handlers:
                handler.on_started(query_id)

    def onQueryProgress(self, event: QueryProgressEvent) -> None:
        progress = event.progress
        query_id = str(progress.id)
        with self._changed:
            entries: list[SeriesEntry] = []
            for handler in self._handlers:
                try:
                    entries += handler.on_progress(progress)
                except Exception:
                    _log.exception(
                        "[promise-not-updated] batch %s of query %s; its last heartbeat and shed ratio stay",
                        progress.batchId,
                        query_id,
                    )
            try:
                self._recorder.record(entries, progress.batchId)
            finally:
                self._handled_batch[query_id] = progress.batchId
                self._changed.notify_all()

    def onQueryIdle(self, event: QueryIdleEvent) -> None:
        query_id, now_ms = str(event.id), parse_ms(event.timestamp)
        with self._changed:
            self._recorder.on_idle(query_id, now_ms)
            for handler in self._handlers:
                handler.on_idle(query_id, now_ms)

    def onQueryTerminated(self, event: QueryTerminatedEvent) -> None:
        query_id = str(event.id)
        explained = start_failure(event.exception)
        if explained is not None:
            _log.error("query %s: %s", query_id, explained)
        with self._changed:
            self._recorder.on_ended(query_id, event.exception)
            for handler in self._handlers:
                handler.on_ended(query_id)
            self._ended.add(query_id)
            self._changed.notify_all()


_LISTENERS: WeakKeyDictionary[SparkSession, PromiseListener] = WeakKeyDictionary()
_LISTENERS_LOCK = threading.Lock()


def listener_of(spark: SparkSession) -> PromiseListener:
    """The session's listener; registered with Spark when first asked for."""
    with _LISTENERS_LOCK:
        listener = _LISTENERS.get(spark)
        if listener is None:
            listener = PromiseListener(spark)
            streams = spark.streams
            streams.addListener(listener)
            atexit.register(_stop_listening, streams, listener)
            _LISTENERS[spark] = listener
        return listener


def handlers(kind: type[Handler]) -> list[Handler]:
    """The handlers of that class, of all sessions."""
    return [listener.handler(kind) for listener in list(_LISTENERS.values())]


def wait_for_batch(query_id: str, batch: int, timeout_s: float = 10.0) -> None:
    """Return once the query's promises have dealt with the batch, or after the timeout; any session."""
    for listener in list(_LISTENERS.values()):
        listener.wait_for_batch(query_id, batch, timeout_s)


def end_stream(query_id: str) -> None:
    """The sources of a query have ended: let it publish what it still holds back; any session."""
    for listener in list(_LISTENERS.values()):
        listener.end_stream(query_id)


def reports_of(query_id: str) -> Reports:
    """The reports of a query's promises by kind; any session."""
    found = (listener.reports(query_id) for listener in list(_LISTENERS.values()))
    return next((reports for reports in found if reports), {})


def _stop_listening(streams: StreamingQueryManager, listener: PromiseListener) -> None:
    """Spark logs an error when it calls a listener whose process has gone."""
    with contextlib.suppress(Exception):
        streams.removeListener(listener)
