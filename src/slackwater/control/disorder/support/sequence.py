"""VSeq of Kim 2007: a window over the latest rows whose size is re-estimated at every row."""

from __future__ import annotations

import math
from abc import abstractmethod
from typing import Any

import numpy as np

from slackwater.control.disorder.protocol import UNKNOWN, Floats, Ints, from_json, to_json
from slackwater.control.disorder.support.normal_model import LEAST_ROWS
from slackwater.control.disorder.support.recent import RecentBatches
from slackwater.control.disorder.support.row_method import RowMethod
from slackwater.errors import InvalidOption
from slackwater.promises import Completeness

MOST_ROWS = 10_000


class SequenceMethod(RowMethod):
    """At every row: fill VSeq, estimate the punctuation and the next size of VSeq, and resize it (Kim 2007, Fig. 3).

    VSeq contains between 30 and ``most_rows`` rows. Costs the memory of VSeq and a few additions per row: running sums
    over the batch make a second pass unnecessary when VSeq shrinks.
    """

    def __init__(self, promise: Completeness, *, most_rows: int = MOST_ROWS) -> None:
        super().__init__(promise)
        if most_rows < LEAST_ROWS:
            raise InvalidOption("invalid-size", f"most_rows={most_rows!r} is too small", f"give at least {LEAST_ROWS}")
        self._most_rows = most_rows
        self._measured: Floats = np.empty(0)
        self._reached: Floats = np.empty(0)
        self._recent = RecentBatches()
        self._size = LEAST_ROWS
        self._punctuation = UNKNOWN

    @abstractmethod
    def _measure(self, values: Floats, reference: Floats | float) -> Floats:
        """The quantity of each row whose mean and standard deviation are estimated over VSeq."""

    @abstractmethod
    def _estimate(self, mean: float, sd: float, interval: float, at: float) -> tuple[float, float]:
        """The punctuation and the wanted size of VSeq, from its mean, standard deviation, interval and last arrival."""

    def _rows(self, values: Floats, reference: Floats, late: int | None, heartbeats: list[float] | None) -> None:
        old_rows = len(self._measured)
        measured = np.concatenate((self._measured, self._measure(values, reference)))
        reached = np.concatenate((self._reached, reference))
        # Sums are relative to the first row: squares of milliseconds since 1970 would exceed float precision.
        origin = float(measured[0])
        centred = measured - origin
        sums = [0.0, *np.cumsum(centred).tolist()]
        squares = [0.0, *np.cumsum(centred * centred).tolist()]
        times = reached.tolist()
        start, size = 0, self._size
        for i in range(old_rows, len(times)):
            if i - start + 1 >= size:  # Kim 2007, Fig. 3, step 2: Ready(VSeq)
                start = i - size + 1
                mean = (sums[i + 1] - sums[start]) / size
                variance = (squares[i + 1] - squares[start]) / size - mean * mean
                interval = (times[i] - times[start]) / size  # Kim 2007, Eq. (4)
                self._punctuation, wanted = self._estimate(
                    mean + origin, math.sqrt(max(variance, 0.0)), interval, times[i]
                )
                size = self._clip_size(wanted)
                start = max(start, i - size + 1)  # Kim 2007, Fig. 3, step 6
            if heartbeats is not None:
                heartbeats.append(self._punctuation)
        self._size = size
        self._measured, self._reached = measured[start:], reached[start:]

    def _cells(self, values: Floats, weights: Ints, clock: float, late: int) -> None:
        moments = self._recent.add(self._measure(values, clock), weights, clock, self._size)
        if moments.rows >= self._size:
            interval = moments.span / moments.rows
            self._punctuation, wanted = self._estimate(moments.mean, moments.sd, interval, clock)
            self._size = self._clip_size(wanted)

    def _clip_size(self, wanted: float) -> int:
        return int(min(max(wanted, LEAST_ROWS), self._most_rows))

    def heartbeat(self, clock: float | None) -> float:
        return self._punctuation

    def snapshot(self) -> dict[str, Any]:
        return {
            "measured": self._measured.tolist(),
            "reached": self._reached.tolist(),
            "recent": self._recent.snapshot(),
            "size": self._size,
            "punctuation": to_json(self._punctuation),
            "front": to_json(self._front),
        }

    def resume(self, snapshot: dict[str, Any]) -> None:
        self._measured = np.asarray(snapshot["measured"], dtype=np.float64)
        self._reached = np.asarray(snapshot["reached"], dtype=np.float64)
        self._recent.resume(snapshot["recent"])
        self._size = snapshot["size"]
        self._punctuation = from_json(snapshot["punctuation"])
        self._front = from_json(snapshot["front"])
