"""The tables of the live page as HTML fragments. All names are escaped."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from slackwater.units import duration_text
from slackwater.watching.age import is_recorded
from slackwater.watching.series import ClosedWindows, Series
from slackwater.watching.verdict import clock_text, decision_text, wait_text

_MAX_ROWS = 12
_MAX_WINDOWS = 6


def decisions(series: Series) -> str:
    """The latest decisions and their causes, latest first."""
    lines = [
        (
            clock_text(d.at_ms),
            f"batch {d.batch}",
            decision_text(series.about, d),
            f"{d.batches} ×" if d.batches > 1 else "",
        )
        for d in list(series.decisions)[-_MAX_ROWS:][::-1]
    ]
    return _table("Decisions", ("at", "", "cause", ""), lines, "None yet: the method is still learning.", left=3)


def windows(series: Series) -> str:
    """The windows that were closed last, with their late panes."""
    lines = [
        (
            f"{clock_text(c.start_ms)}–{clock_text(c.end_ms)}",
            f"{c.results:,}",
            f"{c.late_panes:,}",
            _published_after(series, c),
        )
        for c in list(series.closed)[-_MAX_WINDOWS:][::-1]
    ]
    empty = "None yet. Windows of sw.sql and sw.window appear here when they close."
    return _table("Latest windows", ("newest window", "results", "late panes", "published after"), lines, empty)


def _published_after(series: Series, closed: ClosedWindows) -> str:
    """How long after its end the newest window was published; empty for numbers and recorded streams."""
    if series.about.numeric_order or series.last is None or is_recorded(series.last):
        return ""
    return duration_text(closed.at_ms - closed.end_ms)


def results(series: Series) -> str:
    """The results of the windows that were closed last, if the command prints the results itself."""
    return _table("Latest results", series.latest_results.columns, series.latest_results.rows, "")


def sources(series: Series) -> str:
    """The sources that are furthest behind."""
    furthest = sorted(series.sources.items(), key=lambda item: -item[1].behind_ms)[:_MAX_ROWS]
    lines = [(name, f"{source.rows:,}", wait_text(series.about, source.behind_ms)) for name, source in furthest]
    return _table("Sources, furthest behind first", ("source", "rows", "behind the clock"), lines, "")


def losses(series: Series) -> str:
    """The sources that lost most rows; what was lost by others is in the last line."""
    title = "Lost by source, most first"
    lost = sorted(series.losses.items(), key=lambda item: -(item[1].late + item[1].invalid))[:_MAX_ROWS]
    lines = [(name, f"{loss.late:,}", f"{loss.invalid:,}") for name, loss in lost]
    late = series.ledger.late - sum(loss.late for _, loss in lost)
    invalid = series.ledger.invalid - sum(loss.invalid for _, loss in lost)
    if lost and (late > 0 or invalid > 0):
        lines.append(("all others", f"{max(late, 0):,}", f"{max(invalid, 0):,}"))
    empty_text = "" if series.sources else "Name the sources of the rows (source=, SOURCE) to see where rows are lost."
    return _table(title, ("source", "late", "invalid"), lines, empty_text)


def problem_rows(series: Series) -> str:
    """The last sampled rows that were late or invalid."""
    lines = [(clock_text(row.at_ms), row.problem, row.row) for row in reversed(series.problem_rows)]
    empty_text = (
        "No rows are sampled. Set spark.slackwater.sampleRows=true before the query starts to see one late and one "
        "invalid row of each micro-batch here."
    )
    if not (series.ledger.late or series.ledger.invalid):
        empty_text = "There was none."
    title = "Late and invalid rows, a sample: one of each per micro-batch"
    return _table(title, ("at", "problem", "row"), lines, empty_text, left=3)


def _table(title: str, heads: Sequence[str], lines: Sequence[Sequence[str]], empty_text: str, left: int = 1) -> str:
    """A table whose first ``left`` columns are left-aligned; without lines ``empty_text``, or nothing."""
    if not lines:
        return f"<h3>{title}</h3><p class='note'>{empty_text}</p>" if empty_text else ""

    def cells(tag: str, texts: Sequence[str]) -> str:
        return "".join(
            f"<{tag}{' class=left' if number < left else ''}>{escape(text)}</{tag}>"
            for number, text in enumerate(texts)
        )

    body = "".join(f"<tr>{cells('td', line)}</tr>" for line in lines)
    return f"<h3>{title}</h3><table><thead><tr>{cells('th', heads)}</tr></thead><tbody>{body}</tbody></table>"
