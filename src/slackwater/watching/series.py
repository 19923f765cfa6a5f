"""The history of one promise in one query, of bounded size, from its first micro-batch to the latest."""

from __future__ import annotations

import bisect
import copy
import itertools
import math
from collections import deque
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal

from slackwater.control.ledger import Ledger
from slackwater.promises import Completeness
from slackwater.watching.point import Point
from slackwater.watching.precision import PrecisionCounts

MAX_POINTS = 1000
RECENT_MS = 300_000.0
"""The length of "the last 5 min" in reports, metrics and page."""

MAX_RESULT_ROWS = 12

_MAX_DECISIONS = 200
_MAX_WINDOWS = 30
_MAX_SOURCES = 50
_MAX_STREAMS = 1000
_MAX_PROBLEM_ROWS = 8
_SILENT_BATCHES = 100
Kind = Literal["completeness", "timeliness", "precision"]


@dataclass(frozen=True, slots=True)
class About:
    """The query and the promise that a series belongs to.

    ``promised`` is a drop ratio, a delay in seconds or a confidence, by ``kind``. ``column`` is the event-time column.
    """

    query_id: str
    query: str
    promise: str
    kind: Kind
    promised: float
    method: str
    column: str = ""
    numeric_order: bool = False  # the stream is ordered by a number, and a wait is in its unit


@dataclass(frozen=True, slots=True)
class Decision:
    """A cause that was in force from ``at_ms`` to ``until_ms``; wait and shed ratio are those at its start."""

    at_ms: float
    batch: int
    cause: str
    wait_ms: float | None
    shed_ratio: float | None
    until_ms: float
    batches: int = 1


@dataclass(frozen=True, slots=True)
class ClosedWindows:
    """The windows that a micro-batch published: the newest one, and the numbers of results and late panes."""

    at_ms: float
    start_ms: float
    end_ms: float
    results: int
    late_panes: int


@dataclass(frozen=True, slots=True)
class SourceState:
    """A source: its rows so far, its last micro-batch, and how far the newest row of that batch was behind."""

    rows: int
    behind_ms: float
    batch: int


@dataclass(frozen=True, slots=True)
class SourceLoss:
    """The late and invalid rows of a source so far."""

    late: int = 0
    invalid: int = 0


@dataclass(frozen=True, slots=True)
class ProblemRow:
    """A sampled row that was late or invalid, as JSON text."""

    at_ms: float
    problem: str
    row: str


@dataclass(frozen=True, slots=True)
class ResultRows:
    """Results of the newest windows, as texts. Known only if the command prints the results itself."""

    columns: tuple[str, ...] = ()
    rows: tuple[tuple[str, ...], ...] = ()

    @classmethod
    def from_json(cls, values: dict[str, Any]) -> ResultRows:
        """The inverse of ``asdict``."""
        rows = tuple(tuple(str(text) for text in row) for row in values.get("rows", ()))
        return cls(tuple(str(name) for name in values.get("columns", ())), rows)


class Series:
    """The history of a promise: report, metrics and page read it. It has no clock and does no I/O.

    It holds at most ``MAX_POINTS`` points. Beyond that, every second point of the older half is dropped. Counts are
    cumulative, so only resolution is lost, and the history covers the whole run. A series takes at most about 500 kB.

    ``kept`` is the current verdict (None: not yet known), and ``since_ms`` the time when it last changed. ``seen_ms``
    is the time of the last report of the query. ``ended`` says how the query ended; None while it runs. ``normality``
    has the last Shapiro–Wilk p-value of the increments of each stream, for the last 1 000 streams tested. ``losses``
    has the sources that lost most rows; what is missing to the ledger was lost by others. ``problem_rows`` are the last
    sampled rows, if the query samples rows.
    """

    def __init__(self, about: About) -> None:
        self.about = about
        self.points: list[Point] = []
        self.decisions: deque[Decision] = deque(maxlen=_MAX_DECISIONS)
        self.closed: deque[ClosedWindows] = deque(maxlen=_MAX_WINDOWS)
        self.sources: dict[str, SourceState] = {}
        self.losses: dict[str, SourceLoss] = {}
        self.problem_rows: deque[ProblemRow] = deque(maxlen=_MAX_PROBLEM_ROWS)
        self.normality: dict[str, float] = {}
        self.latest_results = ResultRows()
        self.kept: bool | None = None
        self.since_ms: float | None = None
        self.seen_ms = math.nan
        self.ended: str | None = None
        self.batches = 0

    @property
    def last(self) -> Point | None:
        """The latest point."""
        return self.points[-1] if self.points else None

    @property
    def ledger(self) -> Ledger:
        """The ledger after the latest point."""
        return self.points[-1].ledger if self.points else Ledger()

    def add(self, point: Point) -> None:
        """Add a micro-batch; a batch that is repeated after a crash is ignored."""
        before = self.last
        if before is not None and point.batch <= before.batch:
            return
        self.ended = None
        self.batches += 1
        self.problem_rows.extend(ProblemRow(point.at_ms, problem, row) for problem, row in point.problem_rows)
        self.points.append(replace(point, problem_rows=(), losses=()))
        self.mark_alive(point.at_ms)
        self._add_decision(point)
        self._add_windows(before, point)
        self._add_sources(point)
        self._add_losses(point)
        self._add_normality(point)
        kept = self._kept_after(point)
        if kept is not None and kept != self.kept:
            self.kept, self.since_ms = kept, point.at_ms
        if len(self.points) > MAX_POINTS:
            half = MAX_POINTS // 2
            self.points[:half] = self.points[:half:2]

    def mark_alive(self, at_ms: float) -> None:
        """Note that the query reported at this time."""
        self.seen_ms = at_ms if math.isnan(self.seen_ms) else max(self.seen_ms, at_ms)

    def add_results(self, results: ResultRows) -> None:
        """Put published results before the earlier ones, which stay if they have the same columns and fit."""
        earlier = self.latest_results.rows if results.columns == self.latest_results.columns else ()
        self.latest_results = ResultRows(results.columns, (*results.rows, *earlier)[:MAX_RESULT_ROWS])

    def end(self, how: str) -> None:
        """Note how the query ended."""
        self.ended = how

    @property
    def published(self) -> bool | None:
        """Whether the query has published a result; None where nobody counts them."""
        if self.about.kind == "completeness":
            results = self.latest("results")
            return None if results is None else bool(results)
        if self.about.kind == "timeliness":
            return self.latest("mean_delay_s") is not None
        counts: PrecisionCounts | None = self.latest("precision")
        return counts is not None and counts.evaluated > 0

    def points_since(self, at_ms: float) -> Iterator[Point]:
        """The points of that time or later, oldest first."""
        newest_first = itertools.takewhile(lambda point: point.at_ms >= at_ms, reversed(self.points))
        return reversed(list(newest_first))

    def recent_ledger(self, span_ms: float = RECENT_MS) -> Ledger:
        """The ledger of the last ``span_ms`` before the latest point."""
        return self.ledger_between(self.last.at_ms - span_ms, self.last) if self.last else Ledger()

    def ledger_between(self, from_ms: float, point: Point) -> Ledger:
        """The ledger of the rows after ``from_ms``, up to ``point``."""
        earlier = self.point_at(from_ms)
        return point.ledger if earlier is None else point.ledger - earlier.ledger

    def point_at(self, at_ms: float) -> Point | None:
        """The last point up to that time."""
        index = bisect.bisect_right(self.points, at_ms, key=lambda point: point.at_ms)
        return self.points[index - 1] if index else None

    def recent_lateness_ms(self) -> tuple[float, ...] | None:
        """The quantiles of lateness in the last five minutes.

        A number has no lateness of its own: it is measured behind the highest number of its micro-batch.
        """
        recent = self.latest("recent_lateness_ms")
        if recent is not None:
            return tuple(recent)
        behind = self.latest("lateness")
        return None if behind is None else tuple(behind.quantiles_ms)

    def lateness_bins(self, span_ms: float = RECENT_MS) -> dict[int, int]:
        """Rows per bin of lateness, over the last ``span_ms``."""
        bins: dict[int, int] = {}
        if self.last is not None:
            for point in self.points_since(self.last.at_ms - span_ms):
                for number, rows in point.lateness.bins if point.lateness else ():
                    bins[number] = bins.get(number, 0) + rows
        return dict(sorted(bins.items()))

    def latest(self, field: str) -> Any:
        """The latest value of a point's field that is not None; None if there is none."""
        return next((v for p in reversed(self.points) if (v := getattr(p, field)) is not None), None)

    def _kept_after(self, point: Point) -> bool | None:
        """Whether the promise is kept over the run up to ``point``; None if that is not known yet.

        A query that has published nothing keeps no promise, but it may have broken one.
        """
        about = self.about
        if about.kind == "completeness":
            judged = point.ledger.on_time + point.ledger.late
            promise = Completeness(about.promised)
            if not judged or not about.promised:
                return None
            kept = promise.kept_by(point.ledger.late, point.ledger.on_time)
            return None if kept and point.results == 0 else kept
        if about.kind == "timeliness":
            promised_s = about.promised if point.mean_target_s is None else point.mean_target_s
            return None if point.mean_delay_s is None else point.mean_delay_s <= promised_s
        return None if point.precision is None else point.precision.kept

    def _add_decision(self, point: Point) -> None:
        if not point.cause or point.cause == "no rows":
            return
        if self.decisions and self.decisions[-1].cause == point.cause:
            current = self.decisions[-1]
            self.decisions[-1] = replace(current, until_ms=point.at_ms, batches=current.batches + 1)
        else:
            decision = Decision(point.at_ms, point.batch, point.cause, point.wait_ms, point.shed_ratio, point.at_ms)
            self.decisions.append(decision)

    def _add_sources(self, point: Point) -> None:
        """Update the sources of this batch; drop the longest silent ones if there are too many or they are too old."""
        for source, rows, behind_ms in point.sources:
            total = self.sources.pop(source).rows if source in self.sources else 0
            self.sources[source] = SourceState(total + rows, behind_ms, point.batch)
        while self.sources:
            longest_silent = next(iter(self.sources))
            if len(self.sources) <= _MAX_SOURCES and self.sources[longest_silent].batch > point.batch - _SILENT_BATCHES:
                return
            del self.sources[longest_silent]

    def _add_losses(self, point: Point) -> None:
        """Add the losses of this batch; forget the smallest if there are too many sources."""
        for source, late, invalid in point.losses:
            before = self.losses.get(source, SourceLoss())
            self.losses[source] = SourceLoss(before.late + late, before.invalid + invalid)
        while len(self.losses) > _MAX_SOURCES:
            del self.losses[min(self.losses, key=lambda name: self.losses[name].late + self.losses[name].invalid)]

    def _add_normality(self, point: Point) -> None:
        for stream, p_value in point.normality:
            self.normality.pop(stream, None)
            self.normality[stream] = p_value
        while len(self.normality) > _MAX_STREAMS:
            del self.normality[next(iter(self.normality))]

    def _add_windows(self, before: Point | None, point: Point) -> None:
        if point.window_ms is None:
            return
        results, panes = point.results or 0, point.late_panes or 0
        if before is not None:
            results, panes = results - (before.results or 0), panes - (before.late_panes or 0)
        self.closed.append(ClosedWindows(point.at_ms, *point.window_ms, results, panes))

    def copy(self) -> Series:
        """A copy for a reader in another thread."""
        copied = copy.copy(self)
        copied.points, copied.sources = list(self.points), dict(self.sources)
        copied.normality, copied.losses = dict(self.normality), dict(self.losses)
        copied.problem_rows = self.problem_rows.copy()
        copied.decisions, copied.closed = self.decisions.copy(), self.closed.copy()
        return copied

    def snapshot(self) -> dict[str, Any]:
        """The series as JSON values."""
        return {
            "about": asdict(self.about),
            "points": [point.as_json() for point in self.points],
            "decisions": [asdict(decision) for decision in self.decisions],
            "closed": [asdict(closed) for closed in self.closed],
            "latest_results": asdict(self.latest_results),
            "normality": self.normality,
            "sources": {name: asdict(source) for name, source in self.sources.items()},
            "losses": {name: asdict(loss) for name, loss in self.losses.items()},
            "problem_rows": [asdict(row) for row in self.problem_rows],
            "kept": self.kept,
            "since_ms": self.since_ms,
            "seen_ms": self.seen_ms if math.isfinite(self.seen_ms) else None,
            "ended": self.ended,
            "batches": self.batches,
        }

    @classmethod
    def resume(cls, snapshot: dict[str, Any]) -> Series:
        """The inverse of ``snapshot``."""
        series = cls(About(**snapshot["about"]))
        series.points = [Point.from_json(values) for values in snapshot["points"]]
        series.decisions.extend(Decision(**values) for values in snapshot["decisions"])
        series.closed.extend(ClosedWindows(**values) for values in snapshot["closed"])
        series.sources = {name: SourceState(**values) for name, values in snapshot["sources"].items()}
        series.losses = {name: SourceLoss(**values) for name, values in snapshot.get("losses", {}).items()}
        series.problem_rows.extend(ProblemRow(**values) for values in snapshot.get("problem_rows", ()))
        series.normality = dict(snapshot.get("normality", {}))
        series.latest_results = ResultRows.from_json(snapshot.get("latest_results", {}))
        series.kept, series.since_ms, series.ended = snapshot["kept"], snapshot["since_ms"], snapshot["ended"]
        series.seen_ms = math.nan if snapshot["seen_ms"] is None else snapshot["seen_ms"]
        series.batches = snapshot["batches"]
        return series
