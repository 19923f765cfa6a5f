"""What standing queries did in a micro-batch, in counts."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, fields


@dataclass(frozen=True, slots=True)
class ShardCounts:
    """The counts of one shard, or of several together.

    ``queries`` and ``withheld`` are as they stand; the rest is of this micro-batch: queries ``evaluated``, those with
    streams that had to be ``guessed``; evaluations that ``judged`` an answer held until then, how many of those found
    it within its bound (``hits``) and how many the confidence ``expected``; ticks looked back on in random audits
    (``audited``), those ``within`` the bound among them and how many the confidence ``asked`` for.
    """

    queries: int = 0
    withheld: int = 0
    evaluated: int = 0
    guessed: int = 0
    judged: int = 0
    hits: int = 0
    expected: float = 0.0
    audited: float = 0.0
    within: float = 0.0
    asked: float = 0.0

    @classmethod
    def together(cls, parts: Iterable[ShardCounts]) -> ShardCounts:
        """The sum.

        >>> ShardCounts.together([ShardCounts(queries=2, evaluated=1), ShardCounts(queries=3)]).queries
        5
        """
        told = list(parts)
        return cls(*(sum(getattr(part, field.name) for part in told) for field in fields(cls)))
