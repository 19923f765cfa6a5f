"""The ledger counts every row exactly once: input = on time + late + shed + invalid."""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields
from typing import Any


@dataclass(frozen=True, slots=True)
class Ledger:
    """Counts of the rows that were read, by what became of them.

    A ledger is immutable. The sum of two ledgers adds their counts; the difference from an earlier ledger is what was
    counted since. ``unreported_batches`` counts micro-batches that Spark committed but whose counts were lost because
    the process died. Their rows are in no other count. ``misread_batches`` counts micro-batches whose rows were counted
    but not read exactly once, as far as one can tell. With either, the ledger is not exact.

    >>> (Ledger(on_time=98, late=1) + Ledger(invalid=1)).input
    100
    >>> Ledger(on_time=99, late=1).drop_ratio
    0.01
    >>> Ledger(on_time=99, unreported_batches=2).why
    ['2 micro-batches were committed just before a crash: their rows are in no count']
    """

    on_time: int = 0
    late: int = 0
    shed: int = 0
    invalid: int = 0
    unreported_batches: int = 0
    misread_batches: int = 0

    @property
    def input(self) -> int:
        """All rows that were read."""
        return self.on_time + self.late + self.shed + self.invalid

    @property
    def drop_ratio(self) -> float:
        """late / (on time + late); 0 before the first row."""
        judged = self.on_time + self.late
        return self.late / judged if judged else 0.0

    @property
    def exact(self) -> bool:
        """Whether every row that Spark read is known to be counted exactly once."""
        return not self.why

    @property
    def why(self) -> list[str]:
        """Why the ledger is not exact; empty if it is."""
        reasons = []
        if self.unreported_batches:
            reasons.append(
                f"{_batches(self.unreported_batches)} committed just before a crash: their rows are in no count"
            )
        if self.misread_batches:
            reasons.append(
                f"{_batches(self.misread_batches)} read in part or more than once, "
                "so their counts may be wrong: in foreachBatch, persist the batch first"
            )
        return reasons

    def __add__(self, other: Ledger) -> Ledger:
        return Ledger(*(getattr(self, f.name) + getattr(other, f.name) for f in fields(self)))

    def __sub__(self, earlier: Ledger) -> Ledger:
        return Ledger(*(getattr(self, f.name) - getattr(earlier, f.name) for f in fields(self)))

    def counts(self) -> dict[str, int]:
        """The counts as a JSON object, to be stored."""
        return asdict(self)

    def as_json(self) -> dict[str, Any]:
        """The counts, the input, and whether they are exact, as a JSON object, to be shown."""
        return {"input": self.input, **asdict(self), "exact": self.exact, "why": self.why}

    @classmethod
    def from_json(cls, values: dict[str, Any]) -> Ledger:
        """The inverse of ``counts`` and of ``as_json``."""
        return cls(**{f.name: int(values.get(f.name, 0)) for f in fields(cls)})


def _batches(count: int) -> str:
    return "1 micro-batch was" if count == 1 else f"{count:,} micro-batches were"
