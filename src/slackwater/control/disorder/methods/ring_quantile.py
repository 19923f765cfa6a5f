"""A quantile of the last few thousand latenesses, without feedback: what managed Flink services offer."""

from __future__ import annotations

import bisect
import math
from collections import deque
from typing import Any, ClassVar

import numpy as np

from slackwater.control.disorder.protocol import UNKNOWN, Floats, Ints, from_json, to_json
from slackwater.control.disorder.registry import register
from slackwater.control.disorder.support.row_method import RowMethod
from slackwater.errors import InvalidOption
from slackwater.promises import Completeness

RING_ROWS = 4_096
LEAST_ROWS = 250


@register
class RingQuantile(RowMethod):
    """The wait is the (1 − D)-quantile of the last ``ring_rows`` latenesses, once ``least_rows`` rows have been seen.

    It assumes no distribution, but it does not check how many rows were really dropped. The promise breaks after a
    change of the stream, and if D is so small that only a few rows of the ring lie above the quantile. Costs a ring
    buffer and a sorted copy of it.

    >>> from slackwater.control.disorder import Batch
    >>> method = RingQuantile(Completeness(0.1), least_rows=10)
    >>> arrivals = np.full(10, 100.0)
    >>> method.observe(Batch(arrivals - np.arange(10.0), arrivals, clock=100.0))
    >>> method.heartbeat(100.0)  # nine of the ten latenesses 0 … 9 are at most 8
    92.0
    """

    name: ClassVar[str] = "ring-quantile"
    follows_clock: ClassVar[bool] = True

    def __init__(self, promise: Completeness, *, ring_rows: int = RING_ROWS, least_rows: int = LEAST_ROWS) -> None:
        super().__init__(promise)
        if not 1 <= least_rows <= ring_rows:
            raise InvalidOption(
                "invalid-ring", f"ring_rows={ring_rows!r}, least_rows={least_rows!r}", "keep 1 ≤ least_rows ≤ ring_rows"
            )
        self._ring_rows, self._least_rows = ring_rows, least_rows
        self._ring: deque[float] = deque(maxlen=ring_rows)
        self._sorted: list[float] = []
        self._cell_values: Floats = np.empty(0)
        self._cell_weights: Floats = np.empty(0)

    def _rows(self, values: Floats, reference: Floats, late: int | None, heartbeats: list[float] | None) -> None:
        lateness = (reference - values).tolist()
        if heartbeats is None and len(lateness) > self._ring_rows // 8:
            self._ring.extend(lateness)
            self._sorted = sorted(self._ring)
            return
        ring, ordered = self._ring, self._sorted
        times = reference.tolist()
        for i, delay in enumerate(lateness):
            if len(ring) == self._ring_rows:
                del ordered[bisect.bisect_left(ordered, ring[0])]
            ring.append(delay)
            bisect.insort(ordered, delay)
            if heartbeats is not None:
                heartbeats.append(times[i] - self._quantile())

    def _cells(self, values: Floats, weights: Ints, clock: float, late: int) -> None:
        # No row of a batch is older than another, so a batch larger than the ring is scaled down as a whole.
        share = weights * min(1.0, self._ring_rows / float(weights.sum()))
        joined = np.concatenate((clock - values, self._cell_values))
        counts = np.concatenate((share, self._cell_weights))
        enough = int(np.searchsorted(np.cumsum(counts), self._ring_rows)) + 1
        self._cell_values, self._cell_weights = joined[:enough], counts[:enough]

    def _quantile(self) -> float:
        """The smallest lateness that at least 1 − D of the ring do not exceed; infinite before ``least_rows`` rows."""
        if len(self._cell_values):
            total = float(self._cell_weights.sum())
            if total < self._least_rows:
                return math.inf
            order = np.argsort(self._cell_values)
            cumulated = np.cumsum(self._cell_weights[order])
            index = int(np.searchsorted(cumulated, (1.0 - self._drop_ratio) * total - 1e-9 * total))
            return float(self._cell_values[order[min(index, len(order) - 1)]])
        rows = len(self._sorted)
        if rows < self._least_rows:
            return math.inf
        return self._sorted[min(rows - 1 - math.floor(self._drop_ratio * rows + 1e-9), rows - 1)]

    def heartbeat(self, clock: float | None) -> float:
        return UNKNOWN if self._front == UNKNOWN else self._now(clock) - self._quantile()

    def snapshot(self) -> dict[str, Any]:
        return {
            "ring": list(self._ring),
            "cell_values": self._cell_values.tolist(),
            "cell_weights": self._cell_weights.tolist(),
            "front": to_json(self._front),
        }

    def resume(self, snapshot: dict[str, Any]) -> None:
        self._ring = deque(snapshot["ring"], maxlen=self._ring_rows)
        self._sorted = sorted(self._ring)
        self._cell_values = np.asarray(snapshot["cell_values"], dtype=np.float64)
        self._cell_weights = np.asarray(snapshot["cell_weights"], dtype=np.float64)
        self._front = from_json(snapshot["front"])
