"""Writes the series of every promise of a session, as the listener hears of its micro-batches."""

from __future__ import annotations

import datetime as dt
import logging
from pathlib import Path

from pyspark.sql.streaming.listener import StreamingQueryProgress

from slackwater.control.ledger import Ledger
from slackwater.kernel.standing.shard_counts import ShardCounts
from slackwater.spark.completeness.tracker import CompletenessTracker
from slackwater.spark.runtime.results import results_of
from slackwater.spark.standing.handler import PrecisionSpec
from slackwater.spark.timeliness.tracker import TimelinessTracker
from slackwater.watching.folders import written_to
from slackwater.watching.point import Point
from slackwater.watching.series import About, Kind, Series, Shown
from slackwater.watching.series_file import SeriesWriter, series_path
from slackwater.watching.standing import Standing, cause_of

_log = logging.getLogger("slackwater")


class SeriesRecorder:
    """All series of a session. Not thread-safe by itself: the listener calls it under its lock.

    A micro-batch costs under a millisecond for each promise. If a series cannot be written the promise is kept all
    the same; the failure is logged once.
    """

    def __init__(self) -> None:
        self._writers: dict[tuple[str, str], SeriesWriter] = {}
        self._complained = False

    def on_batch(
        self,
        progress: StreamingQueryProgress,
        trackers: list[CompletenessTracker],
        timeliness_trackers: list[TimelinessTracker],
        told: list[tuple[PrecisionSpec, list[ShardCounts]]],
    ) -> None:
        """Write down what a committed micro-batch did to the promises of its query."""
        try:
            for tracker in trackers:
                self._completeness(tracker, progress)
            for timeliness_tracker in timeliness_trackers:
                self._timeliness(timeliness_tracker, progress)
            for spec, shards in told:
                self._precision(spec, shards, progress)
        except OSError as error:
            self._complain(error)

    def on_idle(self, query_id: str, now_ms: float) -> None:
        """A query looked for rows and found none."""
        for writer in self._of(query_id):
            try:
                writer.saw(now_ms)
            except OSError as error:
                self._complain(error)

    def on_ended(self, query_id: str, failure: str | None) -> None:
        """A query has ended."""
        for writer in self._of(query_id):
            try:
                # the first line says what happened; what follows may be a plan, which is nobody else's business
                writer.end("stopped" if failure is None else f"failed: {failure.strip().splitlines()[0][:200]}")
            except OSError as error:
                self._complain(error)

    def show(self, promise: str, shown: Shown) -> None:
        """Results that a promise's query is publishing."""
        for (_, name), writer in self._writers.items():
            if name == promise and writer.series.ended is None:
                try:
                    writer.show(shown)
                except OSError as error:
                    self._complain(error)

    def forget(self, query_id: str) -> None:
        """A query starts, perhaps anew: its series go on from their files."""
        for key in [key for key in self._writers if key[0] == query_id]:
            del self._writers[key]

    def series_of(self, query_id: str, promise: str) -> Series | None:
        """The series of a promise as it is now."""
        writer = self._writers.get((query_id, promise))
        return None if writer is None else writer.series.copy()

    def series_of_kind(self, query_id: str, kind: Kind) -> list[Series]:
        """All series of one kind that a query has, as they are now."""
        return [writer.series.copy() for writer in self._of(query_id) if writer.series.about.kind == kind]

    def _of(self, query_id: str) -> list[SeriesWriter]:
        return [writer for (query, _), writer in self._writers.items() if query == query_id]

    def _completeness(self, tracker: CompletenessTracker, progress: StreamingQueryProgress) -> None:
        record = tracker.history[-1] if tracker.history else None
        if record is None or record.batch_id != progress.batchId:
            return
        spec = tracker.spec
        about = About(
            str(progress.id),
            _name(progress),
            spec.name,
            "completeness",
            spec.completeness.drop_ratio,
            spec.method.name,
            spec.event_time,
            spec.numeric_order,
        )
        writer = self._writer(about, tracker.spec.mailbox.folder, progress.batchId)
        last, rows = writer.series.last, progress.numInputRows
        said, duration_s = results_of(progress, spec.name), _duration_s(progress)
        writer.add(
            Point(
                at_ms=_committed_ms(progress),
                batch=progress.batchId,
                ledger=record.ledger,
                cause=record.cause,
                heartbeat_ms=record.heartbeat_ms,
                wait_ms=record.wait_ms,
                mean_wait_ms=tracker.mean_wait_ms,
                lateness=record.lateness,
                sources=record.sources,
                row_cost_s=duration_s / rows if rows else None,
                duration_s=duration_s,
                state_rows=sum(operator.numRowsTotal for operator in progress.stateOperators),
                results=said.results + ((last.results or 0) if last else 0),
                late_panes=said.late_panes + ((last.late_panes or 0) if last else 0),
                window_ms=said.window_ms,
            )
        )

    def _timeliness(self, tracker: TimelinessTracker, progress: StreamingQueryProgress) -> None:
        if tracker.last_batch != progress.batchId:
            return
        spec = tracker.spec
        about = About(
            str(progress.id), _name(progress), spec.name, "timeliness", spec.timeliness.max_delay_s, spec.law.name
        )
        writer = self._writer(about, spec.mailbox.folder, progress.batchId)
        record = tracker.history[-1] if tracker.history and tracker.history[-1].batch_id == progress.batchId else None
        decision, duration_s = (None if record is None else record.decision), _duration_s(progress)
        load = None if decision is None else decision.load_per_s
        writer.add(
            Point(
                at_ms=_committed_ms(progress),
                batch=progress.batchId,
                ledger=tracker.ledger,
                cause=_shed_cause(tracker) if record is not None else "no rows",
                delay_s=None if decision is None else decision.delay_s,
                mean_delay_s=tracker.mean_delay_s,
                shed_ratio=tracker.controller.shed_ratio,
                load_per_s=load,
                capacity_per_s=None if decision is None else decision.capacity_per_s,
                # what arrived while the micro-batch ran has not been processed yet
                backlog_rows=None if load is None else load * duration_s,
                row_cost_s=tracker.controller.cost.cost_s,
                duration_s=duration_s,
            )
        )

    def _precision(self, spec: PrecisionSpec, shards: list[ShardCounts], progress: StreamingQueryProgress) -> None:
        about = About(
            str(progress.id), _name(progress), spec.name, "precision", spec.confidence or 0.0, f"{spec.method} deferral"
        )
        writer = self._writer(about, spec.folder, progress.batchId)
        last, told = writer.series.last, ShardCounts.together(shards)
        before = (last.standing if last is not None else None) or Standing()
        writer.add(
            Point(
                at_ms=_committed_ms(progress),
                batch=progress.batchId,
                ledger=Ledger(),
                cause=cause_of(told) if shards else "no rows",
                duration_s=_duration_s(progress),
                state_rows=sum(operator.numRowsTotal for operator in progress.stateOperators),
                standing=before.after(told, whole=len(shards) == spec.shards),
            )
        )

    def _writer(self, about: About, folder: Path, batch: int) -> SeriesWriter:
        key = (about.query_id, about.promise)
        writer = self._writers.get(key)
        if writer is None or writer.series.about != about:
            path = series_path(folder, about.query_id)
            written_to(path.parent)
            writer = self._writers[key] = SeriesWriter(path, about, batch)
        return writer

    def _complain(self, error: OSError) -> None:
        if not self._complained:
            self._complained = True
            _log.warning("[series-not-written] %s; promises are kept all the same, without a history", error)


def _shed_cause(tracker: TimelinessTracker) -> str:
    if tracker.controller.shed_ratio > 0:
        return "shedding: the load is more than the delay allows"
    return "nothing shed"


def _name(progress: StreamingQueryProgress) -> str:
    return progress.name or str(progress.id)[:8]


def _duration_s(progress: StreamingQueryProgress) -> float:
    return float(progress.durationMs.get("triggerExecution", 0)) / 1e3


def _committed_ms(progress: StreamingQueryProgress) -> float:
    started = dt.datetime.fromisoformat(progress.timestamp.replace("Z", "+00:00")).timestamp()
    return (started + _duration_s(progress)) * 1e3
