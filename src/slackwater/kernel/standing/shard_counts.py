"""What standing queries did in one micro-batch, as counts."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, fields, replace


@dataclass(frozen=True, slots=True)
class ShardCounts:
    """The counts of one shard in one micro-batch, or the sum over several shards.

    - ``queries``: registered queries; ``withheld``: those without an answer.
    - ``evaluated``: queries evaluated; ``guessed``: those of them with silent streams.
    - ``judged``: evaluations that could check the previous answer, and with a method without audits also looks at
      overdue answers; ``hits``: those that found it within its bound; ``expected``: the hits that the confidence asks
      for.
    - ``missed``: deadlines that passed without an evaluation; ``penalty``: the expected extra error that this caused
      (Zhu 2004, Eq. 18); ``overdue``: queries whose deadline is over now.
    - ``postponed``: due queries left to a later tick for want of time; ``evaluation_ms``: processor time of the
      evaluations.
    - ``audited``: ticks covered by random audits; ``within``: those of them within the bound; ``asked``: those that the
      confidence asks for; ``audits``: how many audits there were.
    - ``used``, ``out_of_order``, ``invalid``: rows by what became of them; their sum is the input.
    - ``waiting``: rows that wait for the heartbeat now; they are not in the input yet.
    - ``all_used``, ``all_out_of_order``, ``all_invalid``: the same, since the query's first micro-batch.
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
    missed: int = 0
    penalty: float = 0.0
    overdue: int = 0
    postponed: int = 0
    evaluation_ms: float = 0.0
    used: int = 0
    out_of_order: int = 0
    invalid: int = 0
    waiting: int = 0
    all_used: int = 0
    all_out_of_order: int = 0
    all_invalid: int = 0
    audits: int = 0

    def without_rows(self) -> ShardCounts:
        """The same counts without the rows, for a shard whose rows another shard counts."""
        return replace(self, **dict.fromkeys(_ROWS, 0))

    @classmethod
    def together(cls, parts: Iterable[ShardCounts]) -> ShardCounts:
        """The sum of several counts.

        >>> ShardCounts.together([ShardCounts(queries=2, evaluated=1), ShardCounts(queries=3)]).queries
        5
        """
        counts = list(parts)
        return cls(*(sum(getattr(part, field.name) for part in counts) for field in fields(cls)))


_ROWS = tuple(
    field.name for field in fields(ShardCounts) if field.name.endswith(("used", "out_of_order", "invalid", "waiting"))
)
