"""What every method of disorder control sees and answers."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class Batch:
    """Rows that were judged by one heartbeat, in arrival order.

    ``values`` is the windowing attribute: milliseconds for a timestamp, any ordered number otherwise.
    ``arrivals`` (milliseconds) is absent where only the batch's own clock is known; ``clock`` is the arrival
    clock once the last row was in, or None for a stream without a clock. ``weights`` says how many rows each
    entry stands for (None: one each): on Spark the entries are the cells of an exact histogram, not rows.
    ``sources`` are arbitrary integers that tell sources apart. ``punctuations`` are heartbeats that the
    stream itself carried. ``late`` counts the rows that were below the heartbeat in force.

    >>> Batch(np.array([1.0, 2.0]), clock=3.0).rows
    2
    """

    values: Floats
    arrivals: Floats | None = None
    weights: Ints | None = None
    sources: Ints | None = None
    punctuations: Floats | None = None
    clock: float | None = None
    late: int = 0

    @property
    def rows(self) -> int:
        """How many rows the batch stands for."""
        return len(self.values) if self.weights is None else int(self.weights.sum())

    def arrivals_or_clock(self) -> Floats | None:
        """Each entry's arrival, as well as it is known."""
        if self.arrivals is not None:
            return self.arrivals
        return None if self.clock is None else np.full(len(self.values), self.clock)


class DisorderMethod(Protocol):
    """Decides how long to wait: takes batches, proposes a heartbeat.

    A method proposes; the controller around it sees to it that the heartbeat never retreats and stays
    within the user's bounds on the wait, so a method may propose whatever its formula says. ``-inf`` means
    that it does not know yet. A method may set ``cause`` (a ``Cause``) to say why it proposed what it did.
    """

    name: ClassVar[str]

    def observe(self, batch: Batch) -> None:
        """Learn from rows that have just been judged."""

    def heartbeat(self, clock: float | None) -> float:
        """The heartbeat to put in force now, with the arrival clock at ``clock``."""

    def snapshot(self) -> dict[str, Any]:
        """Everything it has learned, as JSON."""

    def resume(self, snapshot: dict[str, Any]) -> None:
        """Go on from a snapshot of the same method."""


UNKNOWN = -math.inf
