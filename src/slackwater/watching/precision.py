"""Counts of a precision promise: standing queries evaluated and deferred, and how good the answers were."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from slackwater.control.ledger import Ledger
from slackwater.kernel.standing.shard_counts import ShardCounts

ENOUGH_JUDGED = 400
"""Evaluations before there is a verdict. One in eight is audited, so these are about fifty audits."""


FATES = ("used", "out_of_order", "invalid")
"""What may become of a row."""


_CURRENT = ("queries", "withheld", "overdue", "waiting")
"""Counts that are not added up."""


@dataclass(frozen=True, slots=True)
class PrecisionCounts(ShardCounts):
    """Counts over the whole run; ``queries``, ``withheld``, ``overdue`` and ``waiting`` are the current numbers.

    Rows: input = used + out of order + invalid. The shards keep these counts in their state, and a micro-batch that
    covers every shard brings them. So they are right again after a crash that lost a report; until then the ledger has
    ``unreported_batches``.

    ``fidelity`` is the share of time within the bound, measured by the method's random audits. Methods without audits
    (MAX, MIN and the open-loop methods) are judged by ``hit_ratio`` instead, which is stricter.
    """

    deferred: int = 0
    unreported_batches: int = 0

    def after(self, batch: ShardCounts, *, whole: bool, missed: int = 0) -> PrecisionCounts:
        """The counts after one more micro-batch.

        ``whole`` is false if ``batch`` does not cover every shard. The current numbers then stay, and the queries of
        the other shards count as deferred. ``missed`` micro-batches before it were not reported.

        >>> PrecisionCounts().after(ShardCounts(queries=10, withheld=1, evaluated=4), whole=True).deferred
        5
        """
        current = {name: getattr(batch if whole else self, name) for name in _CURRENT}
        waiting = current["withheld"] + batch.evaluated + batch.postponed
        deferred = self.deferred + max(current["queries"] - waiting, 0)
        counts = {**asdict(ShardCounts.together([self, batch])), **current}
        if whole:
            counts |= {f"{all_}{fate}": getattr(batch, f"all_{fate}") for fate in FATES for all_ in ("", "all_")}
        unreported = 0 if whole else self.unreported_batches + missed
        return PrecisionCounts(**counts, deferred=deferred, unreported_batches=unreported)

    @property
    def input(self) -> int:
        """All rows that were read."""
        return self.used + self.out_of_order + self.invalid

    @property
    def ledger(self) -> Ledger:
        """The rows by what became of them: used rows are on time, rows out of order are late."""
        return Ledger(self.used, self.out_of_order, invalid=self.invalid, unreported_batches=self.unreported_batches)

    @property
    def hit_ratio(self) -> float | None:
        """Evaluations that found the previous answer still within its bound / evaluations with a previous answer."""
        return self.hits / self.judged if self.judged else None

    @property
    def fidelity(self) -> float | None:
        """The audited share of time in which answers were within their bound."""
        return self.within / self.audited if self.audited else None

    @property
    def evaluated_ratio(self) -> float | None:
        """Evaluated / (evaluated + deferred)."""
        return self.evaluated / (self.evaluated + self.deferred) if self.evaluated else None

    @property
    def evaluation_us(self) -> float | None:
        """Processor time per evaluation, in microseconds; None if it was not measured."""
        return 1e3 * self.evaluation_ms / self.evaluated if self.evaluated and self.evaluation_ms else None

    @property
    def kept(self) -> bool | None:
        """Whether answers were within their bounds for the promised share of time; None with too few evaluations."""
        if self.judged < ENOUGH_JUDGED:
            return None
        return self.within >= self.asked if self.audited else self.hits >= self.expected

    def as_json(self) -> dict[str, Any]:
        """The counts as JSON values."""
        return asdict(self)


def precision_cause(batch: ShardCounts) -> str:
    """The cause shown for a micro-batch."""
    if batch.postponed:
        return "overloaded: due queries wait for the processor"
    if batch.guessed:
        return "guessing: streams are silent"
    if batch.withheld:
        return "withheld: queries need streams that were never seen"
    return "answers stand until they are due"


def deadline_texts(counts: PrecisionCounts) -> list[tuple[str, str]]:
    """What page and notebook show about deadlines: names and numbers."""
    texts = [("missed deadlines", f"{counts.missed:,}")]
    if counts.missed:
        texts += [("penalty", f"{counts.penalty:,.4g}"), ("overdue", f"{counts.overdue:,}")]
    return texts
