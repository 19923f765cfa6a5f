"""A recorded or generated stream: rows in arrival order."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True, eq=False)
class Trace:
    """Rows in arrival order: the windowing attribute, and the arrival and source where they are known.

    Times are milliseconds. ``arrivals`` is None for a stream whose only order is the order of its rows.
    ``punctuations`` are the heartbeats that the stream itself carried, beside the row they came with (NaN: none).
    """

    name: str
    values: NDArray[np.float64]
    arrivals: NDArray[np.float64] | None = None
    sources: NDArray[np.int64] | None = None
    punctuations: NDArray[np.float64] | None = None

    def __post_init__(self) -> None:
        if self.arrivals is not None and np.any(np.diff(self.arrivals) < 0):
            raise ValueError(f"trace {self.name!r} is not in arrival order")

    @property
    def rows(self) -> int:
        """How many rows there are."""
        return len(self.values)
