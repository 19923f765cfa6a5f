"""The texts of the live page as HTML fragments. All names are escaped."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Iterable, Sequence
from html import escape
from urllib.parse import quote

from slackwater.units import duration_text
from slackwater.watching.outrun import outrun
from slackwater.watching.page_answers import answers_of
from slackwater.watching.precision import FATES, PrecisionCounts, deadline_texts
from slackwater.watching.series import Series
from slackwater.watching.verdict import (
    clock_text,
    heartbeat_text,
    lateness_text,
    verdict,
    wait_text,
)

_SIGNS = {"good": "✓", "bad": "✗", "open": "…"}
_SILENT_MS = 60_000.0


def overview(everything: Sequence[Series], chosen: str | None, now_ms: float) -> str:
    """One card per promise, broken promises first, and a summary line."""
    if not everything:
        return ""
    order = {"bad": 0, "open": 1, "good": 2}
    ranked = sorted(everything, key=lambda s: (s.ended is not None, order[verdict(s).tone]))
    broken = sum(1 for s in everything if s.kept is False and s.ended is None)
    running = len({s.about.query_id for s in everything if s.ended is None})
    quiet = len({s.about.query_id for s in everything if s.ended is None and _silent_ms(s, now_ms) > 0})
    summary = f"{running} {'query' if running == 1 else 'queries'} running, "
    summary += f"{quiet} without a report for a minute, " if quiet else ""
    summary += f"{broken} of {len(everything)} promises broken" if broken else "no promise broken"
    cards = "".join(_card(series, series.about.query_id == chosen, now_ms) for series in ranked)
    return f'<p class="sum">{summary}</p><nav class="cards">{cards}</nav>'


def _card(series: Series, chosen: bool, now_ms: float) -> str:
    about, state = series.about, verdict(series)
    current = ' aria-current="page"' if chosen else ""
    return (
        f'<a class="card {state.tone}{" ended" if series.ended else ""}" target="_top"{current}'
        f' href="?query={quote(about.query_id)}">'
        f'<b class="word">{_SIGNS[state.tone]} {state.word}</b> <span class="who">{escape(about.query)}</span>'
        f'<span class="what">{escape(state.promised)}: {escape(state.realised)}</span>'
        f'<span class="state">{escape(_query_state(series, now_ms))}</span></a>'
    )


def headline(series: Series, now_ms: float) -> str:
    """The main box of a promise: is it kept, by how much, since when; and the counts of its ledger."""
    about, state, ledger = series.about, verdict(series), series.ledger
    since = ""
    if state.since_ms is not None:
        since = f"since {clock_text(state.since_ms)} ({duration_text(max(0.0, now_ms - state.since_ms))})"
    facts = [f for f in (state.realised, state.margin, state.recently, since) if f]
    counts = [
        ("rows", ledger.input),
        ("on time", ledger.on_time),
        ("late", ledger.late),
        ("shed", ledger.shed),
        ("invalid", ledger.invalid),
    ]
    if about.kind == "precision":
        precision = series.latest("precision") or PrecisionCounts()
        counts = [("rows", precision.input)]
        counts += [(fate.replace("_", " "), getattr(precision, fate)) for fate in FATES]
    rows = "".join(f"<div><dt>{name}</dt><dd>{count:,}</dd></div>" for name, count in counts)
    return (
        f'<section class="headline {state.tone}" role="status">'
        f'<p class="big"><span class="word">{_SIGNS[state.tone]} {state.word}</span>'
        f' <span class="promised">{escape(state.promised)}</span></p>'
        f'<p class="facts">{" · ".join(escape(fact) for fact in facts)}</p>'
        f'<p class="who">{escape(about.query)} / {escape(about.promise)} by {escape(about.method)}'
        f" · {escape(_query_state(series, now_ms))}</p>"
        f'<dl class="answers">{_answers(series)}</dl>'
        f'<dl class="fates">{rows}{_current_values(series)}</dl>'
        f"{_outrun(series)}{_why_not_exact(series)}</section>"
    )


def _answers(series: Series) -> str:
    return "".join(f"<div><dt>{escape(asked)}</dt><dd>{escape(text)}</dd></div>" for asked, text in answers_of(series))


def section(question: str) -> str:
    """The heading of a section of charts and tables."""
    return f"<h2>{escape(question)}</h2>"


def _time_of_day(heartbeat: str) -> str:
    """A heartbeat text without its date.

    >>> _time_of_day("2026-01-31 12:30:00"), _time_of_day("none yet"), _time_of_day("1,234")
    ('12:30:00', 'none yet', '1,234')
    """
    return heartbeat.rpartition(" ")[2] if ":" in heartbeat else heartbeat


def _current_values(series: Series) -> str:
    """The latest values that matter for the kind of promise."""
    about = series.about
    if about.kind == "completeness":
        facts = [
            ("wait", wait_text(about, series.latest("wait_ms"))),
            ("heartbeat", _time_of_day(heartbeat_text(about, series.latest("heartbeat_ms")))),
            ("lateness", lateness_text(series)),
        ]
    elif about.kind == "timeliness":
        cost_s, load, capacity = (series.latest(f) for f in ("row_cost_s", "load_per_s", "capacity_per_s"))
        facts = [
            ("load", "–" if load is None else f"{load:,.0f} rows/s"),
            ("capacity", "–" if capacity is None else f"{capacity:,.0f} rows/s"),
            ("cost per row", "–" if cost_s is None else f"{1e6 * cost_s:,.3g} µs"),
        ]
    else:
        counts = series.latest("precision") or PrecisionCounts()
        names = ("queries", "evaluated", "deferred", "guessed", "withheld")
        facts = [(name, f"{getattr(counts, name):,}") for name in names]
        facts += deadline_texts(counts)
    return "".join(f"<div><dt>{name}</dt><dd>{escape(text)}</dd></div>" for name, text in facts)


def _outrun(series: Series) -> str:
    problem = outrun(series)
    return "" if problem is None else f'<p class="facts" role="alert">⚠ {escape(problem)}</p>'


def _why_not_exact(series: Series) -> str:
    return "".join(f'<p class="note">The ledger is not exact: {escape(reason)}.</p>' for reason in series.ledger.why)


def _query_state(series: Series, now_ms: float) -> str:
    if series.ended is not None:
        return series.ended
    silent_ms = _silent_ms(series, now_ms)
    return f"no report for {duration_text(silent_ms)}" if silent_ms else "running"


def _silent_ms(series: Series, now_ms: float) -> float:
    """How long a running query has not reported, if that is a minute or more; else 0."""
    silent_ms = now_ms - series.seen_ms
    return 0.0 if math.isnan(silent_ms) or silent_ms < _SILENT_MS else silent_ms


def empty(folders: Iterable[str]) -> str:
    """The page without any query: what to do, and the folders that were searched."""
    items = "".join(f"<li><code>{escape(folder)}</code></li>" for folder in folders)
    searched = f"<p>Folders searched:</p><ul>{items}</ul>" if items else ""
    return (
        '<section class="empty"><h2>No query with a promise was found</h2>'
        "<p>A query appears here after its first micro-batch. Put a promise on a stream and start the query:</p>"
        '<pre>events = sw.with_drop_ratio(events, "ts", 0.01)</pre>'
        "<p>or run a demonstration in another terminal:</p><pre>slackwater demo</pre>"
        f"{searched}<p>For a query with its own location, run <code>slackwater watch LOCATION</code>. LOCATION is the "
        "value of <code>location=</code> or <code>spark.slackwater.location</code>, or the checkpoint.</p></section>"
    )


def footer(now_ms: float) -> str:
    """The time of the last update."""
    return f'<p class="foot">{dt.datetime.fromtimestamp(now_ms / 1e3, dt.UTC):%H:%M:%S} UTC · all times are UTC</p>'
