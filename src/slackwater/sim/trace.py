"""A recorded or generated stream."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True, eq=False)
class Trace:
    """The rows of a stream in arrival order, one array per column. Times are milliseconds.

    - ``values``: the windowing attribute.
    - ``arrivals``: None if the stream has no clock; the order of the rows is then the order of arrival.
    - ``sources``: the source of each row; None if the stream has one source.
    - ``punctuations``: the heartbeat that the stream carried with each row; NaN for a row without one.
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
        """The number of rows."""
        return len(self.values)
