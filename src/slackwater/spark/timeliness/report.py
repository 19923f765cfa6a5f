"""What ``report`` says about a timeliness promise."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from slackwater.control.ledger import Ledger
from slackwater.control.shedding.utility import KEEP_ALL, utility_of
from slackwater.promises import Timeliness
from slackwater.spark.timeliness.tracker import TimelinessTracker
from slackwater.units import duration_text, percent
from slackwater.watching.report_text import series_json, series_lines
from slackwater.watching.series import Series
from slackwater.watching.verdict import NOT_MEASURED, NOTHING_PUBLISHED


@dataclass(frozen=True, slots=True)
class TimelinessReport:
    """One timeliness promise and how it has been kept so far; delays are means over rows.

    ``limit`` names the limit of the source that decides the delay, so that shedding cannot help; None while none does.
    ``shed_by`` is the utility by which rows are shed, least useful first; None if at random. While rows are shed,
    ``shed_below`` is the utility at or below which they are.
    """

    name: str
    law: str
    promise: Timeliness
    ledger: Ledger
    mean_target_s: float
    delay_s: float | None
    mean_delay_s: float | None
    shed_ratio: float
    load_per_s: float | None
    capacity_per_s: float | None
    backlog_rows: float | None = None
    limit: str | None = None
    shed_by: str | None = None
    shed_below: float | None = None
    series: Series | None = field(default=None, compare=False, repr=False)

    @property
    def kept(self) -> bool:
        """Whether rows have come through, and their mean delay, as far as it is known, keeps the promise.

        If the target was changed, the mean of the targets under which the rows were processed is what counts.
        """
        return self.verdict in ("kept", NOT_MEASURED)

    @property
    def verdict(self) -> str:
        """``kept``, ``broken``, ``no delay measured yet`` or ``nothing published yet``."""
        if self.mean_delay_s is None:
            return NOT_MEASURED if self.ledger.on_time else NOTHING_PUBLISHED
        return "kept" if self.mean_delay_s <= self.mean_target_s else "broken"

    @property
    def loss_ratio(self) -> float:
        """Shed / input."""
        return self.ledger.shed / self.ledger.input if self.ledger.input else 0.0

    def as_json(self) -> dict[str, Any]:
        """The report as plain values."""
        return {
            "name": self.name,
            "law": self.law,
            "promised_delay_s": self.promise.max_delay_s,
            "mean_promised_delay_s": self.mean_target_s,
            "delay_s": self.delay_s,
            "mean_delay_s": self.mean_delay_s,
            "kept": self.kept,
            "verdict": self.verdict,
            "shed_ratio": self.shed_ratio,
            "loss_ratio": self.loss_ratio,
            "load_per_s": self.load_per_s,
            "capacity_per_s": self.capacity_per_s,
            "backlog_rows": self.backlog_rows,
            "limit": self.limit,
            "shed_by": self.shed_by,
            "shed_below": self.shed_below,
            "ledger": self.ledger.as_json(),
            "recent": None if self.series is None else series_json(self.series),
        }

    def __str__(self) -> str:
        rates = "–"
        if self.load_per_s is not None and self.capacity_per_s is not None:
            rates = f"{self.load_per_s:,.0f} rows/s, capacity {self.capacity_per_s:,.0f} rows/s"
        promised = duration_text(self.promise.max_delay_s * 1e3)
        if self.mean_target_s != self.promise.max_delay_s:
            promised += f" (changed; {duration_text(self.mean_target_s * 1e3)} on average)"
        return "\n".join(
            [
                f"{self.name}: DELAY {promised} by {self.law}",
                f"  delay       {_seconds(self.delay_s)} now, {_seconds(self.mean_delay_s)} on average"
                f" ({'BROKEN' if self.verdict == 'broken' else self.verdict})",
                f"  load        {rates}",
                *([] if self.limit is None else [f"  limit       {self.limit} decides the delay; nothing is shed"]),
                f"  backlog     {'unknown' if self.backlog_rows is None else f'{self.backlog_rows:,.0f} rows'}",
                f"  shed        {percent(self.shed_ratio)} now, {percent(self.loss_ratio)} of all rows{self._chosen()}",
                f"  ledger      {self.ledger.input:,} rows = {self.ledger.on_time:,} kept + {self.ledger.shed:,} shed",
                *(f"  not exact   {reason}" for reason in self.ledger.why),
                *series_lines(self.series),
            ]
        )

    def _chosen(self) -> str:
        """How the rows to shed are chosen."""
        if self.shed_by is None:
            return ""
        below = "" if self.shed_below is None else f", now around and below {self.shed_below:.6g}"
        return f", by {self.shed_by}{below}"


def timeliness_report_of(tracker: TimelinessTracker, series: Series | None = None) -> TimelinessReport:
    """The report of one promise in one query."""
    last = None if tracker.latest is None else tracker.latest.decision
    threshold = tracker.threshold(tracker.controller.shed_ratio)
    return TimelinessReport(
        tracker.spec.name,
        tracker.spec.law.name,
        tracker.target,
        tracker.ledger,
        tracker.mean_target_s,
        None if last is None else last.delay_s,
        tracker.mean_delay_s,
        tracker.controller.shed_ratio,
        None if last is None else last.load_per_s,
        None if last is None else last.capacity_per_s,
        None if last is None else last.backlog_rows,
        None if tracker.latest is None else tracker.latest.limit,
        tracker.spec.shed_by,
        None if threshold == KEEP_ALL else utility_of(threshold.cell),
        series,
    )


def _seconds(seconds: float | None) -> str:
    return "–" if seconds is None else duration_text(seconds * 1e3)
