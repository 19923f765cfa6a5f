"""What ``report`` says about a precision promise."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from slackwater.control.deferral.normality import NORMAL_LEVEL
from slackwater.control.ledger import Ledger
from slackwater.units import percent
from slackwater.watching.precision import FATES, PrecisionCounts
from slackwater.watching.report_text import series_json, series_lines
from slackwater.watching.series import Series
from slackwater.watching.verdict import NOTHING_PUBLISHED, audits_text, promise_text

_NAMED = 3
_TOO_FEW = "too few to tell"


@dataclass(frozen=True, slots=True)
class PrecisionReport:
    """One precision promise and how it has been kept so far.

    ``missed`` micro-batches were committed after the last one of the series.
    """

    series: Series
    missed: int = 0

    @property
    def name(self) -> str:
        """The promise's name."""
        return self.series.about.promise

    @property
    def ledger(self) -> Ledger:
        """The rows by what became of them: used rows are on time, rows out of order are late."""
        return self.counts.ledger + Ledger(unreported_batches=self.missed)

    @property
    def counts(self) -> PrecisionCounts:
        """The counts over the run."""
        return self.series.latest("precision") or PrecisionCounts()

    @property
    def kept(self) -> bool:
        """Whether the audits so far keep the promise; True while there are too few to tell, but not without answers."""
        return self.verdict in ("kept", _TOO_FEW)

    @property
    def verdict(self) -> str:
        """``kept``, ``broken``, ``too few to tell`` or ``nothing published yet``."""
        if not self.counts.evaluated:
            return NOTHING_PUBLISHED
        return {None: _TOO_FEW, True: "kept", False: "broken"}[self.counts.kept]

    def as_json(self) -> dict[str, Any]:
        """The report as plain values."""
        return {
            "name": self.name,
            "method": self.series.about.method,
            "promised_confidence": self.series.about.promised or None,
            "kept": self.kept,
            "verdict": self.verdict,
            "fidelity": self.counts.fidelity,
            "audits": self.counts.audits,
            "hit_ratio": self.counts.hit_ratio,
            **{
                word: getattr(self.counts, word) for word in ("queries", "evaluated", "deferred", "guessed", "withheld")
            },
            "deadlines": {word: getattr(self.counts, word) for word in ("missed", "overdue", "penalty", "postponed")},
            "evaluation_us": self.counts.evaluation_us,
            "normality": dict(self.series.normality),
            "rows": {word: getattr(self.counts, word) for word in ("input", *FATES, "waiting")},
            "recent": series_json(self.series),
        }

    def __str__(self) -> str:
        counts, about = self.counts, self.series.about
        word = "BROKEN" if self.verdict == "broken" else self.verdict
        fidelity = "not audited"
        if counts.fidelity is not None:
            fidelity = f"{percent(counts.fidelity)} of the time by {audits_text(counts)}"
        hits = "–" if counts.hit_ratio is None else percent(counts.hit_ratio)
        return "\n".join(
            [
                f"{self.name}: {promise_text(about)} by {about.method}",
                f"  within      {fidelity}, {hits} when next evaluated ({word})",
                f"  queries     {counts.queries:,}, {counts.withheld:,} of them withheld",
                f"  evaluated   {counts.evaluated:,} ({counts.guessed:,} with silent streams), "
                f"{counts.deferred:,} deferred",
                f"  deadlines   {counts.missed:,} missed (penalty {counts.penalty:,.4g}), {counts.overdue:,} overdue",
                *_processor_lines(counts),
                *_normality_lines(self.series.normality),
                f"  ledger      {counts.input:,} rows = {counts.used:,} used + {counts.out_of_order:,} out of order + "
                f"{counts.invalid:,} invalid" + (f"; {counts.waiting:,} wait" if counts.waiting else ""),
                *(f"  not exact   {reason}" for reason in self.ledger.why),
                *series_lines(self.series),
            ]
        )


def _processor_lines(counts: PrecisionCounts) -> list[str]:
    """What evaluations cost, and how often there was no time for them; nothing if it was not measured."""
    if counts.evaluation_us is None:
        return []
    waited = f"{counts.postponed:,} times a due query waited" if counts.postponed else "no due query waited"
    return [f"  processor   {counts.evaluation_us:,.3g} µs per evaluation, {waited}"]


def _normality_lines(p_values: dict[str, float]) -> list[str]:
    """How many streams have normal increments, and the names of the least normal ones; nothing while untested."""
    if not p_values:
        return []
    others = sorted((p, stream) for stream, p in p_values.items() if p < NORMAL_LEVEL)
    named = f", not in {', '.join(f'{stream} (p {p:.2g})' for p, stream in others[:_NAMED])}" if others else ""
    more = f" and {len(others) - _NAMED} more" if len(others) > _NAMED else ""
    return [f"  increments  normal in {len(p_values) - len(others):,} of {len(p_values):,} streams tested{named}{more}"]
