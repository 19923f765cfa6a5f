"""Threads that count unreported micro-batches again, while their queries go on."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

from slackwater.spark.completeness.tracker import CompletenessTracker

_log = logging.getLogger("slackwater")


class RecountThreads:
    """One thread per tracker with unreported micro-batches. Each micro-batch is tried once in a run.

    A thread takes ``lock`` to change and ``save`` a tracker, and only if it is still ``in_force``.
    """

    def __init__(
        self,
        lock: AbstractContextManager[Any],
        in_force: Callable[[CompletenessTracker], bool],
        save: Callable[[CompletenessTracker], None],
    ) -> None:
        self._lock = lock
        self._in_force = in_force
        self._save = save
        self._tried: dict[tuple[str, str], set[int]] = {}
        self._threads: dict[str, list[threading.Thread]] = {}

    def begin(self, tracker: CompletenessTracker, checkpoint: str | None, position: int) -> None:
        """Count what the tracker is missing, unless it was tried before. ``position`` is that of its heartbeats."""
        tried = self._tried.setdefault((tracker.query_id, tracker.spec.name), set())
        batches = [batch for batch in tracker.unreported if batch not in tried]
        if not batches or checkpoint is None or tracker.spec.recount is None:
            return
        tried.update(batches)
        thread = threading.Thread(target=self._count, args=(tracker, checkpoint, position, batches), daemon=True)
        self._threads.setdefault(tracker.query_id, []).append(thread)
        thread.start()

    def forget(self, query_id: str) -> None:
        """A new run of the query begins."""
        self._tried = {key: batches for key, batches in self._tried.items() if key[0] != query_id}
        self._threads.pop(query_id, None)

    def join(self, query_id: str, timeout_s: float) -> None:
        """Return once all that can be counted is counted, or after the timeout."""
        for thread in list(self._threads.get(query_id, [])):
            thread.join(timeout_s)

    def _count(self, tracker: CompletenessTracker, checkpoint: str, position: int, batches: list[int]) -> None:
        spec = tracker.spec
        assert spec.recount is not None
        for batch in batches:
            try:
                counted = spec.recount.count(spec, checkpoint, batch, position)
            except Exception as error:
                why = str(error).partition("\n")[0]
                _log.warning(
                    "[batch-not-counted] batch %s of query %s was committed but not reported, and cannot be counted "
                    "again: %s; its rows are in no count of the promise %r",
                    batch,
                    tracker.query_id,
                    why,
                    spec.name,
                )
                continue
            with self._lock:
                if not self._in_force(tracker):
                    return
                tracker.on_recount(batch, counted)
                self._save(tracker)
