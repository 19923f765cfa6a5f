"""The series of one promise in one query: bounded, from its first micro-batch to the latest."""

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

MOST_POINTS = 1000
RECENT_MS = 300_000.0
"""What "the last minutes" are."""

MOST_SHOWN = 12
"""Results of the newest windows."""

_MOST_DECISIONS = 200
_MOST_WINDOWS = 30
_MOST_SOURCES = 50
_SILENT_BATCHES = 100
Kind = Literal["completeness", "timeliness", "precision"]


@dataclass(frozen=True, slots=True)
class About:
    """Whose series it is: the query, the promise, and what was promised (a ratio, seconds, or a confidence)."""

    query_id: str
    query: str
    promise: str
    kind: Kind
    promised: float
    method: str
    column: str = ""
    numeric_order: bool = False  # ordered by a number: a wait is in its units


@dataclass(frozen=True, slots=True)
class Decision:
    """A cause, from when to when it held, and how the promise stood when it began."""

    at_ms: float
    batch: int
    cause: str
    wait_ms: float | None
    shed_ratio: float | None
    until_ms: float
    batches: int = 1


@dataclass(frozen=True, slots=True)
class Closed:
    """Windows that a micro-batch published: the newest of them, how many results, how many late panes."""

    at_ms: float
    start_ms: float
    end_ms: float
    results: int
    late_panes: int


@dataclass(frozen=True, slots=True)
class Heard:
    """A source: its rows so far, how far behind the clock the freshest of its latest was, and in which micro-batch."""

    rows: int
    behind_ms: float
    batch: int


@dataclass(frozen=True, slots=True)
class Shown:
    """Results of the newest windows, as texts: known only where the results pass through our own hands."""

    columns: tuple[str, ...] = ()
    rows: tuple[tuple[str, ...], ...] = ()


class Series:
    """Everything that is remembered of a promise. No clock, no I/O.

    It holds at most ``MOST_POINTS`` points: when there are more, every second point of the older half goes. Counts are
    cumulative, so only resolution is lost, and the whole run stays visible. Some 500 kB at most.
    """

    def __init__(self, about: About) -> None:
        self.about = about
        self.points: list[Point] = []
        self.decisions: deque[Decision] = deque(maxlen=_MOST_DECISIONS)
        self.closed: deque[Closed] = deque(maxlen=_MOST_WINDOWS)
        self.sources: dict[str, Heard] = {}
        self.shown = Shown()
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
        """What became of every row so far."""
        return self.points[-1].ledger if self.points else Ledger()

    def add(self, point: Point) -> None:
        """Take one more micro-batch; a repetition is ignored."""
        before = self.last
        if before is not None and point.batch <= before.batch:
            return
        self.ended = None
        self.batches += 1
        self.points.append(point)
        self.saw(point.at_ms)
        self._note_decision(point)
        self._note_windows(before, point)
        self._note_sources(point)
        kept = self._keeps(point)
        if kept is not None and kept != self.kept:
            self.kept, self.since_ms = kept, point.at_ms
        if len(self.points) > MOST_POINTS:
            half = MOST_POINTS // 2
            self.points[:half] = self.points[:half:2]

    def saw(self, at_ms: float) -> None:
        """A sign of life."""
        self.seen_ms = at_ms if math.isnan(self.seen_ms) else max(self.seen_ms, at_ms)

    def show(self, shown: Shown) -> None:
        """Results that were published; with the same columns those before stay below them, as many as fit."""
        kept = self.shown.rows if shown.columns == self.shown.columns else ()
        self.shown = Shown(shown.columns, (*shown.rows, *kept)[:MOST_SHOWN])

    def end(self, how: str) -> None:
        """The query has ended."""
        self.ended = how

    def since(self, at_ms: float) -> Iterator[Point]:
        """The points of that time or later, oldest first."""
        newest_first = itertools.takewhile(lambda point: point.at_ms >= at_ms, reversed(self.points))
        return reversed(list(newest_first))

    def ledger_of_the_last(self, span_ms: float = RECENT_MS) -> Ledger:
        """What became of the rows of the last minutes before the latest micro-batch."""
        return self.between(self.last.at_ms - span_ms, self.last) if self.last else Ledger()

    def between(self, from_ms: float, point: Point) -> Ledger:
        """What became of the rows after a time, up to a point."""
        earlier = self.at(from_ms)
        return point.ledger if earlier is None else point.ledger - earlier.ledger

    def at(self, at_ms: float) -> Point | None:
        """The last point up to a time."""
        place = bisect.bisect_right(self.points, at_ms, key=lambda point: point.at_ms)
        return self.points[place - 1] if place else None

    def lateness_bins(self, span_ms: float = RECENT_MS) -> dict[int, int]:
        """The lateness of the rows of the last minutes."""
        bins: dict[int, int] = {}
        if self.last is not None:
            for point in self.since(self.last.at_ms - span_ms):
                for number, rows in point.lateness.bins if point.lateness else ():
                    bins[number] = bins.get(number, 0) + rows
        return dict(sorted(bins.items()))

    def latest(self, field: str) -> Any:
        """The latest value of a field that not every micro-batch has."""
        return next((v for p in reversed(self.points) if (v := getattr(p, field)) is not None), None)

    def _keeps(self, point: Point) -> bool | None:
        about = self.about
        if about.kind == "completeness":
            judged = point.ledger.on_time + point.ledger.late
            promise = Completeness(about.promised)
            return promise.kept_by(point.ledger.late, point.ledger.on_time) if judged and about.promised else None
        if about.kind == "timeliness":
            return None if point.mean_delay_s is None else point.mean_delay_s <= about.promised
        return None if point.standing is None else point.standing.kept

    def _note_decision(self, point: Point) -> None:
        if not point.cause or point.cause == "no rows":
            return
        if self.decisions and self.decisions[-1].cause == point.cause:
            same = self.decisions[-1]
            self.decisions[-1] = replace(same, until_ms=point.at_ms, batches=same.batches + 1)
        else:
            made = Decision(point.at_ms, point.batch, point.cause, point.wait_ms, point.shed_ratio, point.at_ms)
            self.decisions.append(made)

    def _note_sources(self, point: Point) -> None:
        for source, rows, behind_ms in point.sources:
            total = self.sources.pop(source).rows if source in self.sources else 0
            self.sources[source] = Heard(total + rows, behind_ms, point.batch)
        while self.sources:
            longest_silent = next(iter(self.sources))
            if (
                len(self.sources) <= _MOST_SOURCES
                and self.sources[longest_silent].batch > point.batch - _SILENT_BATCHES
            ):
                return
            del self.sources[longest_silent]

    def _note_windows(self, before: Point | None, point: Point) -> None:
        if point.window_ms is None:
            return
        results, panes = point.results or 0, point.late_panes or 0
        if before is not None:
            results, panes = results - (before.results or 0), panes - (before.late_panes or 0)
        self.closed.append(Closed(point.at_ms, *point.window_ms, results, panes))

    def copy(self) -> Series:
        """The series as it is now, for somebody who looks at it in another thread."""
        copied = copy.copy(self)
        copied.points, copied.sources = list(self.points), dict(self.sources)
        copied.decisions, copied.closed = self.decisions.copy(), self.closed.copy()
        return copied

    def snapshot(self) -> dict[str, Any]:
        """The series as plain values."""
        return {
            "about": asdict(self.about),
            "points": [point.as_json() for point in self.points],
            "decisions": [asdict(decision) for decision in self.decisions],
            "closed": [asdict(closed) for closed in self.closed],
            "shown": asdict(self.shown),
            "sources": {name: asdict(heard) for name, heard in self.sources.items()},
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
        series.closed.extend(Closed(**values) for values in snapshot["closed"])
        series.sources = {name: Heard(**values) for name, values in snapshot["sources"].items()}
        series.shown = shown_from(snapshot.get("shown", {}))
        series.kept, series.since_ms, series.ended = snapshot["kept"], snapshot["since_ms"], snapshot["ended"]
        series.seen_ms = math.nan if snapshot["seen_ms"] is None else snapshot["seen_ms"]
        series.batches = snapshot["batches"]
        return series


def shown_from(values: dict[str, Any]) -> Shown:
    """The inverse of ``asdict``, from JSON."""
    rows = tuple(tuple(str(text) for text in row) for row in values.get("rows", ()))
    return Shown(tuple(str(name) for name in values.get("columns", ())), rows)
