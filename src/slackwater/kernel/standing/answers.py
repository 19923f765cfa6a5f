"""What a tick brings: the answers that were due."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class Answers:
    """One entry an evaluated query, by its row in the query set.

    ``kept`` says whether the answer held until now was still within its bound (1, 0; NaN where none was held or a
    stream was silent). ``error_bound`` is the bound, or ε_intr where ``interrupted`` streams had to be guessed.
    """

    query: Ints
    value: Floats
    drift: Floats
    error_bound: Floats
    interrupted: Ints
    next_at: Floats
    kept: Floats

    def __len__(self) -> int:
        return len(self.query)


def together(parts: Sequence[Answers]) -> Answers:
    """Answers of one tick from its chunks."""
    if len(parts) == 1:
        return parts[0]
    if not parts:
        none = np.empty(0)
        whole = np.empty(0, dtype=np.int64)
        return Answers(whole, none, none, none, whole, none, none)
    return Answers(*(np.concatenate([getattr(part, field.name) for part in parts]) for field in fields(Answers)))
