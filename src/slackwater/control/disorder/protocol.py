"""The interface between the disorder controller and its methods."""

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
    """Rows that arrived while one heartbeat was in force, in arrival order.

    An entry is a row, or on Spark a cell of an exact histogram that stands for several rows.

    - ``values``: the windowing attribute of each entry, in milliseconds if it is a timestamp.
    - ``arrivals``: the arrival of each entry in milliseconds; None if only the clock of the batch is known.
    - ``weights``: how many rows each entry stands for; None if every entry is one row.
    - ``sources``: the source of each entry, as an arbitrary integer.
    - ``punctuations``: the heartbeats that the stream itself carried; ``punctuation_sources``: the source of each.
    - ``clock``: the arrival clock at the end of the batch; None for a stream without a clock.
    - ``reference``: the arrival clock at which the heartbeat in force was chosen; None if it was the last decision's.
    - ``decided_at``: the arrival clock of that heartbeat's decision, which is earlier; None if it was the last one's.
    - ``began``: the arrival of its first row; None if it is unknown.
    - ``late``: how many rows were below the heartbeat in force.
    - ``follows_rows``: the rows of the batch before this one may have raised the heartbeat, without a decision.
    - ``wall``: the time in milliseconds at the end of the batch, where ``clock`` is a number; else None.

    >>> Batch(np.array([1.0, 2.0]), clock=3.0).rows
    2
    """

    values: Floats
    arrivals: Floats | None = None
    weights: Ints | None = None
    sources: Ints | None = None
    punctuations: Floats | None = None
    punctuation_sources: Ints | None = None
    clock: float | None = None
    reference: float | None = None
    decided_at: float | None = None
    began: float | None = None
    late: int = 0
    follows_rows: bool = False
    wall: float | None = None

    @property
    def rows(self) -> int:
        """The number of rows in the batch."""
        return len(self.values) if self.weights is None else int(self.weights.sum())

    def arrivals_or_clock(self) -> Floats | None:
        """The arrival of each entry, or the batch's clock if the arrivals are unknown; None without a clock."""
        if self.arrivals is not None:
            return self.arrivals
        return None if self.clock is None else np.full(len(self.values), self.clock)


class DisorderMethod(Protocol):
    """Observes batches and proposes a heartbeat.

    The controller around a method makes sure that the heartbeat never retreats and that the wait stays within the
    user's bounds, so a method can propose whatever its formula says. It proposes ``UNKNOWN`` while it knows too little.

    Some attributes are optional. ``cause`` (a ``Cause``) explains the last proposal. ``vouched = True`` says that the
    source itself guarantees the heartbeat, so the controller does not hold it back while the stream is silent.
    ``follows_clock = True`` says that the proposal for a later clock is higher by the same amount. If only a part of it
    is, ``rising`` is that part and ``ceiling`` the part that stands; the proposal is the lower of the two. ``room`` is
    the room in which rows may raise the heartbeat before the next proposal; None, or without it, they may not.
    """

    name: ClassVar[str]

    def observe(self, batch: Batch) -> None:
        """Learn from a batch whose late rows have been counted."""

    def heartbeat(self, clock: float | None) -> float:
        """Propose a heartbeat for the arrival clock ``clock``; None means that the stream has no clock."""

    def snapshot(self) -> dict[str, Any]:
        """The state of the method, as JSON."""

    def resume(self, snapshot: dict[str, Any]) -> None:
        """Restore the state from a snapshot of the same method."""


UNKNOWN = -math.inf
"""The heartbeat of a method or controller that does not have one yet."""


def to_json(value: float) -> float | None:
    """A number that may be unknown, as JSON: None stands for ``UNKNOWN``."""
    return value if math.isfinite(value) else None


def from_json(value: float | None) -> float:
    """The inverse of ``to_json``."""
    return UNKNOWN if value is None else float(value)
