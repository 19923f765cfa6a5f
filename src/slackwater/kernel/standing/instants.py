"""The rows of recent instants, from which the values of all streams at each of them can be rebuilt."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from slackwater.kernel.standing.growing import GrowingArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

_BLOCK_CELLS = 1 << 22  # instants × streams rebuilt together, to bound memory
_NO_STREAM = -1


class InstantLog:
    """Rows in the order of their times, from ``start`` on. An instant is a time with a row, or a tick without one.

    A row counts from its own time, even if another stream already had a later one. Costs 20 bytes per row. The values
    at the instants are rebuilt when they are asked for, and kept if they fit into one block.

    :param before: every stream's last known value before ``start``; NaN for a stream that had no row.
    """

    def __init__(self, before: Floats) -> None:
        self.start = -np.inf
        self._before = before
        self._set_rows(np.zeros(0), np.zeros(0, dtype=np.int32), np.zeros(0))

    def _set_rows(self, times: Floats, streams: NDArray[np.int32], values: Floats) -> None:
        self._times, self._streams, self._values = GrowingArray(times), GrowingArray(streams), GrowingArray(values)
        self._instants = GrowingArray(times[np.diff(times, prepend=-np.inf) > 0.0])
        self._block: GrowingArray | None = None

    @property
    def instants(self) -> Floats:
        """The distinct times, oldest first."""
        return self._instants.rows

    @property
    def fits(self) -> bool:
        """Whether the values of all streams at all instants fit into one block."""
        return len(self._instants) * len(self._before) <= _BLOCK_CELLS

    def grow(self, streams: int) -> None:
        """Make room for more streams."""
        more = max(streams - len(self._before), 0)
        if more:
            self._before = np.concatenate([self._before, np.full(more, np.nan)])
            self._block = None

    def append(self, now: float, streams: Ints, times: Floats, values: Floats) -> None:
        """Add the rows of a tick at ``now``. The rows of one stream must come in the order of their times.

        A row from before ``start`` only changes the values from ``start`` on.
        """
        early = times < self.start
        if np.any(early):
            self._before = self._before.copy()
            self._before[streams[early]] = values[early]
            self._block = None
            streams, times, values = streams[~early], times[~early], values[~early]
        if len(times) == 0 or times.max() != now:
            streams, times, values = np.append(streams, _NO_STREAM), np.append(times, now), np.append(values, np.nan)
        order = np.argsort(times, kind="stable")
        streams, times, values = streams[order], times[order], values[order]
        if len(self._instants) and times[0] <= self.instants[-1]:
            every = np.concatenate([self._times.rows, times])
            order = np.argsort(every, kind="stable")
            numbers = np.concatenate([self._streams.rows, streams.astype(np.int32)])
            self._set_rows(every[order], numbers[order], np.concatenate([self._values.rows, values])[order])
            return
        instants = times[np.diff(times, prepend=-np.inf) > 0.0]
        if self._block is not None:
            if (len(self._instants) + len(instants)) * len(self._before) <= _BLOCK_CELLS:
                newest = self._block.rows[-1] if len(self._block) else self._before
                self._block.extend(_filled(times, streams, values, newest))
            else:
                self._block = None
        self._times.extend(times)
        self._streams.extend(streams.astype(np.int32))
        self._values.extend(values)
        self._instants.extend(instants)

    def cut(self, before: float) -> None:
        """Forget the instants before that time. The last known values stay."""
        if before <= self.start:
            return
        self._before = self.values_before(before)
        rows, instants = np.searchsorted(self._times.rows, before), np.searchsorted(self.instants, before)
        for array in (self._times, self._streams, self._values):
            array.drop(int(rows))
        self._instants.drop(int(instants))
        if self._block is not None:
            self._block.drop(int(instants))
        self.start = before

    def values_before(self, time: float) -> Floats:
        """Every stream's last known value before that time. NaN for a stream that had no row."""
        values, end = self._before.copy(), int(np.searchsorted(self._times.rows, time))
        streams = self._streams.rows[:end]
        rows = np.flatnonzero(streams != _NO_STREAM)
        values[streams[rows]] = self._values.rows[rows]  # of several rows of a stream the last one stays
        return values

    def blocks(self, since: float, columns: Ints | None = None) -> Iterator[tuple[Floats, Floats]]:
        """The times and last known values (instants × streams) from ``since`` on, in blocks of bounded size.

        :param columns: the streams to rebuild, if the values of all of them do not fit; None means all.
        """
        if columns is not None or not self.fits:
            yield from self._rebuild(since, np.arange(len(self._before)) if columns is None else columns)
            return
        if self._block is None:
            self._block = GrowingArray(_filled(self._times.rows, self._streams.rows, self._values.rows, self._before))
        first = int(np.searchsorted(self.instants, since))
        if first < len(self._instants):
            yield self.instants[first:], self._block.rows[first:]

    def _rebuild(self, since: float, columns: Ints) -> Iterator[tuple[Floats, Floats]]:
        times, instants = self._times.rows, self.instants
        number = np.full(len(self._before) + 1, _NO_STREAM)  # the last entry stands for _NO_STREAM
        number[columns] = np.arange(len(columns))
        newest = self.values_before(since)[columns]
        most = max(_BLOCK_CELLS // max(len(columns), 1), 1)
        for at in range(int(np.searchsorted(instants, since)), len(instants), most):
            some = instants[at : at + most]
            rows = slice(*np.searchsorted(times, [some[0], np.nextafter(some[-1], np.inf)]))
            block = _filled(times[rows], number[self._streams.rows[rows]], self._values.rows[rows], newest)
            newest = block[-1]
            yield some, block

    def snapshot(self) -> dict[str, NDArray[Any]]:
        """The whole state as arrays by name."""
        return {
            "start": np.array([self.start]),
            "before": self._before,
            "times": self._times.rows,
            "streams": self._streams.rows,
            "values": self._values.rows,
        }

    def resume(self, snapshot: dict[str, NDArray[Any]]) -> None:
        """Continue from a snapshot."""
        self.start, self._before = float(snapshot["start"][0]), np.array(snapshot["before"])
        self._set_rows(*(np.array(snapshot[name]) for name in ("times", "streams", "values")))


def _filled(times: Floats, streams: NDArray[Any], values: Floats, before: Floats) -> Floats:
    """The last known values at every distinct time (instants × streams). Rows without a stream only make an instant."""
    instant = np.cumsum(np.diff(times, prepend=-np.inf) > 0.0) - 1
    count = int(instant[-1]) + 1 if len(instant) else 0
    rows = np.flatnonzero(streams != _NO_STREAM)
    latest = np.full((count, len(before)), -1, dtype=np.int64)
    latest[instant[rows], streams[rows]] = rows
    np.maximum.accumulate(latest, axis=0, out=latest)
    return np.asarray(np.where(latest >= 0, values[latest], before), dtype=np.float64)
