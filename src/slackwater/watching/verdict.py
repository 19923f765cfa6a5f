"""The state of a promise as text: is it kept, by how much, since when."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from dataclasses import dataclass

from slackwater.units import duration_text, percent
from slackwater.watching.point import QUANTILES
from slackwater.watching.precision import PrecisionCounts
from slackwater.watching.series import About, Decision, Series

NOTHING_PUBLISHED = "nothing published yet"
"""The word for a promise of a query without results: it is neither kept nor broken."""
NOT_MEASURED = "no delay measured yet"
"""The word for a delay promise whose first rows have come through: their delay is not known."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """The state of a promise as texts.

    ``tone`` is good, bad or open and selects a colour; ``word`` says the same without colour. ``margin`` compares
    ``realised`` with ``promised``.
    """

    tone: str
    word: str
    promised: str
    realised: str
    recently: str
    margin: str
    since_ms: float | None


def verdict(series: Series) -> Verdict:
    """The state of a promise after its latest micro-batch."""
    about, kept = series.about, series.kept
    tone, word = ("open", "LEARNING") if kept is None else ("good", "KEPT") if kept else ("bad", "BROKEN")
    nothing_published = kept is None and series.published is False
    if nothing_published:
        word = NOTHING_PUBLISHED.upper()
    if about.kind == "completeness":
        ledger, recent = series.ledger, series.recent_ledger()
        if about.promised == 0 and series.points and not nothing_published:
            word = "BEST EFFORT"
        return Verdict(
            tone,
            word,
            promise_text(about),
            f"{percent(ledger.drop_ratio)} late",
            f"{percent(recent.drop_ratio)} in the last 5 min",
            _margin(ledger.drop_ratio, about.promised) if kept is not None else "",
            series.since_ms,
        )
    if about.kind == "timeliness":
        mean_s, now_s = series.latest("mean_delay_s"), series.latest("delay_s")
        return Verdict(
            tone,
            word,
            promise_text(about),
            f"{_seconds(mean_s)} on average",
            f"{_seconds(now_s)} in the last batch",
            "" if mean_s is None else _margin(mean_s, series.latest("mean_target_s") or about.promised),
            series.since_ms,
        )
    counts = series.latest("precision") or PrecisionCounts()
    return Verdict(
        tone,
        word,
        promise_text(about),
        _fidelity(counts),
        "" if counts.hit_ratio is None else f"{percent(counts.hit_ratio)} when next evaluated",
        "" if counts.evaluated_ratio is None else f"{percent(counts.evaluated_ratio)} evaluated, the rest deferred",
        series.since_ms,
    )


def promise_text(about: About) -> str:
    """The promise as it is written in a query text.

    >>> promise_text(About("q", "q", "p", "completeness", 0.01, "budgeted-quantile"))
    'DRATIO 1%'
    """
    if about.kind == "completeness":
        return f"DRATIO {percent(about.promised)}"
    if about.kind == "timeliness":
        return f"DELAY {duration_text(about.promised * 1e3)}"
    return f"CONFIDENCE {percent(about.promised)}" if about.promised else "CONFIDENCE of each query"


def wait_text(about: About, wait_ms: float | None) -> str:
    """A wait as text: a duration, or a distance in the unit of the numeric event-time column."""
    if wait_ms is None:
        return "–"
    return f"{wait_ms:,.4g}" if about.numeric_order else duration_text(wait_ms)


def decision_text(about: About, decision: Decision) -> str:
    """A decision's cause, and its wait or shed ratio."""
    outcome = ""
    if decision.wait_ms is not None:
        outcome = f", wait {wait_text(about, decision.wait_ms)}"
    elif decision.shed_ratio:
        outcome = f", {percent(decision.shed_ratio)} shed"
    return decision.cause + outcome


def clock_text(at_ms: float) -> str:
    """The time of day in UTC.

    >>> clock_text(0.0)
    '00:00:00'
    """
    return f"{dt.datetime.fromtimestamp(at_ms / 1e3, dt.UTC):%H:%M:%S}"


def heartbeat_text(about: About, heartbeat_ms: float | None) -> str:
    """A heartbeat as text: a time in UTC, or a number."""
    if heartbeat_ms is None:
        return "none yet"
    if about.numeric_order:
        return f"{heartbeat_ms:,.0f}"
    return f"{dt.datetime.fromtimestamp(heartbeat_ms / 1e3, dt.UTC):%Y-%m-%d %H:%M:%S}"


def lateness_text(series: Series) -> str:
    """The quantiles of lateness in the last five minutes."""
    return quantiles_text(series.about, series.recent_lateness_ms())


def quantiles_text(about: About, quantiles_ms: Sequence[float] | None) -> str:
    """Quantiles of lateness as text.

    >>> quantiles_text(About("q", "q", "p", "completeness", 0.01, "budgeted-quantile"), (100.0, 150.0, 300.0, 2000.0))
    '50% 100 ms, 90% 150 ms, 99% 300 ms, longest 2 s'
    """
    if quantiles_ms is None:
        return "–"
    names = ["longest" if q == 1.0 else f"{100 * q:g}%" for q in QUANTILES]
    values = zip(names, quantiles_ms, strict=True)
    return ", ".join(f"{name} {wait_text(about, max(value, 0.0))}" for name, value in values)


def _fidelity(counts: PrecisionCounts) -> str:
    if counts.fidelity is None:
        return "–" if counts.hit_ratio is None else "share of time not audited"
    return f"within the bound {percent(counts.fidelity)} of the time by {audits_text(counts)}"


def audits_text(counts: PrecisionCounts) -> str:
    """How many audits the fidelity comes from."""
    return "1 audit" if counts.audits == 1 else f"{counts.audits:,} audits"


def _margin(realised: float, promised: float) -> str:
    """
    >>> _margin(0.005, 0.01), _margin(0.02, 0.01)
    ('50% of what was promised', '2× what was promised')
    """
    share = realised / promised if promised else 0.0
    return f"{100 * share:.3g}% of what was promised" if share <= 1 else f"{share:.3g}× what was promised"


def _seconds(seconds: float | None) -> str:
    return "–" if seconds is None else duration_text(seconds * 1e3)
