"""Standing queries over a run: how many were evaluated, how many let stand, and how good the answers were."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from slackwater.kernel.standing.shard_counts import ShardCounts

ENOUGH_JUDGED = 400
"""Evaluations before a verdict: one in eight is audited, and of fifty audits a share can be told."""


@dataclass(frozen=True, slots=True)
class Standing(ShardCounts):
    """Counts over the whole run, but for ``queries`` and ``withheld``, which are as they stand.

    ``fidelity`` is the share of time within the bound, from the random audits that the method makes anyway.
    Where it makes none (MAX, MIN and the open-loop methods) the hit rate stands in for it, which asks for more.
    """

    deferred: int = 0

    def after(self, told: ShardCounts, *, whole: bool) -> Standing:
        """The counts after one more micro-batch.

        Where not every shard was reached (``whole`` is false) the queries are as many as before, and those of the
        other shards were let stand too.

        >>> Standing().after(ShardCounts(queries=10, withheld=1, evaluated=4), whole=True).deferred
        5
        """
        queries, withheld = (told.queries, told.withheld) if whole else (self.queries, self.withheld)
        deferred = self.deferred + max(queries - withheld - told.evaluated, 0)
        counts = {**asdict(ShardCounts.together([self, told])), "queries": queries, "withheld": withheld}
        return Standing(**counts, deferred=deferred)

    @property
    def hit_ratio(self) -> float | None:
        """Evaluations that found the answer held until then within its bound, among all that could tell."""
        return self.hits / self.judged if self.judged else None

    @property
    def fidelity(self) -> float | None:
        """The share of time within the bound, as audited."""
        return self.within / self.audited if self.audited else None

    @property
    def evaluated_ratio(self) -> float | None:
        """Queries evaluated among those that could have been."""
        return self.evaluated / (self.evaluated + self.deferred) if self.evaluated else None

    @property
    def kept(self) -> bool | None:
        """Whether answers were within their bounds for as much of the time as was promised; None: too few to tell."""
        if self.judged < ENOUGH_JUDGED:
            return None
        return self.within >= self.asked if self.audited else self.hits >= self.expected

    def as_json(self) -> dict[str, Any]:
        """The counts as plain values."""
        return asdict(self)


def cause_of(told: ShardCounts) -> str:
    """Why a micro-batch did what it did, in words."""
    if told.guessed:
        return "guessing: streams are silent"
    if told.withheld:
        return "withheld: queries lean on streams never seen"
    return "answers stand until they are due"
