"""What a query still holds back: the windows above the heartbeat, and the rows in them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from slackwater.language import Measure
from slackwater.plan import Kind, Plan

_MOST_CELLS = 4096
_CELLS_IN_SNAPSHOT = 64
_CLOSED_MS = 1.0  # Spark closes a window at a watermark that is this much below the heartbeat
_LAST_MS = 253_402_300_799_000.0  # the end of the year 9999, Spark's last
_ANY_WINDOW_MS = 10 * 365 * 86_400_000.0
"""A heartbeat this far above the newest row closes the windows of any query."""


@dataclass(frozen=True, slots=True)
class WindowGrid:
    """Where the windows of a query lie on its event-time axis, in milliseconds.

    A row at t is in no window that ends after t + ``length_ms``. Windows start at multiples of ``step_ms``; 0 means
    that they start anywhere. ``more_ms`` is what the heartbeat needs beyond them, for what is done with their results.
    """

    length_ms: float = _ANY_WINDOW_MS
    step_ms: float = 0.0
    more_ms: float = 0.0

    @classmethod
    def of(cls, plan: Plan) -> WindowGrid:
        """The grid of the windows of a plan. A landmark window ends at every step, a window without SLIDE at its row.

        Where windows lie is not known of sessions, and of windows in plain Spark SQL.
        """
        window, slide_ms = plan.window, 0.0 if plan.window.slide is None else plan.window.slide.amount
        if plan.kind in (Kind.PER_ROW, Kind.TUPLES):
            return cls(0.0)
        if plan.kind is Kind.LANDMARK:
            return cls(slide_ms)
        if plan.kind in (Kind.TUMBLING, Kind.SLIDING) and window.range is not None:
            reused = plan.shape is not None and plan.shape.outer is not None
            aligned = plan.measure is Measure.TIME
            return cls(window.range.amount, slide_ms if aligned else 0.0, _ANY_WINDOW_MS if reused else 0.0)
        return cls()

    def end_of_stream_ms(self, newest_ms: float) -> float:
        """The lowest whole heartbeat that closes every window of a stream whose newest row is at ``newest_ms``.

        >>> WindowGrid(10_000.0, 10_000.0).end_of_stream_ms(12_345.5)
        22347.0
        """
        return min(math.ceil(newest_ms + self.length_ms + self.more_ms) + _CLOSED_MS, _LAST_MS)

    def open_from_ms(self, heartbeat_ms: float) -> float:
        """The lowest event time whose rows are in a window that the heartbeat has not closed.

        >>> WindowGrid(10_000.0, 10_000.0).open_from_ms(25_000.0)
        20000.0
        """
        if not self.step_ms:
            return heartbeat_ms
        steps = math.floor((heartbeat_ms - _CLOSED_MS - self.length_ms) / self.step_ms) + 1
        return steps * self.step_ms

    def open_windows(self, heartbeat_ms: float, newest_ms: float) -> int | None:
        """How many windows are open, if each of them has rows; None if that is not known.

        >>> WindowGrid(10_000.0, 5_000.0).open_windows(25_000.0, 31_000.0)
        4
        """
        if not self.step_ms:
            return None
        first, last = self.open_from_ms(heartbeat_ms), math.floor(newest_ms / self.step_ms) * self.step_ms
        return max(0, round((last - first) / self.step_ms) + 1)


class OpenRows:
    """Counts rows by event time from some time on; rows below are forgotten. No I/O and no clock.

    It keeps at most 4 096 cells: beyond that, two neighbours become one. So counts above a time are as exact as the
    histograms that they come from.

    >>> rows = OpenRows()
    >>> rows.add(np.array([10.0, 20.0]), np.array([3, 4]))
    >>> rows.forget_below(15.0)
    >>> rows.count
    4
    """

    def __init__(self) -> None:
        self._values: NDArray[np.float64] = np.empty(0)
        self._counts: NDArray[np.int64] = np.empty(0, dtype=np.int64)

    @property
    def count(self) -> int:
        """The number of rows that are not forgotten."""
        return int(self._counts.sum())

    def add(self, values_ms: NDArray[np.float64], counts: NDArray[np.int64]) -> None:
        """Add rows by event time."""
        values, counts = np.concatenate([self._values, values_ms]), np.concatenate([self._counts, counts])
        order = np.argsort(values, kind="stable")
        self._values, self._counts = _at_most(_MOST_CELLS, values[order], counts[order])

    def forget_below(self, value_ms: float) -> None:
        """Forget the rows with an event time below ``value_ms``."""
        first = int(np.searchsorted(self._values, value_ms))
        self._values, self._counts = self._values[first:], self._counts[first:]

    def snapshot(self) -> list[Any]:
        """The cells as JSON values, merged into a few."""
        values, counts = _at_most(_CELLS_IN_SNAPSHOT, self._values, self._counts)
        return [values.tolist(), counts.tolist()]

    def resume(self, snapshot: list[Any]) -> None:
        """Restore a snapshot."""
        values, counts = snapshot
        self._values, self._counts = np.array(values, dtype=np.float64), np.array(counts, dtype=np.int64)


def _at_most(
    cells: int, values: NDArray[np.float64], counts: NDArray[np.int64]
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """The same rows in at most that many cells; a merged cell has the value of its lower one."""
    while len(values) > cells:
        values, counts = values[::2], np.add.reduceat(counts, np.arange(0, len(counts), 2))
    return values, counts
