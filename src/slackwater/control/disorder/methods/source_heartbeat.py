"""Punctuations that the stream itself carries (``HEARTBEAT col``)."""

from __future__ import annotations

from collections import deque
from typing import Any, ClassVar

from slackwater.control.disorder.protocol import UNKNOWN, Batch, from_json, to_json
from slackwater.control.disorder.registry import register
from slackwater.promises import Completeness


@register
class SourceHeartbeat:
    """The heartbeat is the largest punctuation received (Kim 2012, §2; Kim 2007, §1).

    Punctuations may arrive out of order; a lower one is ignored. A punctuation that overtakes its own rows makes them
    late. To prevent that, ``hold_ms`` delays every punctuation by that time on the arrival clock.

    Costs the punctuations that are being delayed. The method does not use the drop ratio. Without punctuations there
    is no heartbeat.

    >>> import numpy as np
    >>> method = SourceHeartbeat(Completeness(0.01))
    >>> method.observe(Batch(np.array([9.0]), punctuations=np.array([7.0, 5.0]), clock=10.0))
    >>> method.heartbeat(10.0)
    7.0
    """

    name: ClassVar[str] = "source-heartbeat"
    vouched: ClassVar[bool] = True

    def __init__(self, promise: Completeness, *, hold_ms: float = 0.0) -> None:
        self._hold_ms = hold_ms
        self._largest = UNKNOWN
        self._delayed: deque[tuple[float, float]] = deque()

    def observe(self, batch: Batch) -> None:
        if batch.punctuations is None or not len(batch.punctuations):
            return
        largest = float(batch.punctuations.max())
        if batch.clock is None:
            self._largest = max(self._largest, largest)
        else:
            # differs: a punctuation ahead of the clock counts only up to the clock.
            self._delayed.append((batch.clock, min(largest, batch.clock)))

    def heartbeat(self, clock: float | None) -> float:
        while self._delayed and clock is not None and self._delayed[0][0] + self._hold_ms <= clock:
            self._largest = max(self._largest, self._delayed.popleft()[1])
        return self._largest

    def snapshot(self) -> dict[str, Any]:
        return {
            "largest": to_json(self._largest),
            "resting": [list(entry) for entry in self._delayed],
        }

    def resume(self, snapshot: dict[str, Any]) -> None:
        self._largest = from_json(snapshot["largest"])
        self._delayed = deque((clock, value) for clock, value in snapshot["resting"])
