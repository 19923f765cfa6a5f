"""Punctuations that the stream itself carries: the source knows best, if it speaks in order."""

from __future__ import annotations

from collections import deque
from typing import Any, ClassVar

from slackwater.control.disorder.protocol import UNKNOWN, Batch
from slackwater.control.disorder.registry import register
from slackwater.promises import Completeness


@register
class SourceHeartbeat:
    """The heartbeat is the largest punctuation received (Kim 2012, §2; Kim 2007, §1; ``HEARTBEAT col``).

    Punctuations may come out of order: an older one is ignored. One that overtook its own rows makes them late;
    ``hold_ms`` lets every punctuation rest that long by the arrival clock before it counts. Costs one number. It
    knows nothing of a drop ratio, and without punctuations it never moves.

    >>> import numpy as np
    >>> method = SourceHeartbeat(Completeness(0.01))
    >>> method.observe(Batch(np.array([9.0]), punctuations=np.array([7.0, 5.0]), clock=10.0))
    >>> method.heartbeat(10.0)
    7.0
    """

    name: ClassVar[str] = "source-heartbeat"
    vouched: ClassVar[bool] = True  # the source answers for what is still to come: silence says nothing more

    def __init__(self, promise: Completeness, *, hold_ms: float = 0.0) -> None:
        self._hold_ms = hold_ms
        self._largest = UNKNOWN
        self._resting: deque[tuple[float, float]] = deque()

    def observe(self, batch: Batch) -> None:
        if batch.punctuations is None or not len(batch.punctuations):
            return
        largest = float(batch.punctuations.max())
        if batch.clock is None:
            self._largest = max(self._largest, largest)
        else:
            # differs: a source cannot vouch for a time that has not come yet.
            self._resting.append((batch.clock, min(largest, batch.clock)))

    def heartbeat(self, clock: float | None) -> float:
        while self._resting and clock is not None and self._resting[0][0] + self._hold_ms <= clock:
            self._largest = max(self._largest, self._resting.popleft()[1])
        return self._largest

    def snapshot(self) -> dict[str, Any]:
        return {
            "largest": None if self._largest == UNKNOWN else self._largest,
            "resting": [list(entry) for entry in self._resting],
        }

    def resume(self, snapshot: dict[str, Any]) -> None:
        self._largest = UNKNOWN if snapshot["largest"] is None else snapshot["largest"]
        self._resting = deque((clock, value) for clock, value in snapshot["resting"])
