"""The supervisor's desk for timeliness promises: who sheds how much."""

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
from slackwater.spark.delay_keeper import DelayKeeper, DelaySpec
from slackwater.spark.exchange import replace

DELAY_PREFIX = "slackwater-delay:"
_LOOK_S = 0.1
_log = logging.getLogger("slackwater")


class DelayDesk:
    """All timeliness promises of a session. Not thread-safe by itself: the supervisor calls it under its lock.

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
        self._specs: dict[str, DelaySpec] = {}
        self._keepers: dict[tuple[str, str], DelayKeeper] = {}

    def add(self, spec: DelaySpec) -> None:
        """Take charge of a promise."""
        self._specs[spec.name] = spec
        if not spec.exchange.shed_path.exists():
            spec.exchange.shed_by(0.0)
        if self._watcher is None:
            self._watcher = threading.Thread(target=self._watch, name="slackwater-delay", daemon=True)
            self._watcher.start()

    def has(self, name: str) -> bool:
        """Whether a promise of that name was made in this session."""
        return name in self._specs

    def keepers_of(self, query_id: str) -> list[DelayKeeper]:
        """The timeliness promises of one query."""
        return [keeper for (query, _), keeper in self._keepers.items() if query == query_id]

    def on_started(self, query_id: str) -> None:
        """A query that was never here before starts without shedding; a restarted one goes on with its ratio."""
        for spec in self._specs.values():
            if self._snapshot(spec, query_id) is None and not self._live(spec.name):
                spec.exchange.shed_by(0.0)

    def on_progress(self, progress: StreamingQueryProgress) -> None:
        """Learn from a committed micro-batch."""
        for key, metrics in progress.observedMetrics.items():
            spec = self._specs.get(key.removeprefix(DELAY_PREFIX)) if key.startswith(DELAY_PREFIX) else None
            if spec is not None:
                self._on_batch(spec, progress, metrics.asDict())

    def on_idle(self, query_id: str, now_ms: float) -> None:
        """Spark looked for rows and found none."""
        for keeper in self.keepers_of(query_id):
            if keeper.controller.shed_ratio > 0 and keeper.controller.silence(now_ms / 1e3) == 0.0:
                self._publish(keeper)

    def _watch(self) -> None:
        while True:
            time.sleep(_LOOK_S)
            with self._lock:
                overdue = [keeper for keeper in self._keepers.values() if self._is_overdue(keeper)]
            for keeper in overdue:
                # asked without the lock: Spark may be waiting for us in a listener's call
                running = self._running(keeper.query_id)
                with self._lock:
                    if not running:
                        # nothing came after its last batch; the next one will report itself
                        self._unwatched.add((keeper.query_id, keeper.last_batch))
                    elif keeper.controller.overdue(time.time()):
                        self._raise(keeper)

    def _raise(self, keeper: DelayKeeper) -> None:
        try:
            self._publish(keeper)
        except Exception:
            # the decision after the batch's commit will come all the same
            _log.exception("[shed-ratio-not-raised] query %s; its last shed ratio stays", keeper.query_id)

    def _is_overdue(self, keeper: DelayKeeper) -> bool:
        watched = (keeper.query_id, keeper.last_batch) not in self._unwatched
        return watched and keeper.controller.overdue_s(time.time()) > 0.0

    def _on_batch(self, spec: DelaySpec, progress: StreamingQueryProgress, metrics: dict[str, Any]) -> None:
        query_id = str(progress.id)
        keeper = self._keepers.get((query_id, spec.name))
        if keeper is None or keeper.spec is not spec:
            keeper = DelayKeeper(spec, query_id)
            keeper.resume(self._snapshot(spec, query_id), progress.batchId)
            self._keepers[query_id, spec.name] = keeper
        self._unwatched.discard((query_id, keeper.last_batch))
        arrival_us = metrics["mean_arrival_us"]
        batch = MicroBatch(
            started_s=self._parse_ms(progress.timestamp) / 1e3,
            duration_s=progress.durationMs.get("triggerExecution", 0) / 1e3,
            rows=metrics["rows"] or 0,
            kept=metrics["kept"] or 0,
            mean_arrival_s=None if arrival_us is None else arrival_us / 1e6,
        )
        decision = keeper.on_batch(progress.batchId, batch, metrics["shed_ratio"] or 0.0)
        if decision is None:
            return
        # the ratio first: the next micro-batch may be about to read it
        self._publish(keeper)
        if decision.warning is not None:
            _log.warning("%s (promise %r)", decision.warning, spec.name)
        replace(spec.exchange.snapshot_path(query_id), json.dumps(keeper.snapshot()))

    def _publish(self, decided_now: DelayKeeper) -> None:
        # a query that has just ended counts too: what its last micro-batch decided is there when it starts again
        keepers = [decided_now, *self._live(decided_now.spec.name)]
        decided_now.spec.exchange.shed_by(max(keeper.controller.shed_ratio for keeper in keepers))

    def _live(self, name: str) -> list[DelayKeeper]:
        active = self._active()
        return [keeper for (query, promise), keeper in self._keepers.items() if promise == name and query in active]

    def _snapshot(self, spec: DelaySpec, query_id: str) -> dict[str, Any] | None:
        try:
            snapshot = json.loads(spec.exchange.snapshot_path(query_id).read_text())
        except (FileNotFoundError, json.JSONDecodeError):
            return None
        return snapshot if isinstance(snapshot, dict) else None
