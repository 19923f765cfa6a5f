"""SLACK of Aurora: a reorder buffer with a fixed number of rows."""

from __future__ import annotations

import heapq
from typing import Any, ClassVar

import numpy as np

from slackwater.control.disorder.protocol import UNKNOWN, Floats, Ints
from slackwater.control.disorder.registry import register
from slackwater.control.disorder.support.row_method import RowMethod
from slackwater.control.disorder.support.top_rows import TopRows
from slackwater.errors import InvalidOption
from slackwater.promises import Completeness

DEFAULT_SLACK_ROWS = 100


@register
class FixedSlack(RowMethod):
    """A row is late if it is more than ``slack_rows`` positions out of order (Aurora; Kim 2007, §2, ``SLACK n``).

    Costs a heap of n + 1 values. The method does not use the drop ratio: if n is too small for the stream, the promise
    breaks; if it is too large, the wait is longer than needed.

    >>> from slackwater.control.disorder import Batch
    >>> method = FixedSlack(Completeness(0.01), slack_rows=2)
    >>> method.observe(Batch(np.array([4.0, 1.0, 3.0, 2.0])))
    >>> method.heartbeat(None)  # 4 and 3 are in the buffer, 2 has left it
    2.0
    """

    name: ClassVar[str] = "fixed-slack"

    def __init__(self, promise: Completeness, *, slack_rows: int = DEFAULT_SLACK_ROWS) -> None:
        super().__init__(promise)
        if slack_rows < 0:
            raise InvalidOption("invalid-slack", f"slack_rows={slack_rows!r} is negative", "give at least 0")
        self._slack_rows = int(slack_rows)
        self._heap: list[float] = []
        self._top = TopRows()

    def _rows(self, values: Floats, reference: Floats, late: int | None, heartbeats: list[float] | None) -> None:
        heap, full = self._heap, self._slack_rows + 1
        if heartbeats is None and len(values) > full:
            values = np.partition(values, len(values) - full)[-full:]
        for value in values.tolist():
            if len(heap) < full:
                heapq.heappush(heap, value)
            else:
                heapq.heappushpop(heap, value)
            if heartbeats is not None:
                heartbeats.append(heap[0] if len(heap) == full else UNKNOWN)

    def _cells(self, values: Floats, weights: Ints, clock: float, late: int) -> None:
        self._top.add(values, weights, self._slack_rows + 1)

    def heartbeat(self, clock: float | None) -> float:
        full = self._slack_rows + 1
        from_rows = self._heap[0] if len(self._heap) == full else UNKNOWN
        return max(from_rows, self._top.nth(full))

    def snapshot(self) -> dict[str, Any]:
        return {"heap": list(self._heap), "top": self._top.snapshot()}

    def resume(self, snapshot: dict[str, Any]) -> None:
        self._heap = list(snapshot["heap"])
        heapq.heapify(self._heap)
        self._top.resume(snapshot["top"])
