"""Keeps the completeness promises of a session: observed micro-batches in, published heartbeats out."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from contextlib import AbstractContextManager
from typing import Any

from pyspark.sql.streaming.listener import StreamingQueryProgress

from slackwater.spark.completeness.histogram import Cells, decode_cells
from slackwater.spark.completeness.report import CompletenessReport, completeness_report_of
from slackwater.spark.completeness.source_heartbeats import SOURCE_HEARTBEAT_PREFIX, carried_heartbeats
from slackwater.spark.completeness.tracker import (
    BatchObservation,
    BatchOutcome,
    CompletenessSpec,
    CompletenessTracker,
)
from slackwater.spark.runtime.handler import PromiseHandler, PromiseReport, SeriesEntry, SeriesOf
from slackwater.spark.runtime.progress import committed_ms, duration_s, parse_ms, query_name, state_rows
from slackwater.spark.runtime.queries import RunningQueries
from slackwater.spark.runtime.results import results_of
from slackwater.spark.worker.control_line import UNKNOWN_US, ControlLine
from slackwater.spark.worker.heartbeat_offset import HeartbeatOffset
from slackwater.watching.point import Point
from slackwater.watching.series import About

METRICS_PREFIX = "slackwater:"
_log = logging.getLogger("slackwater")


class CompletenessHandler(PromiseHandler[CompletenessSpec]):
    """One tracker per promise and query. Queries that share a promise share the lowest of their heartbeats."""

    kind = "completeness"
    metrics_prefix = METRICS_PREFIX

    def __init__(self, queries: RunningQueries, lock: AbstractContextManager[Any]) -> None:
        super().__init__(queries, lock)
        self._trackers: dict[tuple[str, str], CompletenessTracker] = {}
        self._ended_snapshots: dict[str, dict[str, Any]] = {}

    def add(self, spec: CompletenessSpec) -> None:
        super().add(spec)
        self._declare_live(spec)

    def on_started(self, query_id: str) -> None:
        for key in [key for key in self._trackers if key[0] == query_id]:
            tracker = self._trackers.pop(key)
            self._ended_snapshots[tracker.epoch] = tracker.snapshot()
        # The heartbeat readers, which start next, look up who else is running.
        for spec in self._specs.values():
            self._declare_live(spec)

    def on_progress(self, progress: StreamingQueryProgress) -> list[SeriesEntry]:
        entries = []
        for spec, metrics in self._observed(progress):
            offset = _start_offset(spec, progress)
            if offset is None:
                continue
            tracker = self._tracker(spec, progress, offset)
            outcome = self._count(tracker, offset, progress, metrics)
            spec.mailbox.write_snapshot(tracker.query_id, tracker.snapshot())
            self._publish(tracker)
            if outcome is not None:
                entries.append(_entry(tracker, outcome, progress))
        return entries

    def on_idle(self, query_id: str, now_ms: float) -> None:
        for tracker in self._trackers_of(query_id):
            tracker.on_idle(now_ms)
            self._publish(tracker)

    def on_ended(self, query_id: str) -> None:
        for spec in self._specs.values():
            self._declare_live(spec)

    def reports(self, query_id: str, series_of: SeriesOf) -> list[PromiseReport]:
        # In the run before, the query may have had a promise of another name: that one is over.
        trackers = self._trackers_of(query_id) or list(self._trackers_before(query_id))
        found: list[CompletenessReport] = [
            completeness_report_of(tracker, series_of(tracker.spec.name, tracker.spec.mailbox.folder))
            for tracker in trackers
        ]
        return list(found)

    def _trackers_before(self, query_id: str) -> Iterator[CompletenessTracker]:
        """The promises of a query that has committed nothing in this run, as the run before left them."""
        for spec in self._specs.values():
            if snapshot := spec.mailbox.read_snapshot(query_id):
                tracker = CompletenessTracker(spec, query_id, epoch="")
                tracker.resume(snapshot, HeartbeatOffset(""), snapshot["batch"] + 1)
                yield tracker

    def _trackers_of(self, query_id: str) -> list[CompletenessTracker]:
        return [tracker for (query, _), tracker in self._trackers.items() if query == query_id]

    def _tracker(
        self, spec: CompletenessSpec, progress: StreamingQueryProgress, offset: HeartbeatOffset
    ) -> CompletenessTracker:
        """The tracker of this promise and query; after a restart a new one, resumed."""
        key = (str(progress.id), spec.name)
        tracker = self._trackers.get(key)
        if tracker is not None and tracker.epoch == offset.epoch and tracker.spec is spec:
            return tracker
        tracker = CompletenessTracker(spec, str(progress.id), offset.epoch)
        snapshot = self._ended_snapshots.pop(offset.epoch, None) or spec.mailbox.read_snapshot(str(progress.id))
        tracker.resume(snapshot, offset, progress.batchId)
        self._trackers[key] = tracker
        if len(self._live(spec.name)) > 1:
            _log.warning(
                "[promise-shared] several queries run under the promise %r and share its heartbeat; "
                "call with_drop_ratio once for each to give each its own",
                spec.name,
            )
        return tracker

    def _count(
        self,
        tracker: CompletenessTracker,
        offset: HeartbeatOffset,
        progress: StreamingQueryProgress,
        metrics: dict[str, Any],
    ) -> BatchOutcome | None:
        """Count the rows of a micro-batch, unless another heartbeat than the query's own judged them."""
        spec = tracker.spec
        control = ControlLine.of(metrics["control_us"])
        reference_ms = _known_ms(control.reference_us)
        cells = decode_cells(
            ((cell["item"], cell["count"]) for cell in metrics["cells"] or []),
            bool(spec.sources),
            metrics.get("rows"),
            control.sample_from_us - (0 if reference_ms is None else control.reference_us),
        )
        if cells.rows and _judged_by_an_older(offset, reference_ms):
            tracker.skip_batch(progress.batchId)
            _log.warning(
                "[promise-folder-lost] batch %s of query %s was repeated after a crash, and the folder of its promise "
                "%r (%s) is missing or older than the checkpoint; its rows are in no count, and late ones may be in no "
                "result: keep the folder with the checkpoint",
                progress.batchId,
                progress.id,
                spec.name,
                spec.mailbox.folder,
            )
            return None
        return tracker.on_batch(_observation(spec, offset, control, cells, progress, metrics))

    def _publish(self, decided_now: CompletenessTracker) -> None:
        """Offer the policies of all live queries of the promise, before their next micro-batches.

        A query that has just ended counts too: what its last micro-batch decided is there when it starts again.
        """
        spec = decided_now.spec
        live = [decided_now, *(tracker for tracker in self._live(spec.name) if tracker is not decided_now)]
        spec.mailbox.publish(
            {tracker.epoch: tracker.policy for tracker in live if tracker.policy is not None},
            decided_now.sample_cells,
            {tracker.epoch: tracker.checkpoint_state() for tracker in live},
        )

    def _live(self, name: str) -> list[CompletenessTracker]:
        active = self._queries.active()
        return [tracker for (query, promise), tracker in self._trackers.items() if promise == name and query in active]

    def _declare_live(self, spec: CompletenessSpec) -> None:
        spec.mailbox.declare_live([tracker.epoch for tracker in self._live(spec.name)])


def _start_offset(spec: CompletenessSpec, progress: StreamingQueryProgress) -> HeartbeatOffset | None:
    """Where the promise's heartbeat stream stood when the batch began; None if the query does not read it."""
    for source in progress.sources:
        for text in (source.startOffset, source.endOffset):
            try:
                offset = HeartbeatOffset.from_json(json.loads(text))
            except (TypeError, KeyError, json.JSONDecodeError):
                continue  # the offset of another source
            if spec.mailbox.was_announced(offset.epoch):
                return offset
    return None


def _judged_by_an_older(offset: HeartbeatOffset, reference_ms: float | None) -> bool:
    """Whether the rows were judged by less than the heartbeat that the micro-batch began with.

    The heartbeat reader prevents it, but Spark does not call the reader before it repeats a micro-batch.
    """
    own_ms = offset.heartbeat_ms
    return own_ms is not None and (reference_ms is None or reference_ms < own_ms)


def _observation(
    spec: CompletenessSpec,
    offset: HeartbeatOffset,
    control: ControlLine,
    cells: Cells,
    progress: StreamingQueryProgress,
    metrics: dict[str, Any],
) -> BatchObservation:
    reported_at_ms = parse_ms(progress.timestamp)
    clock_ms, reference_ms = _ms(metrics.get("clock_us")), _known_ms(control.reference_us)
    # Queries that share a promise are judged by its highest heartbeat, which is then the reference of their histograms.
    own_ms = None if offset.heartbeat_ms is None else float(offset.heartbeat_ms)
    judging_ms = own_ms if own_ms is None or reference_ms is None else reference_ms
    carried = progress.observedMetrics.get(SOURCE_HEARTBEAT_PREFIX + spec.name)
    return BatchObservation(
        batch_id=progress.batchId,
        heartbeat_ms=judging_ms,
        reference_ms=reference_ms,
        chosen_at_ms=_known_ms(control.chosen_at_us),
        decided_at_ms=_known_ms(control.decided_at_us),
        began_ms=_ms(metrics.get("began_us")),
        clock_ms=reported_at_ms if clock_ms is None else clock_ms,
        cells=cells,
        reported_at_ms=reported_at_ms,
        took_ms=1e3 * duration_s(progress),
        state_rows=state_rows(progress),
        source_names={
            named["source"]: named["name"] for key in ("oldest", "any_one") if (named := metrics.get(key)) is not None
        },
        source_heartbeats_ms=carried_heartbeats(None if carried is None else carried.asDict()),
    )


def _entry(tracker: CompletenessTracker, outcome: BatchOutcome, progress: StreamingQueryProgress) -> SeriesEntry:
    """The micro-batch for the promise's history."""
    spec = tracker.spec
    about = About(
        str(progress.id),
        query_name(progress),
        spec.name,
        "completeness",
        spec.completeness.drop_ratio,
        spec.method.name,
        spec.event_time,
        spec.numeric_order,
    )
    published, rows = results_of(progress, spec.name), progress.numInputRows
    mean_wait_ms = tracker.mean_wait_ms

    def point_after(last: Point | None) -> Point:
        return Point(
            at_ms=committed_ms(progress),
            batch=progress.batchId,
            ledger=outcome.ledger,
            cause=outcome.cause,
            heartbeat_ms=outcome.heartbeat_ms,
            wait_ms=outcome.wait_ms,
            mean_wait_ms=mean_wait_ms,
            lateness=outcome.lateness,
            sources=outcome.sources,
            row_cost_s=duration_s(progress) / rows if rows else None,
            duration_s=duration_s(progress),
            state_rows=state_rows(progress),
            results=published.results + ((last.results or 0) if last else 0),
            late_panes=published.late_panes + ((last.late_panes or 0) if last else 0),
            window_ms=published.window_ms,
        )

    return SeriesEntry(about, spec.mailbox.folder, point_after)


def _ms(us: int | None) -> float | None:
    return None if us is None else us / 1000.0


def _known_ms(us: int) -> float | None:
    return us / 1000.0 if us > UNKNOWN_US else None
