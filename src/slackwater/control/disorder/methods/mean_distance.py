"""The method of Kim, Kang and Kim (2010), §4: distances from the mean of the attribute, without arrival times."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from slackwater.control.disorder.protocol import UNKNOWN, Batch, Floats, Ints, from_json, to_json
from slackwater.control.disorder.registry import register
from slackwater.control.disorder.support.recent import RecentBatches
from slackwater.control.disorder.support.row_method import RowMethod
from slackwater.errors import InvalidOption
from slackwater.promises import Completeness

WINDOW_ROWS = 100
PERIOD_MS = 1_000.0
PERIOD_ROWS = 100
FORWARD_RATIO = 0.01
BACK_RATIO = 0.1


@register
class MeanDistance(RowMethod):
    """The heartbeat is μ − d + offset: μ is the mean of recent values, d the largest distance from it seen so far.

    It works on any ordered attribute. With a drop ratio above 0 the offset is adjusted every ``period_ms`` (on Spark
    also where the attribute is a number), or every ``period_rows`` rows in the laboratory without a clock. It moves
    back by ``back_ratio``·d if too many rows were dropped, in total or since the last adjustment, and forward by
    ``forward_ratio``·d otherwise. (The paper gives no step sizes.)

    Costs the last ``window_rows`` values. A single extreme value makes d large for good; only the offset compensates
    for it, slowly.

    >>> from slackwater.control.disorder import Batch
    >>> method = MeanDistance(Completeness(0.0), window_rows=4)
    >>> method.observe(Batch(np.array([10.0, 12.0, 9.0, 13.0])))
    >>> method.heartbeat(None)  # μ = 11, d = 2
    9.0
    """

    name: ClassVar[str] = "mean-distance"
    without_clock: ClassVar[frozenset[str]] = frozenset({"period_rows"})

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
                "invalid-window",
                f"window_rows={window_rows!r}, period_rows={period_rows!r}",
                "give at least 1",
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
        self._adjusted_at = UNKNOWN
        self._adjusted_rows = 0
        self._adjusted_late = 0
        self._highest_heartbeat = UNKNOWN
        self._wall: float | None = None

    def observe(self, batch: Batch) -> None:
        self._wall = batch.wall
        super().observe(batch)

    def _rows(self, values: Floats, reference: Floats, late: int | None, heartbeats: list[float] | None) -> None:
        means = self._running_means(values)
        # Kim 2010, §4: d, the maximum of |a_i − μ| seen so far
        distances = np.maximum(np.maximum.accumulate(np.abs(values - means)), self._distance)
        if heartbeats is None:
            self._mean, self._distance = float(means[-1]), float(distances[-1])
            self._count(len(values), late or 0, float(reference[-1]))
            return
        fronts = np.maximum.accumulate(values)
        in_force = self._highest_heartbeat
        for value, mean, distance, at, front in zip(
            values.tolist(), means.tolist(), distances.tolist(), reference.tolist(), fronts.tolist(), strict=True
        ):
            self._mean, self._distance = mean, distance
            self._count(1, int(value < in_force), at)
            proposed = mean - distance + self._offset
            in_force = max(in_force, min(proposed, front))
            heartbeats.append(proposed)
        self._highest_heartbeat = in_force

    def _cells(self, values: Floats, weights: Ints, clock: float, late: int) -> None:
        moments = self._recent.add(values, weights, clock, self._window_rows)
        self._mean = moments.mean
        self._distance = max(self._distance, float(np.abs(values - self._mean).max()))
        self._count(int(weights.sum()), late, clock if self._wall is None else self._wall)

    def _running_means(self, values: Floats) -> Floats:
        """μ after each row, over the last ``window_rows`` rows."""
        # differs: the paper takes the mean over all rows, which would fall further and further behind.
        joined = np.concatenate((self._window, values))
        old_rows = len(self._window)
        origin = float(joined[0])
        sums = np.concatenate(([0.0], np.cumsum(joined - origin)))
        ends = np.arange(old_rows + 1, len(joined) + 1)
        starts = np.maximum(ends - self._window_rows, 0)
        self._window = joined[-self._window_rows :]
        means: Floats = (sums[ends] - sums[starts]) / (ends - starts) + origin
        return means

    def _count(self, rows: int, late: int, at: float) -> None:
        """Count rows and late rows, and adjust the offset when that is due."""
        self._seen += rows
        self._late += late
        if self._adjusted_at == UNKNOWN:
            self._adjusted_at = at
        if self._has_clock:
            due = at - self._adjusted_at >= self._period_ms
        else:
            due = self._seen - self._adjusted_rows >= self._period_rows
        if self._drop_ratio > 0.0 and due:
            # Kim 2010, §4: too many drops delay the heartbeat, too few bring it forward.
            recent_late, recent_rows = self._late - self._adjusted_late, self._seen - self._adjusted_rows
            if self._late > self._drop_ratio * self._seen or recent_late > self._drop_ratio * recent_rows:
                self._offset -= self._back_ratio * self._distance
            else:
                self._offset += self._forward_ratio * self._distance
            self._adjusted_at, self._adjusted_rows, self._adjusted_late = at, self._seen, self._late

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
            "renewed_at": to_json(self._adjusted_at),
            "renewed_rows": self._adjusted_rows,
            "renewed_late": self._adjusted_late,
            "front": to_json(self._front),
        }

    def resume(self, snapshot: dict[str, Any]) -> None:
        self._window = np.asarray(snapshot["window"], dtype=np.float64)
        self._recent.resume(snapshot["recent"])
        self._mean, self._front = from_json(snapshot["mean"]), from_json(snapshot["front"])
        self._distance, self._offset = snapshot["distance"], snapshot["offset"]
        self._seen, self._late = snapshot["seen"], snapshot["late"]
        self._adjusted_at = from_json(snapshot["renewed_at"])
        self._adjusted_rows, self._adjusted_late = snapshot["renewed_rows"], snapshot["renewed_late"]
