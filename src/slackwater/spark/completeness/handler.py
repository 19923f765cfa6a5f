"""Keeps the completeness promises of a session: observed micro-batches in, published heartbeats out."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import Any

from pyspark.sql.streaming.listener import SourceProgress, StreamingQueryProgress

from slackwater.spark.completeness.batches import BatchObservation, BatchOutcome
from slackwater.spark.completeness.histogram import Cells, decode_cells
from slackwater.spark.completeness.lateness import decode_lateness
from slackwater.spark.completeness.problem_rows import problem_rows_of
from slackwater.spark.completeness.recount_threads import RecountThreads
from slackwater.spark.completeness.report import CompletenessReport, completeness_report_of
from slackwater.spark.completeness.source_heartbeats import SOURCE_HEARTBEAT_PREFIX, carried_heartbeats
from slackwater.spark.completeness.tracker import CompletenessSpec, CompletenessTracker
from slackwater.spark.runtime.handler import PromiseHandler, PromiseReport, SeriesEntry, SeriesOf
from slackwater.spark.runtime.progress import (
    committed_ms,
    duration_s,
    parse_ms,
    query_name,
    sources_moved,
    state_rows,
)
from slackwater.spark.runtime.queries import RunningQueries
from slackwater.spark.runtime.read_check import ReadCheck
from slackwater.spark.runtime.results import late_in_slack, results_of
from slackwater.spark.runtime.row_flow import RowFlow
from slackwater.spark.runtime.source_lag import waiting_rows
from slackwater.spark.worker.control_line import NEVER_US, UNKNOWN_US, ControlLine
from slackwater.spark.worker.control_row_file import ControlRowFile
from slackwater.spark.worker.heartbeat_offset import HeartbeatOffset
from slackwater.spark.worker.heartbeat_source import BELOW_MS
from slackwater.spark.worker.mailbox import Offer
from slackwater.watching.point import Point
from slackwater.watching.series import About

METRICS_PREFIX = "slackwater:"
_log = logging.getLogger("slackwater")


class CompletenessHandler(PromiseHandler[CompletenessSpec]):
    """One tracker per promise and query. Each query under a promise has a heartbeat and a ledger of its own."""

    kind = "completeness"
    metrics_prefix = METRICS_PREFIX

    def __init__(self, queries: RunningQueries, lock: AbstractContextManager[Any]) -> None:
        super().__init__(queries, lock)
        self._trackers: dict[tuple[str, str], CompletenessTracker] = {}
        self._ended_snapshots: dict[str, dict[str, Any]] = {}
        self._read_check = ReadCheck()
        self._checkpoints: dict[str, str | None] = {}
        self._recounts = RecountThreads(lock, self._in_force, _save)

    def on_started(self, query_id: str) -> None:
        self._checkpoints[query_id] = self._queries.checkpoint_of(query_id)
        self._recounts.forget(query_id)
        for key in [key for key in self._trackers if key[0] == query_id]:
            tracker = self._trackers.pop(key)
            self._ended_snapshots[tracker.epoch] = tracker.snapshot()
        for spec in self._specs.values():
            _restore(spec, query_id)

    def on_progress(self, progress: StreamingQueryProgress) -> list[SeriesEntry]:
        entries = []
        for spec, metrics in self._observed(progress):
            started = _start_offset(spec, progress)
            if started is None:
                continue
            position, offset = started
            tracker = self._tracker(spec, progress, offset)
            rows_before = tracker.ledger.input
            outcome = self._count(tracker, position, offset, progress, metrics)
            _publish(tracker)
            _save(tracker)
            self._recounts.begin(tracker, self._checkpoints.get(tracker.query_id), position)
            if outcome is not None:
                after = progress.sources[position + 1 :][: None if spec.flow is None else spec.flow.sources]
                lag_rows = waiting_rows(after, outcome.ledger.input - rows_before)
                entries.append(_entry(tracker, outcome, progress, problem_rows_of(metrics), lag_rows))
        return entries

    def on_idle(self, query_id: str, now_ms: float) -> None:
        for tracker in self._trackers_of(query_id):
            tracker.on_idle(now_ms)
            _publish(tracker)

    def end_stream(self, query_id: str) -> None:
        for tracker in self._trackers_of(query_id) or self._resumed_trackers(query_id):
            tracker.end_stream()
            _publish(tracker)

    def _resumed_trackers(self, query_id: str) -> list[CompletenessTracker]:
        """The trackers of a query that has committed nothing in this run; they go on from the run before."""
        for spec in self._specs.values():
            snapshot = spec.mailbox.read_snapshot(query_id)
            if snapshot is not None and "epoch" in snapshot:
                tracker = CompletenessTracker(spec, query_id, snapshot["epoch"])
                tracker.resume(snapshot, HeartbeatOffset(tracker.epoch), snapshot["batch"] + 1)
                self._trackers[query_id, spec.name] = tracker
        return self._trackers_of(query_id)

    def await_recounts(self, query_id: str, timeout_s: float) -> None:
        self._recounts.join(query_id, timeout_s)

    def reports(self, query_id: str, series_of: SeriesOf) -> list[PromiseReport]:
        # In the run before, the query may have had a promise of another name: that one is over.
        trackers = self._trackers_of(query_id) or list(self._trackers_before(query_id))
        found: list[CompletenessReport] = [
            completeness_report_of(tracker, series_of(tracker.spec.name, tracker.spec.mailbox)) for tracker in trackers
        ]
        return list(found)

    def _trackers_before(self, query_id: str) -> Iterator[CompletenessTracker]:
        """The promises of a query that has committed nothing in this run, as the run before left them.

        What that run committed and did not report is unreported until the first micro-batch of this one.
        """
        for spec in self._specs.values():
            if snapshot := spec.mailbox.read_snapshot(query_id):
                tracker = CompletenessTracker(spec, query_id, epoch="")
                next_batch = max(snapshot["batch"] + 1, self._queries.next_batch(query_id))
                tracker.resume(snapshot, HeartbeatOffset(""), next_batch)
                yield tracker

    def _in_force(self, tracker: CompletenessTracker) -> bool:
        return self._trackers.get((tracker.query_id, tracker.spec.name)) is tracker

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
        return tracker

    def _count(
        self,
        tracker: CompletenessTracker,
        position: int,
        offset: HeartbeatOffset,
        progress: StreamingQueryProgress,
        metrics: dict[str, Any],
    ) -> BatchOutcome | None:
        """Count the rows of a micro-batch, unless another heartbeat than its own judged them."""
        spec = tracker.spec
        if metrics["control_us"] is None and sources_moved(_sources_of(progress, spec.flow, position)):
            tracker.miss_batch(progress.batchId)
            return None
        control = _control_line(metrics, offset, tracker, progress)
        reference_ms = _known_ms(control.reference_us)
        cells = decode_cells(
            ((cell["item"], cell["count"]) for cell in metrics["cells"] or []),
            bool(spec.sources),
            metrics.get("rows"),
            control.sample_from_us - (0 if reference_ms is None else control.reference_us),
        )
        if cells.rows and not _judged_by_its_own(offset, control, progress):
            tracker.skip_batch(progress.batchId)
            _log.warning(
                "[promise-folder-lost] batch %s of query %s was repeated after a crash, and the folder of its promise "
                "%r (%s) is missing or older than the checkpoint; its rows are in no count, and late ones may be in no "
                "result: keep the folder with the checkpoint",
                progress.batchId,
                progress.id,
                spec.name,
                spec.mailbox.storage.uri,
            )
            return None
        observed = _observation(spec, offset, control, cells, progress, metrics)
        sources = _sources_of(progress, spec.flow, position)
        misread = self._read_check.misread(progress, spec.flow, sources, cells.rows + cells.invalid)
        if misread and not tracker.ledger.misread_batches:
            _log.warning(
                "[batch-misread] batch %s of query %s was read in part or more than once, so the ledger of its promise "
                "%r is not exact: in foreachBatch, persist the batch before it is used; before Spark 4.3 a lost "
                "executor has the same effect",
                progress.batchId,
                progress.id,
                spec.name,
            )
        return tracker.on_batch(replace(observed, misread=misread))


def _publish(tracker: CompletenessTracker) -> None:
    """Offer the tracker's policy before the query's next micro-batch, or for its next start."""
    tracker.spec.mailbox.publish(tracker.epoch, tracker.policy, tracker.sample_cells, tracker.checkpoint_state())


def _save(tracker: CompletenessTracker) -> None:
    """Keep what the tracker has learned, and its last decision for the next start of the query."""
    mailbox = tracker.spec.mailbox
    offered = mailbox.read_offer(tracker.epoch)
    offer = None if offered is None else offered.as_json()
    mailbox.write_snapshot(tracker.query_id, {**tracker.snapshot(), "epoch": tracker.epoch, "offer": offer})


def _restore(spec: CompletenessSpec, query_id: str) -> None:
    """Put the last decision for a query that starts again where its heartbeat reader looks for it.

    Where micro-batches read the control row from a file, put its line back as well: Spark calls no heartbeat reader
    before it repeats a micro-batch, and another query may have used the file since.
    """
    snapshot = spec.mailbox.read_snapshot(query_id)
    epoch = None if snapshot is None else snapshot.get("epoch")
    if snapshot is None or epoch is None:
        return
    if snapshot["offer"] is not None and spec.mailbox.read_offer(epoch) is None:
        offer = Offer.from_json(epoch, snapshot["offer"])
        spec.mailbox.publish(epoch, offer.policy, offer.sample_cells, offer.state)
    line, row = spec.mailbox.control.read(epoch), ControlRowFile(spec.mailbox.folder)
    if line is not None and row.path.exists():
        row.restore(line)


def _start_offset(spec: CompletenessSpec, progress: StreamingQueryProgress) -> tuple[int, HeartbeatOffset] | None:
    """The position of the promise's heartbeat source and its offset at the start of the batch.

    None if the query does not read that source.
    """
    for position, source in enumerate(progress.sources):
        for text in (source.startOffset, source.endOffset):
            try:
                offset = HeartbeatOffset.from_json(json.loads(text))
            except (TypeError, KeyError, json.JSONDecodeError):
                continue  # the offset of another source
            if offset.promise == spec.name or spec.mailbox.control.has(offset.epoch):
                return position, offset
    return None


def _sources_of(progress: StreamingQueryProgress, flow: RowFlow | None, position: int) -> list[SourceProgress]:
    """The sources of the events, which come after that of the heartbeat; none if their number is not known."""
    return [] if flow is None else progress.sources[position + 1 : position + 1 + flow.sources]


def _control_line(
    metrics: dict[str, Any], offset: HeartbeatOffset, tracker: CompletenessTracker, progress: StreamingQueryProgress
) -> ControlLine:
    """The line that judged a micro-batch; without rows it is not observed, and follows from where the batch began."""
    if metrics["control_us"] is not None:
        return ControlLine.of(metrics["control_us"])
    if tracker.follows_rows:
        return ControlLine.for_batch(_watermark_heartbeat_ms(progress)).in_room(None)
    return ControlLine.for_batch(
        offset.heartbeat_ms, offset.clock_ms, offset.sample_cells, offset.clock_ms, offset.decided_at_ms
    )


def _judged_by_its_own(offset: HeartbeatOffset, control: ControlLine, progress: StreamingQueryProgress) -> bool:
    """Whether the rows were judged by Spark's watermark.

    Where rows do not raise the heartbeat, that is the one that the micro-batch began with. The heartbeat reader sees to
    it, but Spark does not call the reader before it repeats a micro-batch.
    """
    watermark_ms = _watermark_heartbeat_ms(progress) if control.follows_rows else offset.heartbeat_ms
    return control.heartbeat_us == ControlLine.for_batch(watermark_ms).heartbeat_us


def _watermark_heartbeat_ms(progress: StreamingQueryProgress) -> int | None:
    """The heartbeat that is Spark's watermark in a micro-batch; None before the first one."""
    watermark = progress.eventTime.get("watermark")
    watermark_ms = 0 if watermark is None else round(parse_ms(watermark))
    return watermark_ms + BELOW_MS if watermark_ms else None


def _observation(
    spec: CompletenessSpec,
    offset: HeartbeatOffset,
    control: ControlLine,
    cells: Cells,
    progress: StreamingQueryProgress,
    metrics: dict[str, Any],
) -> BatchObservation:
    reported_at_ms = parse_ms(progress.timestamp)
    clock_ms = _ms(metrics.get("clock_us"))
    carried = progress.observedMetrics.get(SOURCE_HEARTBEAT_PREFIX + spec.name)
    return BatchObservation(
        batch_id=progress.batchId,
        heartbeat_ms=_known_ms(control.heartbeat_us) if control.follows_rows else _float(offset.heartbeat_ms),
        reference_ms=_known_ms(control.reference_us),
        chosen_at_ms=_known_ms(control.chosen_at_us),
        decided_at_ms=_known_ms(control.decided_at_us),
        began_ms=_ms(metrics.get("began_us")),
        lateness=decode_lateness(metrics.get("lateness"), sampled=control.sample_from_us != NEVER_US),
        clock_ms=reported_at_ms if clock_ms is None else clock_ms,
        cells=cells,
        reported_at_ms=reported_at_ms,
        took_ms=1e3 * duration_s(progress),
        state_rows=state_rows(progress),
        source_names={
            named["source"]: named["name"] for key in ("oldest", "any_one") if (named := metrics.get(key)) is not None
        },
        source_heartbeats_ms=carried_heartbeats(None if carried is None else carried.asDict()),
        late_in_slack=late_in_slack(progress, spec.name),
        follows_rows=control.follows_rows,
    )


def _float(number: int | None) -> float | None:
    return None if number is None else float(number)


def _entry(
    tracker: CompletenessTracker,
    outcome: BatchOutcome,
    progress: StreamingQueryProgress,
    problem_rows: tuple[tuple[str, str], ...],
    source_lag_rows: float | None,
) -> SeriesEntry:
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
            run_lateness_ms=outcome.run_lateness_ms,
            recent_lateness_ms=outcome.recent_lateness_ms,
            span_ms=outcome.span_ms,
            sources=outcome.sources,
            losses=outcome.losses,
            problem_rows=problem_rows,
            source_lag_rows=source_lag_rows,
            row_cost_s=duration_s(progress) / rows if rows else None,
            duration_s=duration_s(progress),
            state_rows=state_rows(progress),
            results=None if published.results is None else published.results + ((last.results or 0) if last else 0),
            late_panes=published.late_panes + ((last.late_panes or 0) if last else 0),
            window_ms=published.window_ms,
            open_rows=outcome.open_rows,
        )

    return SeriesEntry(about, spec.mailbox, point_after)


def _ms(us: int | None) -> float | None:
    return None if us is None else us / 1000.0


def _known_ms(us: int) -> float | None:
    return us / 1000.0 if us > UNKNOWN_US else None
