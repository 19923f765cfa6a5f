"""The ledger: input = on time + late + shed + invalid, in rows, exactly."""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields
from typing import Any


@dataclass(frozen=True, slots=True)
class Ledger:
    """What became of every row that was read.

    Adding two ledgers adds their counts; there is no other way to change one. Less an earlier one, it is what happened
    since. ``unreported_batches`` counts micro-batches that were committed although the process died before their
    counts could be written down: their rows are in no other number.

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
        """Every row that was read."""
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
        """The counts as plain values, the input among them."""
        return {"input": self.input, **asdict(self)}

    @classmethod
    def from_json(cls, values: dict[str, Any]) -> Ledger:
        """The inverse of ``as_json``."""
        return cls(**{f.name: int(values.get(f.name, 0)) for f in fields(cls)})
