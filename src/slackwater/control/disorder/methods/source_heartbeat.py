"""Punctuations that the stream itself carries (``HEARTBEAT col``)."""

from __future__ import annotations

from collections import deque
from typing import Any, ClassVar

import numpy as np

from slackwater.control.disorder.protocol import UNKNOWN, Batch, from_json, to_json
from slackwater.control.disorder.registry import register
from slackwater.promises import Completeness

_ALL = -1
"""The source of all rows where rows have none."""


@register
class SourceHeartbeat:
    """The heartbeat is the largest punctuation received (Kim 2012, §2; Kim 2007, §1).

    With sources it is the lowest of their largest ones.
    Punctuations may arrive out of order; a lower one of the same source is ignored. A punctuation that overtakes its
    own rows makes them late. To prevent that, ``hold_ms`` delays every punctuation by that time on the arrival clock.

    A source that has sent rows but no punctuation holds the heartbeat back. One that has sent nothing at all for
    ``idle_after`` is left out until it is heard again.

    Costs the punctuations that are being delayed, and two numbers per source. The method does not use the drop ratio.
    Without punctuations there is no heartbeat.

    >>> method = SourceHeartbeat(Completeness(0.01))
    >>> method.observe(Batch(np.array([9.0]), punctuations=np.array([7.0, 5.0]), clock=10.0))
    >>> method.heartbeat(10.0)
    7.0
    >>> method.observe(
    ...     Batch(np.empty(0), punctuations=np.array([9.0, 8.0]), punctuation_sources=np.array([1, 2]), clock=20.0)
    ... )
    >>> method.heartbeat(20.0)
    8.0
    """

    name: ClassVar[str] = "source-heartbeat"
    vouched: ClassVar[bool] = True

    def __init__(self, promise: Completeness, *, hold_ms: float = 0.0) -> None:
        self._hold_ms = hold_ms
        self._idle_after_ms = promise.idle_after_ms
        self._largest: dict[int, float] = {}
        self._heard: dict[int, float] = {}
        self._delayed: deque[tuple[float, int, float]] = deque()

    def observe(self, batch: Batch) -> None:
        if batch.sources is not None and batch.clock is not None:
            for source in np.unique(batch.sources).tolist():
                self._heard[source] = batch.clock
        if batch.punctuations is None or not len(batch.punctuations):
            return
        sources = (
            np.full(len(batch.punctuations), _ALL) if batch.punctuation_sources is None else batch.punctuation_sources
        )
        for source, value in zip(sources.tolist(), batch.punctuations.tolist(), strict=True):
            if batch.clock is None:
                self._raise(source, value)
            else:
                self._heard[source] = batch.clock
                # differs: a punctuation ahead of the clock counts only up to the clock.
                self._delayed.append((batch.clock, source, min(value, batch.clock)))

    def _raise(self, source: int, value: float) -> None:
        self._largest[source] = max(self._largest.get(source, UNKNOWN), value)

    def heartbeat(self, clock: float | None) -> float:
        while self._delayed and clock is not None and self._delayed[0][0] + self._hold_ms <= clock:
            _, source, value = self._delayed.popleft()
            self._raise(source, value)
        known = {*self._largest, *self._heard} - {_ALL}
        if not known:
            return self._largest.get(_ALL, UNKNOWN)
        oldest = UNKNOWN if clock is None else clock - self._idle_after_ms
        heard = [source for source in known if self._heard.get(source, UNKNOWN) >= oldest]
        return min((self._largest.get(source, UNKNOWN) for source in heard or known), default=UNKNOWN)

    def snapshot(self) -> dict[str, Any]:
        return {
            "sources": {str(source): to_json(value) for source, value in self._largest.items()},
            "heard": {str(source): clock for source, clock in self._heard.items()},
            "delayed": [list(entry) for entry in self._delayed],
        }

    def resume(self, snapshot: dict[str, Any]) -> None:
        if "sources" not in snapshot:  # written before heartbeats had sources
            self._largest = {_ALL: from_json(snapshot["largest"])}
            self._delayed = deque((clock, _ALL, value) for clock, value in snapshot["resting"])
            return
        self._largest = {int(source): from_json(value) for source, value in snapshot["sources"].items()}
        self._heard = {int(source): float(clock) for source, clock in snapshot["heard"].items()}
        self._delayed = deque((clock, int(source), value) for clock, source, value in snapshot["delayed"])
