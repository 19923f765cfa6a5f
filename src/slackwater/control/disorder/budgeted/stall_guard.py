"""Limits the heartbeat by the most recent rows, for when the whole stream stands still while the clock runs."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from typing import Any

import numpy as np

from slackwater.control.disorder.protocol import Floats, Ints

ROWS = 64
"""The latest batches are kept until they contain this many rows."""
MAX_AGE = 0.5
"""Only rows younger than this share of the wait show where the stream is now."""
SHARE = 3.0
"""This multiple of the promised ratio of the recent rows may lie below the heartbeat."""
ABSURD = 30.0
"""Rows that are this many times further behind than the median row are ignored."""
POINTS = 64
"""A large batch is reduced to this many groups of neighbouring values, each represented by its lowest value."""
LEAST_ROWS = 16
"""Fewer rows do not show whether the stream moves."""
_Kept = tuple[float, float, Floats, Ints | None]
"""The start of the batch, its lowest value, its values, and how many rows each value stands for."""
_BOUNDS = np.arange(POINTS + 1)


class StallGuard:
    """Keeps the last batches (at least 64 rows) and limits the heartbeat so that nearly all of them would be on time.

    When a whole pipeline falls behind, the values stand still while the clock runs. The latest rows then predict the
    next rows better than any lateness. While the stream moves, a row that arrived some time ago predicts values that
    are higher by the progress since then. A batch that began more than half a wait ago is ignored.
    """

    def __init__(self) -> None:
        self._batches: deque[_Kept] = deque()
        self._rows = 0

    def observe(self, values: Floats, weights: Ints | None, rows: int, began: float, lowest: float) -> None:
        """Add a batch of ``rows`` rows that began to arrive at ``began``; ``lowest`` is its lowest value."""
        if len(values) > 2 * POINTS:
            values, weights = _grouped(values, weights, rows)
        self._batches.append((began, lowest, values, weights))
        self._rows += rows
        while len(self._batches) > 1 and self._rows - _rows(self._batches[0]) >= ROWS:
            self._rows -= _rows(self._batches.popleft())

    def limit(self, heartbeat: float, now: float, wait: float, drop_ratio: float, balance: float) -> float:
        """Lower the heartbeat to where the stream is.

        Few rows do not show whether the stream moves. If the balance covers the rows that it takes to find out, the
        progress is taken from older rows; otherwise the stream counts as standing still.
        """
        since = now - MAX_AGE * wait
        fresh = [batch for batch in self._batches if batch[0] >= since]
        if not fresh or min(batch[1] for batch in fresh) >= heartbeat:
            return heartbeat
        values, counts, began = _flat(fresh)
        enough = self._newest(LEAST_ROWS) if balance >= LEAST_ROWS > counts.sum() else (values, counts, began)
        values = values + _progress(*enough) * (now - began)
        order = np.argsort(values, kind="stable")
        values, ranks = values[order], np.cumsum(counts[order])
        median = float(values[np.searchsorted(ranks, ranks[-1] / 2)])
        first_sane = int(np.searchsorted(values, now - ABSURD * max(now - median, wait)))
        ignored_rows = float(ranks[first_sane - 1]) if first_sane else 0.0
        allowed = ignored_rows + int(SHARE * drop_ratio * ranks[-1])
        at = int(np.searchsorted(ranks, allowed, "right"))
        return min(heartbeat, float(values[at])) if at < len(values) else heartbeat

    def _newest(self, rows: int) -> tuple[Floats, Floats, Floats]:
        """The newest batches with at least ``rows`` rows, whatever their age; all batches if there are fewer rows."""
        newest: deque[_Kept] = deque()
        for batch in reversed(self._batches):
            newest.appendleft(batch)
            rows -= _rows(batch)
            if rows <= 0:
                break
        return _flat(newest)

    def snapshot(self) -> list[Any]:
        """The kept batches, as JSON."""
        return [[b, low, v.tolist(), None if w is None else w.tolist()] for b, low, v, w in self._batches]

    def resume(self, snapshot: list[Any]) -> None:
        """Restore the state from a snapshot."""
        self._batches = deque(
            (float(b), float(low), np.asarray(v, np.float64), None if w is None else np.asarray(w, np.int64))
            for b, low, v, w in snapshot
        )
        self._rows = sum(_rows(batch) for batch in self._batches)


def _flat(batches: Iterable[_Kept]) -> tuple[Floats, Floats, Floats]:
    """The values of the batches, how many rows each stands for, and when its batch began."""
    kept = list(batches)
    counts = np.concatenate([np.ones(len(b[2])) if b[3] is None else b[3] for b in kept]).astype(np.float64)
    began = np.repeat([batch[0] for batch in kept], [len(batch[2]) for batch in kept])
    return np.concatenate([batch[2] for batch in kept]), counts, began


def _progress(values: Floats, counts: Floats, began: Floats) -> float:
    """The speed of the values relative to the clock, between 0 and 1; 0 if there are too few rows.

    It is the rise of the median from the older half of the rows to the newer half. A batch has one clock, so the halves
    consist of whole batches.
    """
    began = began - began[0]
    ranks = counts.cumsum()
    split = int(began.searchsorted(began[ranks.searchsorted(ranks[-1] / 2)], "right"))
    if ranks[-1] < LEAST_ROWS or split == len(began):
        return 0.0
    older, newer = slice(None, split), slice(split, None)
    elapsed = began[newer] @ counts[newer] / counts[newer].sum() - began[older] @ counts[older] / counts[older].sum()
    risen = _median(values[newer], counts[newer]) - _median(values[older], counts[older])
    return float(min(max(risen / elapsed, 0.0), 1.0))


def _median(values: Floats, counts: Floats) -> float:
    order = values.argsort(kind="stable")
    ranks = counts[order].cumsum()
    return float(values[order[ranks.searchsorted(ranks[-1] / 2)]])


def _grouped(values: Floats, weights: Ints | None, rows: int) -> tuple[Floats, Ints]:
    """Reduce a batch to at most ``POINTS`` groups: the lowest value of each, and its number of rows."""
    if weights is None:
        bounds = -(_BOUNDS * -rows // POINTS)
        return np.sort(values)[bounds[:-1]], bounds[1:] - bounds[:-1]
    order = np.argsort(values, kind="stable")
    values, counts = values[order], weights[order]
    group = (np.cumsum(counts) - counts) * POINTS // rows
    first = np.concatenate(([0], 1 + (group[1:] != group[:-1]).nonzero()[0]))
    return values[first], np.add.reduceat(counts, first)


def _rows(batch: _Kept) -> int:
    return len(batch[2]) if batch[3] is None else int(batch[3].sum())
