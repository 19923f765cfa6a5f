"""``report``: how a running query keeps its promises."""

from __future__ import annotations

import datetime as dt
import html
from dataclasses import dataclass, field
from typing import Any

from pyspark.sql.streaming.query import StreamingQuery

from slackwater.control.ledger import Ledger
from slackwater.errors import UnknownName
from slackwater.extras import installed
from slackwater.promises import Completeness
from slackwater.spark.completeness.tracker import CompletenessTracker
from slackwater.spark.runtime.listener import completeness_trackers_of, series_of, standing_of, timeliness_trackers_of
from slackwater.spark.standing.report import PrecisionReport
from slackwater.spark.timeliness.report import TimelinessReport, timeliness_report_of
from slackwater.units import duration_text, percent
from slackwater.watching.report_text import series_json, series_lines
from slackwater.watching.series import Series


@dataclass(frozen=True, slots=True)
class CompletenessReport:
    """One promise and what became of it so far."""

    name: str
    event_time: str
    method: str
    promise: Completeness
    ledger: Ledger
    heartbeat: dt.datetime | None
    wait_ms: float | None
    mean_wait_ms: float | None
    cause: str
    series: Series | None = field(default=None, compare=False, repr=False)

    @property
    def kept(self) -> bool:
        """Whether the rows counted so far keep the promise."""
        return self.promise.kept_by(self.ledger.late, self.ledger.on_time)

    def as_json(self) -> dict[str, Any]:
        """The report as plain values."""
        return {
            "name": self.name,
            "event_time": self.event_time,
            "method": self.method,
            "promised_drop_ratio": self.promise.drop_ratio,
            "drop_ratio": self.ledger.drop_ratio,
            "kept": self.kept,
            "heartbeat": None if self.heartbeat is None else self.heartbeat.isoformat(),
            "wait_ms": self.wait_ms,
            "mean_wait_ms": self.mean_wait_ms,
            "cause": self.cause,
            "ledger": self.ledger.as_json(),
            "recent": None if self.series is None else series_json(self.series),
        }

    def __str__(self) -> str:
        promised = "best effort" if self.promise.drop_ratio == 0 else f"DRATIO {percent(self.promise.drop_ratio)}"
        verdict = "no promise" if self.promise.drop_ratio == 0 else "kept" if self.kept else "BROKEN"
        heartbeat = "none yet" if self.heartbeat is None else self.heartbeat.isoformat(timespec="milliseconds")
        ledger = self.ledger
        lines = [
            f"{self.name}: {promised} on {self.event_time} by {self.method}",
            f"  drop ratio  {percent(ledger.drop_ratio)} ({verdict})",
            f"  heartbeat   {heartbeat}",
            f"  wait        {_duration(self.wait_ms)} now, {_duration(self.mean_wait_ms)} on average ({self.cause})",
            f"  ledger      {ledger.input:,} rows = {ledger.on_time:,} on time + {ledger.late:,} late"
            f" + {ledger.shed:,} shed + {ledger.invalid:,} invalid",
        ]
        if ledger.unreported_batches:
            lines.append(
                f"  unreported  {ledger.unreported_batches} batches committed just before a crash, in no count"
            )
        return "\n".join([*lines, *series_lines(self.series)])


@dataclass(frozen=True, slots=True)
class Report:
    """All promises of one query."""

    query_id: str
    completeness: tuple[CompletenessReport, ...] = ()
    timeliness: tuple[TimelinessReport, ...] = ()
    precision: tuple[PrecisionReport, ...] = ()

    @property
    def kept(self) -> bool:
        """Whether every promise is kept so far."""
        return all(promise.kept for promise in self._every)

    @property
    def _every(self) -> list[CompletenessReport | TimelinessReport | PrecisionReport]:
        return [*self.completeness, *self.timeliness, *self.precision]

    @property
    def ledger(self) -> Ledger:
        """What became of every row that the query read: rows that were shed are judged by no other promise."""
        shed = Ledger(shed=sum(delay.ledger.shed for delay in self.timeliness))
        judged = self.completeness or self.timeliness
        total = Ledger() if not self.completeness else shed
        for promise in judged:
            total += promise.ledger
        return total

    def as_json(self) -> dict[str, Any]:
        """The report as plain values."""
        return {
            "query_id": self.query_id,
            "kept": self.kept,
            "ledger": self.ledger.as_json(),
            "completeness": [promise.as_json() for promise in self.completeness],
            "timeliness": [promise.as_json() for promise in self.timeliness],
            "precision": [promise.as_json() for promise in self.precision],
        }

    def __str__(self) -> str:
        return "\n".join(str(promise) for promise in self._every)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        """The report for a notebook: with small plots, or without matplotlib as plain text."""
        if not installed("matplotlib"):
            return f"<pre>{html.escape(str(self))}</pre>"
        from slackwater.watching.report_html import report_html

        return report_html([promise.series for promise in self._every if promise.series is not None])


def report(query: StreamingQuery) -> Report:
    """How the query keeps its promises, counting every micro-batch that it has committed."""
    progress = query.lastProgress
    if progress is None:
        return Report(str(query.id), ())
    last_batch = int(progress["batchId"])
    trackers, delays = (
        completeness_trackers_of(str(query.id), last_batch),
        timeliness_trackers_of(str(query.id), last_batch),
    )
    standing = standing_of(str(query.id), last_batch)
    if not (trackers or delays or standing):
        raise UnknownName(
            "no-promise",
            f"query {query.id} makes no promise",
            "put with_drop_ratio, with_max_delay or standing into its plan before it starts",
        )
    return Report(
        str(query.id),
        tuple(_of(tracker) for tracker in trackers),
        tuple(timeliness_report_of(tracker, series_of(tracker.query_id, tracker.spec.name)) for tracker in delays),
        tuple(PrecisionReport(series) for series in standing),
    )


def _of(tracker: CompletenessTracker) -> CompletenessReport:
    last = next((record for record in reversed(tracker.history) if record.wait_ms is not None), None)
    heartbeat_ms = tracker.heartbeat_ms
    return CompletenessReport(
        tracker.spec.name,
        tracker.spec.event_time,
        tracker.spec.method.name,
        tracker.spec.completeness,
        tracker.ledger,
        None if heartbeat_ms is None else dt.datetime.fromtimestamp(heartbeat_ms / 1000, dt.UTC),
        None if last is None else last.wait_ms,
        tracker.mean_wait_ms,
        "none yet" if last is None else last.cause,
        series_of(tracker.query_id, tracker.spec.name),
    )


def _duration(ms: float | None) -> str:
    return "–" if ms is None else duration_text(ms)
