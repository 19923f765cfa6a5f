"""The heartbeat of STREAM: wait for the largest lateness seen so far."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from slackwater.control.disorder.protocol import UNKNOWN, Floats, Ints, from_json, to_json
from slackwater.control.disorder.registry import register
from slackwater.control.disorder.support.row_method import RowMethod
from slackwater.promises import Completeness


@register
class MaxDelay(RowMethod):
    """The heartbeat is arrival clock − largest lateness seen so far (STREAM; Kim 2012, §1).

    Costs one number of memory. The wait never becomes shorter: one row that is a year late delays every window by a
    year.

    >>> from slackwater.control.disorder import Batch
    >>> method = MaxDelay(Completeness(0.01))
    >>> method.observe(Batch(np.array([10.0, 7.0]), np.array([11.0, 12.0]), clock=12.0))
    >>> method.heartbeat(20.0)
    15.0
    """

    name: ClassVar[str] = "max-delay"
    follows_clock: ClassVar[bool] = True

    def __init__(self, promise: Completeness) -> None:
        super().__init__(promise)
        self._largest = UNKNOWN

    def _rows(self, values: Floats, reference: Floats, late: int | None, heartbeats: list[float] | None) -> None:
        lateness = reference - values
        if heartbeats is not None:
            largest = np.maximum(np.maximum.accumulate(lateness), self._largest)
            heartbeats.extend((reference - largest).tolist())  # Kim 2012, §1: t − m
        self._largest = max(self._largest, float(lateness.max()))

    def _cells(self, values: Floats, weights: Ints, clock: float, late: int) -> None:
        self._largest = max(self._largest, clock - float(values.min()))

    def heartbeat(self, clock: float | None) -> float:
        return UNKNOWN if self._largest == UNKNOWN else self._now(clock) - self._largest

    def snapshot(self) -> dict[str, Any]:
        return {"largest": to_json(self._largest), "front": to_json(self._front)}

    def resume(self, snapshot: dict[str, Any]) -> None:
        self._largest, self._front = from_json(snapshot["largest"]), from_json(snapshot["front"])
