"""What ``report`` says about a completeness promise."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass, field
from typing import Any

from slackwater.control.ledger import Ledger
from slackwater.promises import Completeness
from slackwater.spark.completeness.tracker import CompletenessTracker
from slackwater.units import duration_text, percent
from slackwater.watching.report_text import series_json, series_lines
from slackwater.watching.series import Series
from slackwater.watching.verdict import NOTHING_PUBLISHED


@dataclass(frozen=True, slots=True)
class CompletenessReport:
    """One completeness promise and how it has been kept so far.

    ``wait_ms`` and ``cause`` are those of the latest micro-batch under a heartbeat, ``mean_wait_ms`` is the average
    over all rows. ``results`` are those published, None where nobody counts them. ``open_rows`` are in windows that are
    still open: ``open_windows``, if each of them has rows; None if that is not known. After ``stream_ended`` every
    window was closed.
    """

    name: str
    event_time: str
    method: str
    promise: Completeness
    ledger: Ledger
    heartbeat: dt.datetime | None
    wait_ms: float | None
    mean_wait_ms: float | None
    cause: str
    results: int | None = None
    open_rows: int = 0
    open_windows: int | None = None
    stream_ended: bool = False
    series: Series | None = field(default=None, compare=False, repr=False)

    @property
    def kept(self) -> bool:
        """Whether the rows counted so far keep the promise. Without a result none is kept."""
        return self.verdict in ("kept", "no promise")

    @property
    def verdict(self) -> str:
        """``kept``, ``broken``, ``nothing published yet``, or for best effort ``no promise``."""
        if not self.promise.kept_by(self.ledger.late, self.ledger.on_time):
            return "broken"
        if self.results == 0:
            return NOTHING_PUBLISHED
        return "kept" if self.promise.drop_ratio else "no promise"

    def as_json(self) -> dict[str, Any]:
        """The report as plain values."""
        return {
            "name": self.name,
            "event_time": self.event_time,
            "method": self.method,
            "promised_drop_ratio": self.promise.drop_ratio,
            "drop_ratio": self.ledger.drop_ratio,
            "kept": self.kept,
            "verdict": self.verdict,
            "results": self.results,
            "open": {"rows": self.open_rows, "windows": self.open_windows, "stream_ended": self.stream_ended},
            "heartbeat": None if self.heartbeat is None else self.heartbeat.isoformat(),
            "wait_ms": self.wait_ms,
            "mean_wait_ms": self.mean_wait_ms,
            "cause": self.cause,
            "ledger": self.ledger.as_json(),
            "recent": None if self.series is None else series_json(self.series),
        }

    def __str__(self) -> str:
        best_effort = self.promise.drop_ratio == 0
        promised = "best effort" if best_effort else f"DRATIO {percent(self.promise.drop_ratio)}"
        verdict = "BROKEN" if self.verdict == "broken" else self.verdict
        heartbeat = "none yet" if self.heartbeat is None else self.heartbeat.isoformat(timespec="milliseconds")
        if self.stream_ended:
            heartbeat += " (the stream has ended)"
        ledger = self.ledger
        lines = [
            f"{self.name}: {promised} on {self.event_time} by {self.method}",
            f"  drop ratio  {percent(ledger.drop_ratio)} ({verdict})",
            f"  heartbeat   {heartbeat}",
            f"  wait        {_duration(self.wait_ms)} now, {_duration(self.mean_wait_ms)} on average ({self.cause})",
            f"  ledger      {ledger.input:,} rows = {ledger.on_time:,} on time + {ledger.late:,} late"
            f" + {ledger.shed:,} shed + {ledger.invalid:,} invalid",
            *([] if self.results is None else [f"  published   {self.results:,} results"]),
            *([] if not self.open_rows else [f"  still open  {self._open_text()}"]),
        ]
        lines += [f"  not exact   {reason}" for reason in ledger.why]
        return "\n".join([*lines, *series_lines(self.series)])

    def _open_text(self) -> str:
        if not self.open_windows:
            return f"{self.open_rows:,} rows in windows above the heartbeat"
        windows = "1 window" if self.open_windows == 1 else f"{self.open_windows:,} windows"
        return f"{self.open_rows:,} rows in {windows} above the heartbeat"


def completeness_report_of(tracker: CompletenessTracker, series: Series | None) -> CompletenessReport:
    """The report of one promise in one query."""
    spec, latest, heartbeat_ms = tracker.spec, tracker.latest, tracker.heartbeat_ms
    return CompletenessReport(
        spec.name,
        spec.event_time,
        spec.method.name,
        spec.completeness,
        tracker.ledger,
        None if heartbeat_ms is None else dt.datetime.fromtimestamp(heartbeat_ms / 1000, dt.UTC),
        None if latest is None else latest.wait_ms,
        tracker.mean_wait_ms,
        "none yet" if latest is None else latest.cause,
        None if series is None else series.latest("results"),
        tracker.open_rows,
        tracker.open_windows,
        tracker.stream_ended,
        series,
    )


def _duration(ms: float | None) -> str:
    return "–" if ms is None else duration_text(ms)
