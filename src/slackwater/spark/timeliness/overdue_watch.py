"""Looks for micro-batches that take longer than expected, and raises the shed ratio of the next one."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from typing import Any

from slackwater.spark.timeliness.tracker import TimelinessTracker

_PERIOD_S = 0.1
_log = logging.getLogger("slackwater")


class OverdueWatch:
    """A thread that looks ten times a second for overdue micro-batches; it asks Spark only about those.

    :param trackers: all trackers of the handler, shared with it.
    :param is_busy: whether a query is processing rows. Called without the lock, since Spark may be waiting for the
        listener at that moment.
    :param publish: puts a tracker's shed ratio in force.
    :param lock: the listener's lock.
    """

    def __init__(
        self,
        trackers: Mapping[tuple[str, str], TimelinessTracker],
        is_busy: Callable[[str], bool],
        publish: Callable[[TimelinessTracker], None],
        lock: AbstractContextManager[Any],
    ) -> None:
        self._trackers = trackers
        self._is_busy = is_busy
        self._publish = publish
        self._lock = lock
        self._thread: threading.Thread | None = None
        self._suspended: set[tuple[str, int]] = set()

    def start(self) -> None:
        """Start the thread, if it is not running."""
        if self._thread is None:
            self._thread = threading.Thread(target=self._watch, name="slackwater-overdue", daemon=True)
            self._thread.start()

    def resume(self, tracker: TimelinessTracker) -> None:
        """Watch a query again: a micro-batch has followed the one after which it was idle."""
        self._suspended.discard((tracker.query_id, tracker.last_batch))

    def _watch(self) -> None:
        while True:
            time.sleep(_PERIOD_S)
            with self._lock:
                overdue = [tracker for tracker in self._trackers.values() if self._is_overdue(tracker)]
            for tracker in overdue:
                busy = self._is_busy(tracker.query_id)
                with self._lock:
                    if not busy:
                        # The query is idle after its last batch; the next batch will report itself.
                        self._suspended.add((tracker.query_id, tracker.last_batch))
                    elif tracker.controller.overdue(time.time()):
                        self._raise_ratio(tracker)

    def _is_overdue(self, tracker: TimelinessTracker) -> bool:
        watched = (tracker.query_id, tracker.last_batch) not in self._suspended
        return watched and tracker.controller.overdue_s(time.time()) > 0.0

    def _raise_ratio(self, tracker: TimelinessTracker) -> None:
        try:
            self._publish(tracker)
        except Exception:
            # The thread must live on; the decision after the batch's commit comes all the same.
            _log.exception("[shed-ratio-not-raised] query %s; its last shed ratio stays", tracker.query_id)
