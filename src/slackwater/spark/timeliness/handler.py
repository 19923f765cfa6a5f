"""Keeps the timeliness promises of a session: committed micro-batches in, shed ratios out."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

from pyspark.sql.streaming.listener import StreamingQueryProgress

from slackwater.control.shedding.microbatch import MicroBatch, ShedDecision
from slackwater.spark.runtime.handler import PromiseHandler, PromiseReport, SeriesEntry, SeriesOf
from slackwater.spark.runtime.progress import committed_ms, duration_s, parse_ms, query_name, sources_moved
from slackwater.spark.runtime.queries import RunningQueries
from slackwater.spark.runtime.read_check import ReadCheck
from slackwater.spark.runtime.source_lag import SourceLag, source_lag, user_sources
from slackwater.spark.runtime.starting import no_real_time_mode
from slackwater.spark.timeliness.overdue_watch import OverdueWatch
from slackwater.spark.timeliness.report import TimelinessReport, timeliness_report_of
from slackwater.spark.timeliness.tracker import BatchOutcome, TimelinessSpec, TimelinessTracker, decide_together
from slackwater.spark.worker.mailbox import ABOUT
from slackwater.watching.point import Point
from slackwater.watching.series import About

DELAY_PREFIX = "slackwater-delay:"
_log = logging.getLogger("slackwater")


class TimelinessHandler(PromiseHandler[TimelinessSpec]):
    """One tracker per promise and query. Queries that share a promise share the highest of their shed ratios."""

    kind = "timeliness"
    metrics_prefix = DELAY_PREFIX
    order = 0  # the next micro-batch of a query that is behind reads its shed ratio at once

    def __init__(self, queries: RunningQueries, lock: AbstractContextManager[Any]) -> None:
        super().__init__(queries, lock)
        self._trackers: dict[tuple[str, str], TimelinessTracker] = {}
        self._read_check = ReadCheck()
        self._beginning: set[str] = set()
        self._overdue_watch = OverdueWatch(self._trackers, queries.is_busy, self._publish, lock)

    def add(self, spec: TimelinessSpec) -> None:
        super().add(spec)
        if spec.mailbox.read_shed_row() is None:
            spec.mailbox.write_shed_ratio(0.0)
        about = {"promise": spec.name, "kind": self.kind, "promised_delay_s": spec.timeliness.max_delay_s}
        spec.mailbox.storage.write(ABOUT, json.dumps(about))
        self._overdue_watch.start()

    def on_started(self, query_id: str) -> None:
        if DELAY_PREFIX in self._queries.real_time_plan(query_id):
            # Spark would run it: with micro-batches of minutes, after which most rows would be shed.
            refused = no_real_time_mode(
                "rows are shed from micro-batch to micro-batch, and one of real-time mode is long"
            )
            _log.error("query %s: %s", query_id, refused)
            self._queries.stop(query_id)
        self._beginning.add(query_id)
        # A query that is new starts without shedding; a restarted one continues with its ratio.
        for spec in self._specs.values():
            if self._live(spec.name):
                continue
            snapshot = spec.mailbox.read_snapshot(query_id)
            row = None if snapshot is None else snapshot.get("shed_row")
            if row is None:
                spec.mailbox.write_shed_ratio(0.0)
            else:
                spec.mailbox.write_shed_row(row)

    def on_progress(self, progress: StreamingQueryProgress) -> list[SeriesEntry]:
        entries = []
        observed, run_begins = list(self._observed(progress)), str(progress.id) in self._beginning
        self._beginning.discard(str(progress.id))
        for tracker in self._trackers_of(str(progress.id)):
            if all(tracker.spec is not spec for spec, _ in observed):
                tracker.skip_batch(progress.batchId, had_rows=False)
        seen = [
            found
            for spec, metrics in observed
            if (found := self._seen(spec, metrics, progress, run_begins)) is not None
        ]
        for one, decision in zip(seen, _decisions(seen), strict=True):
            tracker, source = one.tracker, one.source
            description = None if source is None else source.description
            outcome = tracker.on_batch(
                progress.batchId, one.batch, one.shed_ratio, decision, description, misread=one.misread
            )
            # The ratio first: the next micro-batch may be about to read it.
            self._publish_one(tracker)
            self._warn(tracker, outcome)
            self._save(tracker)
            entries.append(_entry(tracker, outcome, progress, source))
        self._publish_to_idle([one.tracker for one in seen], str(progress.id))
        return entries

    def _seen(
        self, spec: TimelinessSpec, metrics: dict[str, Any], progress: StreamingQueryProgress, run_begins: bool
    ) -> _Seen | None:
        """What a micro-batch says about one promise; None if it is a repeated one, or was not run."""
        tracker, rows = self._tracker(spec, progress), metrics["rows"] or 0
        if run_begins and _not_run(progress, rows):
            tracker.skip_batch(progress.batchId, had_rows=True)
            self._save(tracker)
            return None
        self._overdue_watch.resume(tracker)
        self._read_target(tracker)
        if progress.batchId <= tracker.last_batch:
            return None
        if spec.shed_by is not None:
            tracker.utilities.observe((cell["item"], cell["count"]) for cell in metrics["utilities"] or [])
        source = source_lag(progress, rows)
        batch = _micro_batch(progress, metrics, source, limited=bool(spec.limits))
        misread = self._read_check.misread(progress, spec.flow, user_sources(progress.sources), batch.rows)
        return _Seen(tracker, batch, source, metrics["shed_ratio"] or 0.0, misread)

    def _publish_to_idle(self, seen: list[TimelinessTracker], query_id: str) -> None:
        """Put a common decision in force for streams without rows in this micro-batch; Spark does not report them."""
        for tracker in self._trackers_of(query_id):
            if all(tracker is not one for one in seen) and any(tracker.controller is one.controller for one in seen):
                self._publish_one(tracker)

    def _save(self, tracker: TimelinessTracker) -> None:
        mailbox = tracker.spec.mailbox
        mailbox.write_snapshot(tracker.query_id, {**tracker.snapshot(), "shed_row": mailbox.read_shed_row()})

    def _read_target(self, tracker: TimelinessTracker) -> None:
        warning = tracker.retarget(tracker.spec.mailbox.read_target())
        if warning is not None:
            _log.warning("%s (promise %r)", warning, tracker.spec.name)

    def _warn(self, tracker: TimelinessTracker, outcome: BatchOutcome) -> None:
        if outcome.decision.warning is not None:
            _log.warning("%s (promise %r)", outcome.decision.warning, tracker.spec.name)
        if outcome.limit is not None and not tracker.limit_warned:
            tracker.limit_warned = True
            _log.warning("%s (promise %r)", limit_warning(outcome), tracker.spec.name)

    def on_idle(self, query_id: str, now_ms: float) -> None:
        for tracker in self._trackers_of(query_id):
            if tracker.controller.shed_ratio > 0 and tracker.controller.silence(now_ms / 1e3) == 0.0:
                self._publish(tracker)

    def specs_of(self, query_id: str, name: str | None) -> list[TimelinessSpec]:
        """The promises of a query; with a name, the promise of that name."""
        with self._lock:
            if name is not None:
                return [self._specs[name]] if name in self._specs else []
            return [tracker.spec for tracker in self._reported(query_id)]

    def reports(self, query_id: str, series_of: SeriesOf) -> list[PromiseReport]:
        trackers = self._reported(query_id)
        for tracker in trackers:
            self._read_target(tracker)
        found: list[TimelinessReport] = [
            timeliness_report_of(tracker, series_of(tracker.spec.name, tracker.spec.mailbox)) for tracker in trackers
        ]
        return list(found)

    def _reported(self, query_id: str) -> list[TimelinessTracker]:
        """The promises of a query: as the run before left them, if this one has committed nothing."""
        begins, known = query_id in self._beginning, self._trackers_of(query_id)
        names = set() if begins else {tracker.spec.name for tracker in known}
        before = list(self._trackers_before(query_id, names))
        return before or known if begins else [*known, *before]

    def _trackers_before(self, query_id: str, known: set[str]) -> Iterator[TimelinessTracker]:
        """The other promises of a query by their snapshots; what was committed after those is unreported."""
        for spec in self._specs.values():
            if spec.name not in known and (snapshot := spec.mailbox.read_snapshot(query_id)):
                tracker = TimelinessTracker(spec, query_id)
                tracker.resume(snapshot, max(snapshot["batch"] + 1, self._queries.next_batch(query_id)))
                yield tracker

    def _trackers_of(self, query_id: str) -> list[TimelinessTracker]:
        return [tracker for (query, _), tracker in self._trackers.items() if query == query_id]

    def _tracker(self, spec: TimelinessSpec, progress: StreamingQueryProgress) -> TimelinessTracker:
        query_id = str(progress.id)
        tracker = self._trackers.get((query_id, spec.name))
        if tracker is None or tracker.spec is not spec:
            tracker = TimelinessTracker(spec, query_id)
            tracker.resume(spec.mailbox.read_snapshot(query_id), progress.batchId)
            tracker.share_with(other for other in self._trackers_of(query_id) if other.spec.name != spec.name)
            self._trackers[query_id, spec.name] = tracker
        return tracker

    def _publish(self, decided_now: TimelinessTracker) -> None:
        for tracker in [*self._trackers.values()]:
            if tracker.controller is decided_now.controller:
                self._publish_one(tracker)

    def _publish_one(self, decided_now: TimelinessTracker) -> None:
        # A query that has just ended counts too: its last decision is there when it starts again.
        trackers = [decided_now, *self._live(decided_now.spec.name)]
        ratio = max(tracker.controller.shed_ratio for tracker in trackers)
        threshold = decided_now.threshold(ratio)
        decided_now.spec.mailbox.write_shed_ratio(ratio, threshold.cell, threshold.keep_ratio, threshold.least_ratio)

    def _live(self, name: str) -> list[TimelinessTracker]:
        active = self._queries.active()
        return [tracker for (query, promise), tracker in self._trackers.items() if promise == name and query in active]


@dataclass(frozen=True, slots=True)
class _Seen:
    """A micro-batch of one promise, its source, the shed ratio it ran under, and whether its rows were misread."""

    tracker: TimelinessTracker
    batch: MicroBatch
    source: SourceLag | None
    shed_ratio: float
    misread: bool


def _decisions(seen: list[_Seen]) -> list[ShedDecision]:
    """A decision for each stream; one for all that share a controller."""
    found: dict[str, ShedDecision] = {}
    for first in seen:
        if first.tracker.spec.name not in found:
            group = [one for one in seen if one.tracker.controller is first.tracker.controller]
            decided = decide_together([one.tracker for one in group], [one.batch for one in group])
            found.update((one.tracker.spec.name, decision) for one, decision in zip(group, decided, strict=True))
    return [found[one.tracker.spec.name] for one in seen]


def _not_run(progress: StreamingQueryProgress, rows: int) -> bool:
    """Whether the sink had a repeated micro-batch already, so that Spark did not run it again and nobody saw its rows.

    A micro-batch whose sources had something new, but no row, is taken for one as well, unless it is the very first.
    """
    sources = [source for source in user_sources(progress.sources) if source.startOffset is not None]
    return not rows and sources_moved(sources) and not any(source.numInputRows for source in sources)


def _micro_batch(
    progress: StreamingQueryProgress, metrics: dict[str, Any], source: SourceLag | None, limited: bool
) -> MicroBatch:
    arrival_us, newest_us = metrics["mean_arrival_us"], metrics["newest_arrival_us"]
    return MicroBatch(
        started_s=parse_ms(progress.timestamp) / 1e3,
        duration_s=duration_s(progress),
        rows=metrics["rows"] or 0,
        kept=metrics["kept"] or 0,
        mean_arrival_s=None if arrival_us is None else arrival_us / 1e6,
        waiting_rows=None if source is None else source.waiting_rows,
        # without a limit, old arrivals mean that rows reach the source late: no shorter batch would read them earlier
        newest_arrival_s=newest_us / 1e6 if limited and newest_us is not None else None,
    )


def limit_warning(outcome: BatchOutcome) -> str:
    """What to do if the limit of the source decides the delay."""
    decision = outcome.decision
    return (
        f"[source-limit] {decision.load_per_s or 0.0:,.0f} rows/s arrive, but {outcome.limit} hands over only "
        f"{outcome.batch.rows:,} rows per micro-batch and holds {decision.backlog_rows or 0.0:,.0f} back; the limit "
        "decides the delay, not the processor, so nothing is shed: raise or remove the limit, or shorten the trigger"
    )


def _entry(
    tracker: TimelinessTracker, outcome: BatchOutcome, progress: StreamingQueryProgress, source: SourceLag | None
) -> SeriesEntry:
    """The micro-batch for the promise's history."""
    spec, controller = tracker.spec, tracker.controller
    about = About(
        str(progress.id),
        query_name(progress),
        spec.name,
        "timeliness",
        tracker.target.max_delay_s,
        spec.law.name,
    )
    decision = outcome.decision if outcome.batch.rows else None
    point = Point(
        at_ms=committed_ms(progress),
        batch=progress.batchId,
        ledger=tracker.ledger,
        cause=_cause(controller.shed_ratio, outcome.limit) if decision is not None else "no rows",
        delay_s=None if decision is None else decision.delay_s,
        mean_delay_s=tracker.mean_delay_s,
        target_s=tracker.target.max_delay_s,
        mean_target_s=tracker.mean_target_s,
        shed_ratio=controller.shed_ratio,
        load_per_s=None if decision is None else decision.load_per_s,
        capacity_per_s=None if decision is None else decision.capacity_per_s,
        backlog_rows=None if decision is None else decision.backlog_rows,
        source_lag_rows=None if source is None else source.waiting_rows,
        limit_decides=None if decision is None else decision.limit_decides,
        row_cost_s=controller.cost.cost_s,
        duration_s=duration_s(progress),
    )
    return SeriesEntry(about, spec.mailbox, lambda _last: point)


def _cause(shed_ratio: float, limit: str | None) -> str:
    if limit is not None:
        return f"nothing shed: {limit} decides the delay"
    return "shedding: the load is more than the delay allows" if shed_ratio > 0 else "nothing shed"
