"""The listener's desk for timeliness promises: who sheds how much."""

from __future__ import annotations

import json
import logging
import threading
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

from pyspark.sql.streaming.listener import StreamingQueryProgress

from slackwater.control.shedding.microbatch import MicroBatch
from slackwater.spark.timeliness.tracker import TimelinessSpec, TimelinessTracker
from slackwater.spark.worker.mailbox import replace

DELAY_PREFIX = "slackwater-delay:"
_LOOK_S = 0.1
_log = logging.getLogger("slackwater")


class TimelinessHandler:
    """All timeliness promises of a session. Not thread-safe by itself: the listener calls it under its lock.

    Where several queries run on one promise the highest of their shed ratios is in force. A thread of its own looks ten
    times a second for micro-batches that ought to be over: it asks Spark only about those.
    """

    def __init__(
        self,
        active: Callable[[], set[str]],
        parse_ms: Callable[[str], float],
        running: Callable[[str], bool],
        lock: AbstractContextManager[Any],
    ) -> None:
        self._active = active
        self._parse_ms = parse_ms
        self._running = running
        self._lock = lock
        self._watcher: threading.Thread | None = None
        self._unwatched: set[tuple[str, int]] = set()
        self._specs: dict[str, TimelinessSpec] = {}
        self._trackers: dict[tuple[str, str], TimelinessTracker] = {}

    def add(self, spec: TimelinessSpec) -> None:
        """Take charge of a promise."""
        self._specs[spec.name] = spec
        if not spec.mailbox.shed_path.exists():
            spec.mailbox.write_shed_ratio(0.0)
        if self._watcher is None:
            self._watcher = threading.Thread(target=self._watch, name="slackwater-delay", daemon=True)
            self._watcher.start()

    def has(self, name: str) -> bool:
        """Whether a promise of that name was made in this session."""
        return name in self._specs

    def completeness_trackers_of(self, query_id: str) -> list[TimelinessTracker]:
        """The timeliness promises of one query."""
        return [tracker for (query, _), tracker in self._trackers.items() if query == query_id]

    def on_started(self, query_id: str) -> None:
        """A query that was never here before starts without shedding; a restarted one goes on with its ratio."""
        for spec in self._specs.values():
            if self._snapshot(spec, query_id) is None and not self._live(spec.name):
                spec.mailbox.write_shed_ratio(0.0)

    def on_progress(self, progress: StreamingQueryProgress) -> None:
        """Learn from a committed micro-batch."""
        for key, metrics in progress.observedMetrics.items():
            spec = self._specs.get(key.removeprefix(DELAY_PREFIX)) if key.startswith(DELAY_PREFIX) else None
            if spec is not None:
                self._on_batch(spec, progress, metrics.asDict())

    def on_idle(self, query_id: str, now_ms: float) -> None:
        """Spark looked for rows and found none."""
        for tracker in self.completeness_trackers_of(query_id):
            if tracker.controller.shed_ratio > 0 and tracker.controller.silence(now_ms / 1e3) == 0.0:
                self._publish(tracker)

    def _watch(self) -> None:
        while True:
            time.sleep(_LOOK_S)
            with self._lock:
                overdue = [tracker for tracker in self._trackers.values() if self._is_overdue(tracker)]
            for tracker in overdue:
                # asked without the lock: Spark may be waiting for us in a listener's call
                running = self._running(tracker.query_id)
                with self._lock:
                    if not running:
                        # nothing came after its last batch; the next one will report itself
                        self._unwatched.add((tracker.query_id, tracker.last_batch))
                    elif tracker.controller.overdue(time.time()):
                        self._raise(tracker)

    def _raise(self, tracker: TimelinessTracker) -> None:
        try:
            self._publish(tracker)
        except Exception:
            # the decision after the batch's commit will come all the same
            _log.exception("[shed-ratio-not-raised] query %s; its last shed ratio stays", tracker.query_id)

    def _is_overdue(self, tracker: TimelinessTracker) -> bool:
        watched = (tracker.query_id, tracker.last_batch) not in self._unwatched
        return watched and tracker.controller.overdue_s(time.time()) > 0.0

    def _on_batch(self, spec: TimelinessSpec, progress: StreamingQueryProgress, metrics: dict[str, Any]) -> None:
        query_id = str(progress.id)
        tracker = self._trackers.get((query_id, spec.name))
        if tracker is None or tracker.spec is not spec:
            tracker = TimelinessTracker(spec, query_id)
            tracker.resume(self._snapshot(spec, query_id), progress.batchId)
            self._trackers[query_id, spec.name] = tracker
        self._unwatched.discard((query_id, tracker.last_batch))
        arrival_us = metrics["mean_arrival_us"]
        batch = MicroBatch(
            started_s=self._parse_ms(progress.timestamp) / 1e3,
            duration_s=progress.durationMs.get("triggerExecution", 0) / 1e3,
            rows=metrics["rows"] or 0,
            kept=metrics["kept"] or 0,
            mean_arrival_s=None if arrival_us is None else arrival_us / 1e6,
        )
        decision = tracker.on_batch(progress.batchId, batch, metrics["shed_ratio"] or 0.0)
        if decision is None:
            return
        # the ratio first: the next micro-batch may be about to read it
        self._publish(tracker)
        if decision.warning is not None:
            _log.warning("%s (promise %r)", decision.warning, spec.name)
        replace(spec.mailbox.snapshot_path(query_id), json.dumps(tracker.snapshot()))

    def _publish(self, decided_now: TimelinessTracker) -> None:
        # a query that has just ended counts too: what its last micro-batch decided is there when it starts again
        trackers = [decided_now, *self._live(decided_now.spec.name)]
        decided_now.spec.mailbox.write_shed_ratio(max(tracker.controller.shed_ratio for tracker in trackers))

    def _live(self, name: str) -> list[TimelinessTracker]:
        active = self._active()
        return [tracker for (query, promise), tracker in self._trackers.items() if promise == name and query in active]

    def _snapshot(self, spec: TimelinessSpec, query_id: str) -> dict[str, Any] | None:
        try:
            snapshot = json.loads(spec.mailbox.snapshot_path(query_id).read_text())
        except (FileNotFoundError, json.JSONDecodeError):
            return None
        return snapshot if isinstance(snapshot, dict) else None
