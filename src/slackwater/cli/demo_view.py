"""The table of ``slackwater demo``: what each query lost and how old its results were. At most 80 columns wide."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rich.text import Text

from slackwater.control.ledger import Ledger
from slackwater.promises import Completeness
from slackwater.spark.command.comparison import Course, Outcome, Span
from slackwater.units import percent

WIDTH = 80
_LABEL = 20
_NAME = 34
_TOTAL = "whole run"
_BUSY_BATCH_S = 2.0
"""The trigger fires every second. Micro-batches of this length make every result old, whatever the watermark."""
_GOOD, _BAD, _QUIET = "green", "bold red", "dim"


@dataclass(frozen=True, slots=True)
class Comparison:
    """What the demo shows: the promise's ledger, and the course of every query, first the promise's.

    ``courses`` are named by what a user would write. ``median_batch_s`` is how long a micro-batch took.
    ``ended`` is False while they run.
    """

    promise: Completeness
    ledger: Ledger
    spans: Sequence[Span]
    courses: Mapping[str, Course]
    median_batch_s: float | None
    ended: bool

    @property
    def kept(self) -> bool:
        """Whether the rows counted so far keep the promise."""
        return self.promise.kept_by(self.ledger.late, self.ledger.on_time)

    @property
    def promised(self) -> Course:
        """The course of the query under the promise."""
        return next(iter(self.courses.values()))

    @property
    def guesses(self) -> dict[str, Course]:
        """The courses of the guesses."""
        return dict(list(self.courses.items())[1:])

    def failures(self, guess: Course) -> tuple[list[str], list[str]]:
        """The phases in which a guess lost too much, and those in which its results were too old."""
        return guess.lost_too_much(self.promise.drop_ratio), guess.too_old(self.promised, self.promise.drop_ratio)

    def failed(self, guess: Course) -> bool:
        """Whether a guess failed in some phase, or published nothing while the promise did."""
        return any(self.failures(guess)) or bool(self.promised.phases and not guess.phases)

    def verdict(self, name: str) -> str:
        """What to say of a query, in words."""
        course = self.courses[name]
        return _promise_words(self) if course is self.promised else _guess_words(self, course)


def headline(shown: Comparison) -> Text:
    """The first line: whether the promise is kept, by the ledger, and how many guesses failed."""
    ledger, bound = shown.ledger, shown.promise.drop_ratio
    judged = ledger.on_time + ledger.late
    if not judged:
        return Text("no rows were read" if shown.ended else "waiting for the first micro-batch …")
    word = ("KEPT" if shown.kept else "BROKEN") if shown.ended else ("kept so far" if shown.kept else "BROKEN so far")
    late = f"{share_text(ledger.drop_ratio)} of {judged:,} rows late, {percent(bound)} promised"
    if bound == 0:
        word, late = "no promise", f"{share_text(ledger.drop_ratio)} of {judged:,} rows late"
    line = Text.assemble((f"{word}: ", f"bold {_GOOD}" if shown.kept else _BAD), late)
    if shown.ended:
        line.append(f"; {_guesses_text([shown.failed(course) for course in shown.guesses.values()])}.")
    return line


def _guesses_text(failed: list[bool]) -> str:
    if len(failed) == 1:
        return "the guess failed" if failed[0] else "the guess did not fail"
    if all(failed):
        return f"{'both' if len(failed) == 2 else 'all'} guesses failed"
    return f"{sum(failed)} of {len(failed)} guesses failed" if any(failed) else "no guess failed"


def table(shown: Comparison) -> list[Text]:
    """One line per measure and query; columns for the phases and the whole run."""
    names = [span.name for span in shown.spans]
    course = (f"{span.start}–{span.end} s" for span in shown.spans)
    within = (duration_cell(span.lateness_ms) for span in shown.spans)
    lines = [
        _line(Text(""), [Text(name, "bold") for name in (*names, _TOTAL)]),
        _line(Text("part of the stream", _QUIET), [Text(text, _QUIET) for text in (*course, "")]),
        _line(Text("99% arrive within", _QUIET), [Text(text, _QUIET) for text in (*within, "")]),
        Text("─" * WIDTH, _QUIET),
    ]
    for name in shown.courses:
        lines += _query_lines(shown, name)
    return [*lines, Text("─" * WIDTH, _QUIET)]


def _query_lines(shown: Comparison, name: str) -> list[Text]:
    course = shown.courses[name]
    lost, old = shown.failures(course)
    bad = not shown.kept if course is shown.promised else bool(lost or old)
    words = Text(shown.verdict(name), _BAD if bad else _GOOD if course.phases else _QUIET)
    outcomes = [(span.name, course.phases.get(span.name)) for span in shown.spans]
    outcomes.append((_TOTAL, course.total if course.phases else None))
    losses = [_cell(_lost_text(outcome), phase in lost) for phase, outcome in outcomes]
    ages = [_cell(_age_text(outcome), phase in old) for phase, outcome in outcomes]
    title = Text.assemble((name.ljust(_NAME), "bold"), " " if len(name) >= _NAME else "", words)
    title.truncate(WIDTH, overflow="ellipsis")
    return [
        title,
        _line(Text("  rows lost"), losses),
        _line(Text("  age of results"), ages),
    ]


def _line(label: Text, cells: Sequence[Text]) -> Text:
    """A label and its cells, each cell at the right edge of its column."""
    width = (WIDTH - _LABEL) // len(cells)
    line = label.copy()
    line.pad_right(_LABEL - label.cell_len)
    for cell in cells:
        line.append(" " * max(width - cell.cell_len, 1))
        line.append_text(cell)
    return line


def _cell(text: str, bad: bool) -> Text:
    return Text(text, _BAD if bad else "")


def _lost_text(outcome: Outcome | None) -> str:
    return "–" if outcome is None else f"{_count_text(outcome.lost)} {share_text(outcome.lost_ratio):>6}"


def _count_text(count: int) -> str:
    return f"{count:,}" if count < 1_000_000 else f"{count / 1e6:.1f} M"


def _age_text(outcome: Outcome | None) -> str:
    return "–" if outcome is None else duration_cell(outcome.age_ms)


def _promise_words(shown: Comparison) -> str:
    if not shown.promised.phases:
        return "nothing published yet" if not shown.ended else "published nothing"
    lost = _lost_words(shown.promised, shown.failures(shown.promised)[0][:2])
    word = "no promise" if shown.promise.drop_ratio == 0 else "kept" if shown.kept else "BROKEN"
    return f"{word}; {lost}" if lost else word


def _guess_words(shown: Comparison, course: Course) -> str:
    if not course.phases:
        nothing = "too long: published nothing" if shown.failed(course) else "published nothing"
        return nothing if shown.ended else "nothing published yet"
    lost, old = shown.failures(course)
    if lost and old:
        return f"{_lost_words(course, lost[:1])}, {duration_cell(course.phases[old[0]].age_ms)} old in {old[0]}"
    if lost:
        return f"too short: {_lost_words(course, lost[:2])}"
    if old:
        phase = old[0]
        ages = [duration_cell(each.phases[phase].age_ms) for each in (course, shown.promised)]
        return f"too long: {ages[0]} old in {phase}, {ages[1]} would do"
    return "neither too short nor too long" + ("" if shown.ended else " so far")


def _lost_words(course: Course, phases: Sequence[str]) -> str:
    """For example ``lost 17% in drift, 8.1% in bursts``; empty without phases."""
    percents = {phase: 100 * course.phases[phase].lost_ratio for phase in phases}
    shares = ", ".join(f"{p:.0f}% in {phase}" if p >= 10 else f"{p:.2g}% in {phase}" for phase, p in percents.items())
    return f"lost {shares}" if shares else ""


def notes(shown: Comparison) -> list[Text]:
    """What the two measures are, and how to watch the demo."""
    lines = [
        Text("rows lost: missing in published windows, compared with a batch job's counts", _QUIET),
        Text("age of results: from a window's end to the commit that published it, on average", _QUIET),
    ]
    if shown.median_batch_s is not None:
        took = f"a micro-batch took {shown.median_batch_s:.1f} s (median), part of every age"
        busy = shown.median_batch_s >= _BUSY_BATCH_S
        lines.append(Text(f"This machine is busy: {took}", _BAD) if busy else Text(took, _QUIET))
    return [*lines, Text("Watch it in a browser: slackwater demo --watch")]


def progress_line(shown: Comparison, elapsed_s: float) -> str:
    """The state in one line, for an output that is not a terminal."""
    told = [
        f"{name} lost {share_text(course.total.lost_ratio)}, {duration_cell(course.total.age_ms)} old"
        for name, course in shown.courses.items()
        if course.phases
    ]
    return f"{elapsed_s:.0f} s, {phase_at(shown.spans, elapsed_s)}: {'; '.join(told) or 'nothing published yet'}"


def phase_at(spans: Sequence[Span], elapsed_s: float) -> str:
    """The phase that the stream is in; "end" once all phases are over."""
    return next((span.name for span in spans if elapsed_s < span.end), "end")


def share_text(ratio: float) -> str:
    """A ratio as text that fits a narrow column.

    >>> share_text(0.0), share_text(0.00001), share_text(0.00213), share_text(0.1734)
    ('0%', '<0.01%', '0.21%', '17.3%')
    """
    if 0 < ratio < 0.0001:
        return "<0.01%"
    return "0%" if ratio == 0 else f"{100 * ratio:.2f}%" if ratio < 0.1 else f"{100 * ratio:.1f}%"


def duration_cell(ms: float | None) -> str:
    """A duration in seconds with one decimal, minutes if it is long; a dash if there is none.

    >>> duration_cell(2134.0), duration_cell(90_000.0), duration_cell(None)
    ('2.1 s', '1.5 min', '–')
    """
    if ms is None or not math.isfinite(ms):
        return "–"
    return f"{ms / 1e3:.1f} s" if ms < 60_000 else f"{ms / 60_000:.1f} min"
