"""The ledger counts every row exactly once: input = on time + late + shed + invalid."""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields
from typing import Any


@dataclass(frozen=True, slots=True)
class Ledger:
    """Counts of the rows that were read, by what became of them.

    A ledger is immutable. The sum of two ledgers adds their counts; the difference from an earlier ledger is what was
    counted since. ``unreported_batches`` counts micro-batches that Spark committed but whose counts were lost because
    the process died. Their rows are in no other count.

    >>> (Ledger(on_time=98, late=1) + Ledger(invalid=1)).input
    100
    >>> Ledger(on_time=99, late=1).drop_ratio
    0.01
    """

    on_time: int = 0
    late: int = 0
    shed: int = 0
    invalid: int = 0
    unreported_batches: int = 0

    @property
    def input(self) -> int:
        """All rows that were read."""
        return self.on_time + self.late + self.shed + self.invalid

    @property
    def drop_ratio(self) -> float:
        """late / (on time + late); 0 before the first row."""
        judged = self.on_time + self.late
        return self.late / judged if judged else 0.0

    def __add__(self, other: Ledger) -> Ledger:
        return Ledger(*(getattr(self, f.name) + getattr(other, f.name) for f in fields(self)))

    def __sub__(self, earlier: Ledger) -> Ledger:
        return Ledger(*(getattr(self, f.name) - getattr(earlier, f.name) for f in fields(self)))

    def as_json(self) -> dict[str, Any]:
        """The counts, including the input, as a JSON object."""
        return {"input": self.input, **asdict(self)}

    @classmethod
    def from_json(cls, values: dict[str, Any]) -> Ledger:
        """The inverse of ``as_json``."""
        return cls(**{f.name: int(values.get(f.name, 0)) for f in fields(cls)})
