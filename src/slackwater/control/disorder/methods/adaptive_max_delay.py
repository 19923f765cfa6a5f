"""The adaptive maximum of Srivastava and Widom: it follows a longer delay at once and forgets it by halves."""

from __future__ import annotations

import math
from typing import Any, ClassVar

import numpy as np

from slackwater.control.disorder.protocol import UNKNOWN, Floats, Ints, from_json, to_json
from slackwater.control.disorder.registry import register
from slackwater.control.disorder.support.row_method import RowMethod
from slackwater.errors import InvalidOption
from slackwater.promises import Completeness

LEAST_INTERVAL_ROWS = 1_000


@register
class AdaptiveMaxDelay(RowMethod):
    """The heartbeat is arrival clock − m, with m = (m1 + m2)/2 updated every W rows (Kim 2012, §2 and Fig. 1).

    A delay above m replaces m at once. After W rows without such a delay, m becomes the mean of m and the largest
    delay among those rows. ``interval_rows`` is W. The default is one second of arrivals, at least 1 000 rows (Kim
    2012, §3.3: W ≥ λ). Costs a few numbers of memory. The method does not use the drop ratio: the choice of W decides
    whether the promise is kept, and no W suits every stream.

    >>> from slackwater.control.disorder import Batch
    >>> method = AdaptiveMaxDelay(Completeness(0.01), interval_rows=2)
    >>> method.observe(Batch(np.array([0.0, 8.0, 9.0]), np.array([10.0, 10.0, 10.0]), clock=10.0))
    >>> method.heartbeat(10.0)  # m1 = 10, m2 = 2
    4.0
    """

    name: ClassVar[str] = "adaptive-max-delay"
    follows_clock: ClassVar[bool] = True

    def __init__(self, promise: Completeness, *, interval_rows: int | None = None) -> None:
        super().__init__(promise)
        if interval_rows is not None and interval_rows < 1:
            raise InvalidOption(
                "invalid-interval", f"interval_rows={interval_rows!r} is not positive", "give at least 1"
            )
        self._fixed = interval_rows is not None
        self._interval = LEAST_INTERVAL_ROWS if interval_rows is None else int(interval_rows)
        self._m = UNKNOWN
        self._m2 = UNKNOWN
        self._since = 0
        self._seen = 0
        self._first_at = math.nan

    def _rows(self, values: Floats, reference: Floats, late: int | None, heartbeats: list[float] | None) -> None:
        if math.isnan(self._first_at):
            self._first_at = float(reference[0])
        m, m2, since = self._m, self._m2, self._since
        lateness = (reference - values).tolist()
        trail = np.empty(len(lateness)) if heartbeats is not None else None
        for i, delay in enumerate(lateness):
            if delay > m:
                m, m2, since = delay, UNKNOWN, 0
            else:
                since += 1
                if delay > m2:
                    m2 = delay
                if since >= self._interval:
                    m, m2, since = (m + m2) / 2.0, UNKNOWN, 0  # Kim 2012, §2: m = (m1 + m2)/2
                    self._update_interval(self._seen + i + 1, float(reference[i]))
            if trail is not None:
                trail[i] = m
        self._m, self._m2, self._since = m, m2, since
        self._seen += len(lateness)
        if trail is not None and heartbeats is not None:
            heartbeats.extend((reference - trail).tolist())

    def _cells(self, values: Floats, weights: Ints, clock: float, late: int) -> None:
        if math.isnan(self._first_at):
            self._first_at = clock
        for delay, rows in zip((clock - values).tolist(), weights.tolist(), strict=True):
            self._seen += rows
            if delay > self._m:
                self._m, self._since = delay, rows - 1
                self._m2 = delay if rows > 1 else UNKNOWN
            else:
                self._since += rows
                self._m2 = max(self._m2, delay)
            if self._since >= self._interval:
                self._m, self._m2, self._since = (self._m + self._m2) / 2.0, UNKNOWN, 0
                self._update_interval(self._seen, clock)

    def _update_interval(self, seen: int, at: float) -> None:
        elapsed_ms = at - self._first_at
        if not self._fixed and elapsed_ms > 0:
            self._interval = max(LEAST_INTERVAL_ROWS, math.ceil(seen * 1e3 / elapsed_ms))  # Kim 2012, §3.3: W ≥ λ

    def heartbeat(self, clock: float | None) -> float:
        return UNKNOWN if self._m == UNKNOWN else self._now(clock) - self._m

    def snapshot(self) -> dict[str, Any]:
        return {
            "m": to_json(self._m),
            "m2": to_json(self._m2),
            "since": self._since,
            "seen": self._seen,
            "interval": self._interval,
            "first_at": None if math.isnan(self._first_at) else self._first_at,
            "front": to_json(self._front),
        }

    def resume(self, snapshot: dict[str, Any]) -> None:
        self._m = from_json(snapshot["m"])
        self._m2 = from_json(snapshot["m2"])
        self._since, self._seen, self._interval = snapshot["since"], snapshot["seen"], snapshot["interval"]
        self._first_at = math.nan if snapshot["first_at"] is None else snapshot["first_at"]
        self._front = from_json(snapshot["front"])
