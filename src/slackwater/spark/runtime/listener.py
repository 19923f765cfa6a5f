"""Listens to a Spark session's streaming queries and keeps their promises."""

from __future__ import annotations

import atexit
import contextlib
import datetime as dt
import json
import logging
import threading
from collections.abc import Callable
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

from pyspark.sql import SparkSession
from pyspark.sql.streaming.listener import (
    QueryIdleEvent,
    QueryProgressEvent,
    QueryStartedEvent,
    QueryTerminatedEvent,
    StreamingQueryListener,
    StreamingQueryProgress,
)
from pyspark.sql.streaming.query import StreamingQueryManager

from slackwater.spark.completeness.control_row import CONTROL_PREFIX
from slackwater.spark.completeness.histogram import decode_cells
from slackwater.spark.completeness.source_heartbeats import PUNCTUATION_PREFIX
from slackwater.spark.completeness.tracker import BatchReport, CompletenessSpec, CompletenessTracker
from slackwater.spark.runtime.java_names import remember_java_names
from slackwater.spark.runtime.recorder import SeriesRecorder
from slackwater.spark.standing.handler import PrecisionHandler, PrecisionSpec
from slackwater.spark.timeliness.handler import TimelinessHandler
from slackwater.spark.timeliness.tracker import TimelinessSpec, TimelinessTracker
from slackwater.spark.worker.mailbox import replace
from slackwater.watching.series import Series, Shown

METRICS_PREFIX = "slackwater:"
_log = logging.getLogger("slackwater")
_T = TypeVar("_T")


class PromiseListener(StreamingQueryListener):
    """One for each Spark session; what it does happens in a listener's call, after a commit.

    Only the look-out for overdue micro-batches (``TimelinessHandler``) has a thread of its own. A call takes
    milliseconds. If one fails, the query goes on under its last heartbeat, which costs wait and never a row; the
    failure is logged.
    """

    def __init__(self, spark: SparkSession) -> None:
        self._streams = spark.streams
        self._specs: dict[str, CompletenessSpec] = {}
        self._trackers: dict[tuple[str, str], CompletenessTracker] = {}
        self._started: set[str] = set()
        self._ended: dict[str, dict[str, Any]] = {}
        self._handled: dict[str, int] = {}
        self._changed = threading.Condition()
        self._delays = TimelinessHandler(self._active, _parse_ms, self._running, self._changed)
        self._standing = PrecisionHandler()
        self._recorder = SeriesRecorder()

    def add(self, spec: CompletenessSpec) -> None:
        """Take charge of a promise."""
        with self._changed:
            self._specs[spec.name] = spec
            spec.mailbox.declare_live(self._live_epochs(spec.name))

    def add_delay(self, spec: TimelinessSpec) -> None:
        """Take charge of a timeliness promise."""
        with self._changed:
            self._delays.add(spec)

    def has_delay(self, name: str) -> bool:
        """Whether a timeliness promise of that name was made in this session."""
        return self._delays.has(name)

    def add_standing(self, spec: PrecisionSpec) -> None:
        """Take charge of a precision promise."""
        with self._changed:
            self._standing.add(spec)

    def has_standing(self, name: str) -> bool:
        """Whether a precision promise of that name was made in this session."""
        return self._standing.has(name)

    def standing_of(self, query_id: str, up_to_batch: int, timeout_s: float = 10.0) -> list[Series]:
        """The series of one query's precision promises, once the given batch has been dealt with."""
        with self._changed:
            self._wait_for(query_id, up_to_batch, timeout_s)
            return self._recorder.series_of_kind(query_id, "precision")

    def timeliness_trackers_of(
        self, query_id: str, up_to_batch: int, timeout_s: float = 10.0
    ) -> list[TimelinessTracker]:
        """The timeliness promises of one query, once the given batch has been dealt with."""
        with self._changed:
            self._wait_for(query_id, up_to_batch, timeout_s)
            return self._delays.completeness_trackers_of(query_id)

    def has(self, name: str) -> bool:
        """Whether a promise of that name was made in this session."""
        return name in self._specs

    def completeness_trackers_of(
        self, query_id: str, up_to_batch: int, timeout_s: float = 10.0
    ) -> list[CompletenessTracker]:
        """The promises of one query, once the given batch has been dealt with."""
        with self._changed:
            self._wait_for(query_id, up_to_batch, timeout_s)
            return [tracker for (query, _), tracker in self._trackers.items() if query == query_id]

    def _wait_for(self, query_id: str, batch: int, timeout_s: float) -> None:
        if query_id in self._started:
            self._changed.wait_for(lambda: self._handled.get(query_id, -1) >= batch, timeout_s)

    def show(self, promise: str, shown: Shown) -> None:
        """Results that a promise's query is publishing through our own hands, for whoever watches it."""
        with self._changed:
            self._recorder.show(promise, shown)

    def series_of(self, query_id: str, promise: str) -> Series | None:
        """The series of a promise in one query."""
        with self._changed:
            return self._recorder.series_of(query_id, promise)

    def onQueryStarted(self, event: QueryStartedEvent) -> None:
        # Spark calls this before the query opens its sources: the readers will find who else is running.
        with self._changed:
            self._started.add(str(event.id))
            self._handled.pop(str(event.id), None)
            self._recorder.forget(str(event.id))
            for key in [key for key in self._trackers if key[0] == str(event.id)]:
                tracker = self._trackers.pop(key)
                self._ended[tracker.epoch] = tracker.snapshot()
            for name, spec in self._specs.items():
                spec.mailbox.declare_live(self._live_epochs(name))
            self._delays.on_started(str(event.id))

    def onQueryProgress(self, event: QueryProgressEvent) -> None:
        progress = event.progress
        query_id = str(progress.id)
        try:
            with self._changed:
                # first, since the next micro-batch of a query that is behind reads its shed ratio at once
                self._delays.on_progress(progress)
                for key, metrics in progress.observedMetrics.items():
                    if key.startswith(METRICS_PREFIX) and key.removeprefix(METRICS_PREFIX) in self._specs:
                        self._on_batch(self._specs[key.removeprefix(METRICS_PREFIX)], progress, metrics.asDict())
                trackers = [tracker for (query, _), tracker in self._trackers.items() if query == query_id]
                told = self._standing.shard_counts_of(progress)
                self._recorder.on_batch(progress, trackers, self._delays.completeness_trackers_of(query_id), told)
        except Exception:
            _log.exception(
                "[promise-not-updated] batch %s of query %s; its last heartbeat stays", progress.batchId, query_id
            )
        finally:
            with self._changed:
                self._handled[query_id] = progress.batchId
                self._changed.notify_all()

    def onQueryIdle(self, event: QueryIdleEvent) -> None:
        now_ms = _parse_ms(event.timestamp)
        with self._changed:
            self._delays.on_idle(str(event.id), now_ms)
            self._recorder.on_idle(str(event.id), now_ms)
            for (query_id, _name), tracker in self._trackers.items():
                if query_id == str(event.id):
                    tracker.on_idle(now_ms)
                    self._publish(tracker)

    def onQueryTerminated(self, event: QueryTerminatedEvent) -> None:
        with self._changed:
            self._recorder.on_ended(str(event.id), event.exception)
            for name, spec in self._specs.items():
                spec.mailbox.declare_live(self._live_epochs(name))

    def _on_batch(self, spec: CompletenessSpec, progress: StreamingQueryProgress, metrics: dict[str, Any]) -> None:
        offset = _offset_of(spec, progress)
        if offset is None:
            return
        tracker = self._tracker(spec, progress, offset)
        with_sources = bool(spec.sources)
        clock_ms, (reference_us, sample_from_us) = _ms(metrics.get("clock_us")), _placed_by(spec, progress)
        reference_ms = _ms(reference_us)
        reported_at_ms = _parse_ms(progress.timestamp)
        cells = decode_cells(
            ((c["item"], c["count"]) for c in metrics["cells"] or []),
            with_sources,
            metrics.get("rows"),
            sample_from_us - (reference_us or 0),
        )
        if cells.rows and _judged_by_an_older(offset, reference_ms):
            tracker.pass_over(progress.batchId)
            _log.warning(
                "[promise-folder-lost] batch %s of query %s was repeated after a crash, and the folder of its promise "
                "%r (%s) is gone or older than the checkpoint; its rows are in no count, and late ones may be in no "
                "result: keep the folder with the checkpoint",
                progress.batchId,
                progress.id,
                spec.name,
                spec.mailbox.folder,
            )
        else:
            tracker.on_batch(
                BatchReport(
                    batch_id=progress.batchId,
                    heartbeat_ms=_judging_ms(offset, reference_ms),
                    reference_ms=reference_ms,
                    clock_ms=reported_at_ms if clock_ms is None else clock_ms,
                    cells=cells,
                    reported_at_ms=reported_at_ms,
                    state_rows=sum(operator.numRowsTotal for operator in progress.stateOperators),
                    source_names={
                        n["source"]: n["name"] for k in ("oldest", "any_one") if (n := metrics.get(k)) is not None
                    },
                    punctuation_ms=_punctuation_ms(spec, progress),
                )
            )
        replace(spec.mailbox.snapshot_path(tracker.query_id), json.dumps(tracker.snapshot()))
        self._publish(tracker)

    def _tracker(
        self, spec: CompletenessSpec, progress: StreamingQueryProgress, offset: dict[str, Any]
    ) -> CompletenessTracker:
        key = (str(progress.id), spec.name)
        tracker = self._trackers.get(key)
        if tracker is None or tracker.epoch != offset["epoch"] or tracker.spec is not spec:
            tracker = CompletenessTracker(spec, str(progress.id), offset["epoch"])
            snapshot = self._ended.pop(offset["epoch"], None) or self._snapshot(spec, str(progress.id))
            tracker.resume(snapshot, offset, progress.batchId)
            self._trackers[key] = tracker
            if len(self._live_epochs(spec.name)) > 1:
                _log.warning(
                    "[promise-shared] several queries run under the promise %r and share its heartbeat; "
                    "call with_drop_ratio once for each to give each its own",
                    spec.name,
                )
        return tracker

    def _snapshot(self, spec: CompletenessSpec, query_id: str) -> dict[str, Any] | None:
        try:
            snapshot = json.loads(spec.mailbox.snapshot_path(query_id).read_text())
        except (FileNotFoundError, json.JSONDecodeError):
            return None
        return snapshot if isinstance(snapshot, dict) else None

    def _publish(self, decided_now: CompletenessTracker) -> None:
        """Put the heartbeat that every live query of the promise can bear before their next micro-batches.

        A query that has just ended counts too: what its last micro-batch decided is there when it starts again.
        """
        spec = decided_now.spec
        others = [tracker for tracker in self._live_trackers(spec.name) if tracker is not decided_now]
        live = [decided_now, *others]
        decided = [tracker.heartbeat_ms for tracker in live]
        bearable = [heartbeat for heartbeat in decided if heartbeat is not None]
        heartbeat_ms = min(bearable) if len(bearable) == len(decided) else None
        if decided_now.clock_ms is not None:
            checkpoint_state = {tracker.epoch: tracker.checkpoint_state() for tracker in live}
            spec.mailbox.publish(heartbeat_ms, decided_now.clock_ms, decided_now.sample_cells, checkpoint_state)

    def _live_trackers(self, name: str) -> list[CompletenessTracker]:
        active = self._active()
        return [tracker for (query, promise), tracker in self._trackers.items() if promise == name and query in active]

    def _active(self) -> set[str]:
        return {str(query.id) for query in self._streams.active}

    def _running(self, query_id: str) -> bool:
        """Whether a micro-batch with rows is under way."""
        try:
            query = self._streams.get(query_id)
            status = {} if query is None else query.status
        except Exception:  # the session may be ending
            return False
        return bool(status.get("isTriggerActive") and status.get("isDataAvailable"))

    def _live_epochs(self, name: str) -> list[str]:
        return [tracker.epoch for tracker in self._live_trackers(name)]


_LISTENERS: WeakKeyDictionary[SparkSession, PromiseListener] = WeakKeyDictionary()
_LISTENERS_LOCK = threading.Lock()


def listener_of(spark: SparkSession) -> PromiseListener:
    """The session's listener; it starts to listen when it is first asked for."""
    with _LISTENERS_LOCK:
        listener = _LISTENERS.get(spark)
        if listener is None:
            listener = PromiseListener(spark)
            remember_java_names(spark)
            streams = spark.streams
            streams.addListener(listener)
            atexit.register(_stop_listening, streams, listener)
            _LISTENERS[spark] = listener
        return listener


def _first(found: Callable[[PromiseListener], list[_T]]) -> list[_T]:
    """What the one session that knows the query has found."""
    return next((those for listener in list(_LISTENERS.values()) if (those := found(listener))), [])


def completeness_trackers_of(query_id: str, up_to_batch: int, timeout_s: float = 10.0) -> list[CompletenessTracker]:
    """The promises of one query of any session, once the given batch has been dealt with."""
    return _first(lambda listener: listener.completeness_trackers_of(query_id, up_to_batch, timeout_s))


def timeliness_trackers_of(query_id: str, up_to_batch: int, timeout_s: float = 10.0) -> list[TimelinessTracker]:
    """The timeliness promises of one query of any session, once the given batch has been dealt with."""
    return _first(lambda listener: listener.timeliness_trackers_of(query_id, up_to_batch, timeout_s))


def standing_of(query_id: str, up_to_batch: int, timeout_s: float = 10.0) -> list[Series]:
    """The series of the precision promises of one query of any session, once the given batch has been dealt with."""
    return _first(lambda listener: listener.standing_of(query_id, up_to_batch, timeout_s))


def series_of(query_id: str, promise: str) -> Series | None:
    """The series of a promise in one query of any session."""
    found = (listener.series_of(query_id, promise) for listener in list(_LISTENERS.values()))
    return next((series for series in found if series is not None), None)


def _stop_listening(streams: StreamingQueryManager, listener: PromiseListener) -> None:
    """Spark would log an error if it called a listener whose process has gone."""
    with contextlib.suppress(Exception):
        streams.removeListener(listener)


def _offset_of(spec: CompletenessSpec, progress: StreamingQueryProgress) -> dict[str, Any] | None:
    """Where the promise's heartbeat stream stood when the batch began."""
    for source in progress.sources:
        for text in (source.startOffset, source.endOffset):
            try:
                offset = json.loads(text) if isinstance(text, str) else None
            except json.JSONDecodeError:
                continue
            if isinstance(offset, dict) and "epoch" in offset and spec.mailbox.was_announced(offset["epoch"]):
                return offset
    return None


def _judging_ms(offset: dict[str, Any], reference_ms: float | None) -> float | None:
    """The heartbeat that judged a micro-batch: what was read for the one before.

    Its rows were placed by it, and where queries share a promise it may be another's; without rows it is its own.
    """
    own: int | None = offset["heartbeat"]
    return None if own is None else float(own) if reference_ms is None else reference_ms


def _judged_by_an_older(offset: dict[str, Any], reference_ms: float | None) -> bool:
    """Whether the rows of a micro-batch were judged by less than the heartbeat that it began with.

    The heartbeat reader sees to it that they are not, but Spark does not ask it before it repeats a micro-batch.
    """
    own: int | None = offset["heartbeat"]
    return own is not None and (reference_ms is None or reference_ms < own)


def _placed_by(spec: CompletenessSpec, progress: StreamingQueryProgress) -> tuple[int | None, int]:
    """What the rows of this micro-batch were placed by, if there were any and it was known; from where on thinned."""
    metrics = progress.observedMetrics.get(CONTROL_PREFIX + spec.name)
    return (None, 0) if metrics is None else (metrics["reference_us"], metrics["sample_from_us"])


def _punctuation_ms(spec: CompletenessSpec, progress: StreamingQueryProgress) -> float | None:
    """The highest heartbeat that the stream itself carried in this micro-batch."""
    metrics = progress.observedMetrics.get(PUNCTUATION_PREFIX + spec.name)
    return None if metrics is None else _ms(metrics["heartbeat_us"])


def _ms(us: int | None) -> float | None:
    return None if us is None else us / 1000.0


def _parse_ms(timestamp: str) -> float:
    return dt.datetime.fromisoformat(timestamp.replace("Z", "+00:00")).timestamp() * 1000.0
