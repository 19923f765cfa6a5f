"""The part of a report about the last minutes, as text and as JSON values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from slackwater.units import duration_text, percent
from slackwater.watching.outrun import outrun
from slackwater.watching.point import QUANTILES
from slackwater.watching.precision import PrecisionCounts
from slackwater.watching.series import RECENT_MS, Series
from slackwater.watching.verdict import clock_text, decision_text, lateness_text, quantiles_text

_DECISIONS = 3


def series_lines(series: Series | None) -> list[str]:
    """The last lines of a promise's report: the last minutes, lateness and latest decisions."""
    if series is None or series.last is None:
        return []
    recent, lines = series.recent_ledger(), []
    if series.about.kind == "completeness":
        lines.append(f"  last 5 min  {percent(recent.drop_ratio)} of {recent.on_time + recent.late:,} rows late")
        run_ms, span_ms = series.latest("run_lateness_ms"), series.latest("span_ms")
        lines.append(f"  lateness    {lateness_text(series)} in the last 5 min")
        if run_ms is not None:
            lines.append(f"              {quantiles_text(series.about, run_ms)} over the run")
        if span_ms:
            lines.append(f"  micro-batch {duration_text(span_ms)} of arrivals in the last one; they add to the wait")
        problem = outrun(series)
        if problem is not None:
            lines.append(f"  WARNING     {problem}")
    elif series.about.kind == "precision":
        now = series.latest("precision") or PrecisionCounts()
        earlier = series.point_at(series.last.at_ms - RECENT_MS)
        then = (earlier.precision if earlier is not None else None) or PrecisionCounts()
        evaluated, deferred = now.evaluated - then.evaluated, now.deferred - then.deferred
        lines.append(f"  last 5 min  {evaluated:,} evaluated, {deferred:,} deferred")
    elif recent.input:
        lines.append(f"  last 5 min  {percent(recent.shed / recent.input)} of {recent.input:,} rows shed")
    for number, decision in enumerate(list(series.decisions)[-_DECISIONS:]):
        word = "decisions" if number == 0 else ""
        lines.append(f"  {word:<10}  {clock_text(decision.at_ms)} {decision_text(series.about, decision)}")
    return lines


def _named(quantiles_ms: Sequence[float] | None) -> dict[str, float] | None:
    names = ["longest" if q == 1.0 else f"p{100 * q:g}" for q in QUANTILES]
    return None if quantiles_ms is None else dict(zip(names, quantiles_ms, strict=True))


def series_json(series: Series) -> dict[str, Any]:
    """The same as JSON values."""
    behind, precision = series.latest("lateness"), series.latest("precision")
    return {
        "minutes": RECENT_MS / 6e4,
        "batches": series.batches,
        "ledger": series.recent_ledger().as_json(),
        "drop_ratio": series.recent_ledger().drop_ratio,
        "lateness_ms": _named(series.recent_lateness_ms()),
        "run_lateness_ms": _named(series.latest("run_lateness_ms")),
        "last_batch": {
            "span_ms": series.latest("span_ms"),
            "behind_ms": _named(None if behind is None else behind.quantiles_ms),
        },
        "precision": None if precision is None else precision.as_json(),
        "kept_since_ms": series.since_ms,
        "outrun": outrun(series),
        "decisions": [asdict(decision) for decision in series.decisions],
    }
