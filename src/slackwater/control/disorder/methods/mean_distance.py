"""Kim, Kang and Kim (2010), §4: distances from the mean of the windowing attribute, no arrival time needed."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from slackwater.control.disorder.protocol import UNKNOWN, Floats, Ints
from slackwater.control.disorder.registry import register
from slackwater.control.disorder.support.recent import RecentBatches
from slackwater.control.disorder.support.row_method import RowMethod, from_json, to_json
from slackwater.errors import InvalidOption
from slackwater.promises import Completeness

WINDOW_ROWS = 100
PERIOD_MS = 1_000.0
PERIOD_ROWS = 100
FORWARD_RATIO = 0.01
BACK_RATIO = 0.1


@register
class MeanDistance(RowMethod):
    """The heartbeat is μ − d: the mean of recent values less the largest distance from it seen so far.

    It works on any ordered attribute. With a drop ratio an offset moves the heartbeat forward while fewer rows are
    dropped than allowed, and back while more are, since the last renewal or altogether; it is renewed every second
    (every ``period_rows`` rows where there is no clock). The paper gives no step: ``forward_ratio`` and ``back_ratio``
    are parts of d. Costs the last ``window_rows`` values. A single wild value makes d large for good, and only the
    offset can undo it, slowly.

    >>> from slackwater.control.disorder import Batch
    >>> method = MeanDistance(Completeness(0.0), window_rows=4)
    >>> method.observe(Batch(np.array([10.0, 12.0, 9.0, 13.0])))
    >>> method.heartbeat(None)  # μ = 11, d = 2
    9.0
    """

    name: ClassVar[str] = "mean-distance"

    def __init__(
        self,
        promise: Completeness,
        *,
        window_rows: int = WINDOW_ROWS,
        period_ms: float = PERIOD_MS,
        period_rows: int = PERIOD_ROWS,
        forward_ratio: float = FORWARD_RATIO,
        back_ratio: float = BACK_RATIO,
    ) -> None:
        super().__init__(promise)
        if window_rows < 1 or period_rows < 1:
            raise InvalidOption(
                "invalid-window", f"window_rows={window_rows!r}, period_rows={period_rows!r}", "give 1 row or more"
            )
        self._window_rows = window_rows
        self._period_ms, self._period_rows = period_ms, period_rows
        self._forward_ratio, self._back_ratio = forward_ratio, back_ratio
        self._window: Floats = np.empty(0)
        self._recent = RecentBatches()
        self._mean = UNKNOWN
        self._distance = 0.0
        self._offset = 0.0
        self._seen = 0
        self._late = 0
        self._renewed_at = UNKNOWN
        self._renewed_rows = 0
        self._renewed_late = 0
        self._highest = UNKNOWN

    def _rows(self, values: Floats, reference: Floats, late: int | None, heartbeats: list[float] | None) -> None:
        means = self._running_means(values)
        # Kim 2010, §4: d, the maximum of |a_i − μ| seen so far
        distances = np.maximum(np.maximum.accumulate(np.abs(values - means)), self._distance)
        if heartbeats is None:
            self._mean, self._distance = float(means[-1]), float(distances[-1])
            self._count(len(values), late or 0, float(reference[-1]))
            return
        fronts = np.maximum.accumulate(values)
        highest = self._highest
        for value, mean, distance, at, front in zip(
            values.tolist(), means.tolist(), distances.tolist(), reference.tolist(), fronts.tolist(), strict=True
        ):
            self._mean, self._distance = mean, distance
            self._count(1, int(value < highest), at)
            proposed = mean - distance + self._offset
            highest = max(highest, min(proposed, front))
            heartbeats.append(proposed)
        self._highest = highest

    def _cells(self, values: Floats, weights: Ints, clock: float, late: int) -> None:
        moments = self._recent.add(values, weights, clock, self._window_rows)
        self._mean = moments.mean
        self._distance = max(self._distance, float(np.abs(values - self._mean).max()))
        self._count(int(weights.sum()), late, clock)

    def _running_means(self, values: Floats) -> Floats:
        """μ at each row, over the latest rows."""
        # differs: over all rows ever seen, as the paper has it, the mean would fall ever further behind.
        joined = np.concatenate((self._window, values))
        held = len(self._window)
        origin = float(joined[0])
        sums = np.concatenate(([0.0], np.cumsum(joined - origin)))
        ends = np.arange(held + 1, len(joined) + 1)
        starts = np.maximum(ends - self._window_rows, 0)
        self._window = joined[-self._window_rows :]
        means: Floats = (sums[ends] - sums[starts]) / (ends - starts) + origin
        return means

    def _count(self, rows: int, late: int, at: float) -> None:
        self._seen += rows
        self._late += late
        if self._renewed_at == UNKNOWN:
            self._renewed_at = at
        if self._clocked:
            due = at - self._renewed_at >= self._period_ms
        else:
            due = self._seen - self._renewed_rows >= self._period_rows
        if self._drop_ratio > 0.0 and due:
            # Kim 2010, §4: too many drops delay the heartbeat, too few bring it forward.
            lately = self._late - self._renewed_late, self._seen - self._renewed_rows
            if self._late > self._drop_ratio * self._seen or lately[0] > self._drop_ratio * lately[1]:
                self._offset -= self._back_ratio * self._distance
            else:
                self._offset += self._forward_ratio * self._distance
            self._renewed_at, self._renewed_rows, self._renewed_late = at, self._seen, self._late

    def heartbeat(self, clock: float | None) -> float:
        return UNKNOWN if self._mean == UNKNOWN else self._mean - self._distance + self._offset  # Kim 2010, §4: μ − d

    def snapshot(self) -> dict[str, Any]:
        return {
            "window": self._window.tolist(),
            "recent": self._recent.snapshot(),
            "mean": to_json(self._mean),
            "distance": self._distance,
            "offset": self._offset,
            "seen": self._seen,
            "late": self._late,
            "renewed_at": to_json(self._renewed_at),
            "renewed_rows": self._renewed_rows,
            "renewed_late": self._renewed_late,
            "front": to_json(self._front),
        }

    def resume(self, snapshot: dict[str, Any]) -> None:
        self._window = np.asarray(snapshot["window"], dtype=np.float64)
        self._recent.resume(snapshot["recent"])
        self._mean, self._front = from_json(snapshot["mean"]), from_json(snapshot["front"])
        self._distance, self._offset = snapshot["distance"], snapshot["offset"]
        self._seen, self._late = snapshot["seen"], snapshot["late"]
        self._renewed_at = from_json(snapshot["renewed_at"])
        self._renewed_rows, self._renewed_late = snapshot["renewed_rows"], snapshot["renewed_late"]
