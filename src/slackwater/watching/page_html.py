"""The words of the page: fragments of HTML from series, with every name escaped."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Iterable, Sequence
from html import escape
from urllib.parse import quote

from slackwater.units import duration_text
from slackwater.watching.series import Series
from slackwater.watching.standing import Standing
from slackwater.watching.verdict import (
    clock_text,
    decision_text,
    heartbeat_text,
    lateness_text,
    verdict,
    wait_text,
)

_SIGNS = {"good": "✓", "bad": "✗", "open": "…"}
_QUIET_MS = 60_000.0
_ROWS = 12


def overview(everything: Sequence[Series], chosen: str | None, now_ms: float) -> str:
    """One card a promise: its word, its amount, since when. Broken ones come first."""
    if not everything:
        return ""
    order = {"bad": 0, "open": 1, "good": 2}
    ranked = sorted(everything, key=lambda s: (s.ended is not None, order[verdict(s).tone]))
    broken = sum(1 for s in everything if s.kept is False and s.ended is None)
    running = len({s.about.query_id for s in everything if s.ended is None})
    said = f"{running} {'query' if running == 1 else 'queries'} running, " + (
        f"{broken} of {len(everything)} promises broken" if broken else "no promise broken"
    )
    cards = "".join(_card(series, series.about.query_id == chosen, now_ms) for series in ranked)
    return f'<p class="sum">{said}</p><nav class="cards">{cards}</nav>'


def _card(series: Series, chosen: bool, now_ms: float) -> str:
    about, stands = series.about, verdict(series)
    current = ' aria-current="page"' if chosen else ""
    return (
        f'<a class="card {stands.tone}{" ended" if series.ended else ""}" target="_top"{current}'
        f' href="?query={quote(about.query_id)}">'
        f'<b class="word">{_SIGNS[stands.tone]} {stands.word}</b> <span class="who">{escape(about.query)}</span>'
        f'<span class="what">{escape(stands.promised)}: {escape(stands.realised)}</span>'
        f'<span class="state">{escape(_state(series, now_ms))}</span></a>'
    )


def headline(series: Series, now_ms: float) -> str:
    """A promise, big: is it kept, by how much, since when; and where every row went."""
    about, stands, ledger = series.about, verdict(series), series.ledger
    since = ""
    if stands.since_ms is not None:
        since = f"since {clock_text(stands.since_ms)} ({duration_text(max(0.0, now_ms - stands.since_ms))})"
    facts = [f for f in (stands.realised, stands.margin, stands.recently, since) if f]
    fates = [
        ("rows", ledger.input),
        ("on time", ledger.on_time),
        ("late", ledger.late),
        ("shed", ledger.shed),
        ("invalid", ledger.invalid),
    ]
    if about.kind == "precision":
        fates = []  # it promises nothing of single rows
    rows = "".join(f"<div><dt>{fate}</dt><dd>{count:,}</dd></div>" for fate, count in fates)
    return (
        f'<section class="headline {stands.tone}" role="status">'
        f'<p class="big"><span class="word">{_SIGNS[stands.tone]} {stands.word}</span>'
        f' <span class="promised">{escape(stands.promised)}</span></p>'
        f'<p class="facts">{" · ".join(escape(fact) for fact in facts)}</p>'
        f'<p class="who">{escape(about.query)} / {escape(about.promise)} by {escape(about.method)}'
        f" · {escape(_state(series, now_ms))}</p>"
        f'<dl class="fates">{rows}{_now(series)}</dl>'
        f"{_unreported(series)}</section>"
    )


def _time_of_day(heartbeat: str) -> str:
    """Without the day, where there is room for the time alone.

    >>> _time_of_day("2026-01-31 12:30:00"), _time_of_day("none yet"), _time_of_day("1,234")
    ('12:30:00', 'none yet', '1,234')
    """
    return heartbeat.rpartition(" ")[2] if ":" in heartbeat else heartbeat


def _now(series: Series) -> str:
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
            ("cost of a row", "–" if cost_s is None else f"{1e6 * cost_s:,.3g} µs"),
        ]
    else:
        standing = series.latest("standing") or Standing()
        words = ("queries", "evaluated", "deferred", "guessed", "withheld")
        facts = [(word, f"{getattr(standing, word):,}") for word in words]
    return "".join(f"<div><dt>{name}</dt><dd>{escape(text)}</dd></div>" for name, text in facts)


def _unreported(series: Series) -> str:
    count = series.ledger.unreported_batches
    return f'<p class="note">{count} batches were committed just before a crash: in no count.</p>' if count else ""


def _state(series: Series, now_ms: float) -> str:
    if series.ended is not None:
        return series.ended
    silent_ms = now_ms - series.seen_ms
    if math.isnan(silent_ms) or silent_ms < _QUIET_MS:
        return "running"
    return f"no sign of life for {duration_text(silent_ms)}"


def decisions(series: Series) -> str:
    """What was decided, latest first, and why."""
    lines = [
        (
            clock_text(d.at_ms),
            f"batch {d.batch}",
            decision_text(series.about, d),
            f"{d.batches} ×" if d.batches > 1 else "",
        )
        for d in list(series.decisions)[-_ROWS:][::-1]
    ]
    return _table("Decisions", ("at", "", "cause", ""), lines, "None yet: it is still learning.", left=3)


def windows(series: Series) -> str:
    """The windows that closed last, with their late panes."""
    lines = [
        (
            f"{clock_text(c.start_ms)}–{clock_text(c.end_ms)}",
            f"{c.results:,}",
            f"{c.late_panes:,}",
            duration_text(c.at_ms - c.end_ms) if not series.about.numeric_order else "",
        )
        for c in list(series.closed)[-_ROWS:][::-1]
    ]
    empty = "None yet. Windows of sw.sql and sw.window are shown here once they close."
    return _table("Latest windows", ("newest window", "results", "late panes", "published after"), lines, empty)


def results(series: Series) -> str:
    """What the windows that closed last came to, where the results pass through our own hands."""
    return _table("Latest results", series.shown.columns, series.shown.rows, "")


def sources(series: Series) -> str:
    """The sources that are furthest behind."""
    furthest = sorted(series.sources.items(), key=lambda item: -item[1].behind_ms)[:_ROWS]
    lines = [(name, f"{heard.rows:,}", wait_text(series.about, heard.behind_ms)) for name, heard in furthest]
    return _table("Sources, furthest behind first", ("source", "rows", "behind the clock"), lines, "")


def empty(where: Iterable[str]) -> str:
    """What to do when there is nothing to see."""
    places = "".join(f"<li><code>{escape(place)}</code></li>" for place in where)
    looked = f"<p>Looking in:</p><ul>{places}</ul>" if places else ""
    return (
        '<section class="empty"><h2>No promise has been heard of yet</h2>'
        "<p>A query appears here after its first micro-batch, by itself. Put a promise on a stream and start it:</p>"
        '<pre>events = sw.with_drop_ratio(events, "ts", 0.01)</pre>'
        "<p>or see a generated one in another terminal:</p><pre>slackwater demo</pre>"
        f"{looked}<p>A query with a location of its own is found by it: "
        "<code>slackwater watch LOCATION</code>, the folder that was given as <code>location=</code>, "
        "<code>spark.slackwater.location</code>, or its checkpoint.</p></section>"
    )


def footer(now_ms: float) -> str:
    """When the page was last brought up to date."""
    return f'<p class="foot">{dt.datetime.fromtimestamp(now_ms / 1e3, dt.UTC):%H:%M:%S} UTC · all times are UTC</p>'


def _table(title: str, heads: Sequence[str], lines: Sequence[Sequence[str]], none: str, left: int = 1) -> str:
    if not lines:
        return f"<h3>{title}</h3><p class='note'>{none}</p>" if none else ""

    def cells(tag: str, texts: Sequence[str]) -> str:
        return "".join(
            f"<{tag}{' class=left' if number < left else ''}>{escape(text)}</{tag}>"
            for number, text in enumerate(texts)
        )

    body = "".join(f"<tr>{cells('td', line)}</tr>" for line in lines)
    return f"<h3>{title}</h3><table><thead><tr>{cells('th', heads)}</tr></thead><tbody>{body}</tbody></table>"
