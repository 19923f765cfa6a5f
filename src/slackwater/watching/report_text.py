"""What a report says of the last minutes, in text and as plain values."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from slackwater.units import percent
from slackwater.watching.point import QUANTILES
from slackwater.watching.series import RECENT_MS, Series
from slackwater.watching.standing import Standing
from slackwater.watching.verdict import clock_text, decision_text, lateness_text

_DECISIONS = 3


def series_lines(series: Series | None) -> list[str]:
    """Lines for the end of a promise's report."""
    if series is None or series.last is None:
        return []
    recent, lines = series.ledger_of_the_last(), []
    if series.about.kind == "completeness":
        lines.append(f"  last 5 min  {percent(recent.drop_ratio)} of {recent.on_time + recent.late:,} rows late")
        lines.append(f"  lateness    {lateness_text(series)}")
    elif series.about.kind == "precision":
        standing, before = series.latest("standing") or Standing(), series.at(series.last.at_ms - RECENT_MS)
        then = (before.standing if before is not None else None) or Standing()
        evaluated, deferred = standing.evaluated - then.evaluated, standing.deferred - then.deferred
        lines.append(f"  last 5 min  {evaluated:,} evaluated, {deferred:,} deferred")
    elif recent.input:
        lines.append(f"  last 5 min  {percent(recent.shed / recent.input)} of {recent.input:,} rows shed")
    for number, decision in enumerate(list(series.decisions)[-_DECISIONS:]):
        word = "decisions" if number == 0 else ""
        lines.append(f"  {word:<10}  {clock_text(decision.at_ms)} {decision_text(series.about, decision)}")
    return lines


def series_json(series: Series) -> dict[str, Any]:
    """The same as plain values, under stable names."""
    lateness, standing = series.latest("lateness"), series.latest("standing")
    names = ["longest" if q == 1.0 else f"p{100 * q:g}" for q in QUANTILES]
    return {
        "minutes": RECENT_MS / 6e4,
        "batches": series.batches,
        "ledger": series.ledger_of_the_last().as_json(),
        "drop_ratio": series.ledger_of_the_last().drop_ratio,
        "lateness_ms": None if lateness is None else dict(zip(names, lateness.quantiles_ms, strict=True)),
        "standing": None if standing is None else standing.as_json(),
        "kept_since_ms": series.since_ms,
        "decisions": [asdict(decision) for decision in series.decisions],
    }
