"""The drift and diffusion of every stream, estimated from its last k rows.

All streams are estimated in one array operation. The buffer takes 32·k bytes per stream. Until a stream has
``MIN_ITEMS`` rows its diffusion counts as infinite, so that no query over it is deferred.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from slackwater.control.deferral.recent_rows import RecentRows, select_streams
from slackwater.errors import InvalidOption

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

DEFAULT_K = 100
MIN_ITEMS = 8
USUAL_GAP_QUANTILE = 0.9


@dataclass(slots=True)
class Intake:
    """Counts of all rows offered so far: taken + invalid + repeated + backwards = offered, exactly."""

    taken: int = 0
    invalid: int = 0
    repeated: int = 0
    backwards: int = 0

    def since(self, earlier: Intake) -> tuple[int, int]:
        """Rows taken, and rows not newer than the newest of their stream, since an earlier count."""
        out_of_order = self.repeated + self.backwards - earlier.repeated - earlier.backwards
        return self.taken - earlier.taken, out_of_order


def check_estimation(k: int, t_max: float | None) -> None:
    """Raise ``InvalidOption`` if an estimator cannot work with these options."""
    if k < MIN_ITEMS:
        raise InvalidOption("invalid-k", f"k={k} rows are too few to estimate from", f"use {MIN_ITEMS} or more")
    if t_max is not None and not t_max > 0:
        raise InvalidOption("invalid-t-max", f"t_max={t_max} is not positive", "use a positive duration")


class StreamEstimator:
    """Drift (Zhu 2004, Eq. 15) and diffusion (Eq. 16) of every stream, re-estimated when Algorithm 2 demands it.

    Three kinds of rows are counted in ``intake`` and left out: ``invalid`` (value or time is not a finite number),
    ``repeated`` (same time as the stream's last row) and ``backwards`` (before it).
    """

    def __init__(self, streams: int, k: int = DEFAULT_K, t_max: float | None = None) -> None:
        check_estimation(k, t_max)
        self.k = k
        self.t_max = t_max
        self.intake = Intake()
        self._rows = RecentRows(streams, k)
        self.last_value = np.full(streams, np.nan)
        self.last_time = np.full(streams, -np.inf)
        self.drift = np.zeros(streams)
        self.diffusion = np.full(streams, np.inf)
        self.span = np.zeros(streams)
        self.usual_gap = np.full(streams, np.inf)
        self._estimate_at = np.full(streams, -np.inf)
        self._estimated_at = np.full(streams, np.nan)

    @property
    def streams(self) -> int:
        """The number of streams."""
        return len(self.last_time)

    @property
    def items(self) -> Ints:
        """The number of rows taken from each stream."""
        return self._rows.items

    @property
    def seen(self) -> NDArray[np.bool_]:
        """Streams with at least one row."""
        return self.items > 0

    def grow(self, streams: int) -> None:
        """Make room for more streams. The existing ones keep their estimates."""
        more = streams - self.streams
        if more <= 0:
            return
        fresh = StreamEstimator(more, self.k, self.t_max)
        self._rows.grow(streams)
        for name in _PER_STREAM:
            setattr(self, name, np.concatenate([getattr(self, name), getattr(fresh, name)]))

    def observe(self, streams: Ints, times: Floats, values: Floats) -> Ints:
        """Take in rows in the given order. Returns the positions of the rows taken, grouped by stream."""
        rows = np.flatnonzero(np.isfinite(values) & np.isfinite(times))
        self.intake.invalid += len(values) - len(rows)
        if len(rows) == 0:
            return rows
        if not np.all(streams[rows[1:]] > streams[rows[:-1]]):
            rows = rows[np.argsort(streams[rows], kind="stable")]
        newest = self._newest_before(streams[rows], times[rows])
        fresh = times[rows] > newest
        if not np.all(fresh):
            repeated = int(np.count_nonzero(times[rows] == newest))
            self.intake.repeated += repeated
            self.intake.backwards += int(np.count_nonzero(~fresh)) - repeated
            rows = rows[fresh]
        self.intake.taken += len(rows)
        streams, times, values = streams[rows], times[rows], values[rows]
        self._rows.put(streams, times, values)
        self.last_value[streams] = values  # of several rows of a stream the last one stays
        self.last_time[streams] = times
        return rows

    def _newest_before(self, streams: Ints, times: Floats) -> Floats:
        """The newest time of each row's stream before that row. The rows are grouped by stream."""
        newest = self.last_time[streams]
        later = np.flatnonzero(streams[1:] == streams[:-1]) + 1
        if len(later):
            # A running maximum within each group: the group's number comes before the time's rank.
            distinct, rank = np.unique(times, return_inverse=True)
            running = np.maximum.accumulate(streams * len(distinct) + rank)
            newest[later] = np.maximum(newest[later], distinct[running[later - 1] % len(distinct)])
        return newest

    def estimate(self, now: float, tick: float, interrupted: NDArray[np.bool_]) -> Ints:
        """Re-estimate every stream that is due at ``now`` (Algorithm 2) and return those streams.

        ``tick`` is the shortest interval between two estimates. An interrupted stream keeps its last estimate.
        """
        due = np.flatnonzero((self._estimate_at < now + 0.5 * tick) & ~interrupted & (self.items >= MIN_ITEMS))
        if len(due) == 0:
            return due
        before = self.diffusion[due]
        self._estimate(due)
        longest = self.span[due] / 4.0 if self.t_max is None else np.full(len(due), self.t_max)
        with np.errstate(divide="ignore", invalid="ignore"):
            # Zhu 2004, Algorithm 2
            interval = before / self.diffusion[due] * (now - self._estimated_at[due])
        # differs: the first interval, and one after a diffusion of zero, is t_max; none is shorter than a tick.
        interval = np.where(np.isfinite(interval) & (before > 0.0), interval, longest)
        self._estimate_at[due] = now + np.maximum(np.minimum(interval, longest), tick)
        self._estimated_at[due] = now
        return due

    def _estimate(self, due: Ints) -> None:
        """Eq. (15), (16) and the usual gap. Rows need not be sorted, because the sums do not depend on their order."""
        count, gaps = self._rows.buffered(due), select_streams(self._rows.gaps, due)
        self.span[due] = span = gaps.sum(axis=1)
        self.drift[due] = drift = self._rows.rise(due) / span  # Zhu 2004, Eq. (15)
        self.usual_gap[due] = _usual_gap(gaps, span, count)
        residual = self._rows.residual(due, drift, span)
        self.diffusion[due] = np.sqrt(residual / (count - 2))  # Zhu 2004, Eq. (16); k − 2 of k items

    def increments(self, stream: int) -> Floats:
        """A stream's buffered increments, each divided by the square root of its interval."""
        times, values = self._rows.in_order(stream)
        return np.asarray(np.diff(values) / np.sqrt(np.diff(times)), dtype=np.float64)

    def snapshot(self) -> dict[str, NDArray[np.float64] | Ints]:
        """The whole state as arrays by name."""
        intake = np.array([self.intake.taken, self.intake.invalid, self.intake.repeated, self.intake.backwards])
        rows = {"values": self._rows.values, "times": self._rows.times, "items": self._rows.items}
        return {"intake": intake, **rows, **{name.removeprefix("_"): getattr(self, name) for name in _PER_STREAM}}

    def resume(self, snapshot: dict[str, NDArray[np.float64] | Ints]) -> None:
        """Continue from a snapshot."""
        self.intake = Intake(*(int(count) for count in snapshot["intake"]))
        for name in _PER_STREAM:
            setattr(self, name, np.array(snapshot[name.removeprefix("_")]))
        self._rows.resume(snapshot["items"], snapshot["times"], snapshot["values"])


def _usual_gap(gaps: Floats, span: Floats, count: Ints) -> Floats:
    """The 90% quantile of each stream's gaps. Empty cells are zero, so they come first when sorted."""
    usual = gaps.max(axis=1)
    uneven = np.flatnonzero(usual * (count - 1) != span)  # equal gaps need no sort
    if len(uneven):
        count, columns = count[uneven], gaps.shape[1]
        rank = np.ceil(USUAL_GAP_QUANTILE * (count - 1)).astype(np.int64) + columns - count
        usual[uneven] = np.take_along_axis(np.sort(gaps[uneven], axis=1), rank[:, None], axis=1)[:, 0]
    return np.asarray(usual, dtype=np.float64)


_PER_STREAM = (
    "last_value",
    "last_time",
    "drift",
    "diffusion",
    "span",
    "usual_gap",
    "_estimate_at",
    "_estimated_at",
)
