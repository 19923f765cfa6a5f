"""The answers that one tick produces."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class Answers:
    """One entry per evaluation. ``query`` is the query's row in the query set, ``at`` the time of the answer.

    ``interrupted`` counts the query's silent streams. ``error_bound`` is the promised bound, or ε_intr if a stream is
    silent. ``kept`` tells whether the previous answer was still within its bound: 1 or 0, and NaN if there was no
    previous answer or a stream is silent.
    """

    query: Ints
    at: Floats
    value: Floats
    drift: Floats
    error_bound: Floats
    interrupted: Ints
    next_at: Floats
    kept: Floats

    def __len__(self) -> int:
        return len(self.query)


def concatenate_answers(parts: Sequence[Answers]) -> Answers:
    """The answers of one tick that were found in several parts."""
    if len(parts) == 1:
        return parts[0]
    if not parts:
        no_floats, no_ints = np.empty(0), np.empty(0, dtype=np.int64)
        return Answers(no_ints, no_floats, no_floats, no_floats, no_floats, no_ints, no_floats, no_floats)
    return Answers(*(np.concatenate([getattr(part, field.name) for part in parts]) for field in fields(Answers)))
