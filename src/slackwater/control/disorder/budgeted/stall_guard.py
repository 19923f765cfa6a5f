"""Where the stream is right now, whatever the clock says: the rows that came last."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from typing import Any

import numpy as np

from slackwater.control.disorder.protocol import Floats, Ints

ROWS = 64
MAX_AGE = 0.5
"""Only rows younger than this share of the wait tell where the stream is now."""
SHARE = 3.0
"""So many times the promised ratio of them may lie below the heartbeat."""
ABSURD = 30.0
POINTS = 64
"""A large batch is kept as so many groups of neighbours, each under its lowest value."""
LEAST_ROWS = 16
"""Fewer rows do not tell whether the stream moves."""
_Kept = tuple[float, float, Floats, Ints | None]
"""When the batch began, its lowest value, its values, and how many rows each stands for."""
_BOUNDS = np.arange(POINTS + 1)


class StallGuard:
    """The last batches, at least 64 rows, and a heartbeat under which nearly all of them would have been on time.

    When a whole pipeline falls behind, the values stand still while the clock runs; then the rows that came last
    tell better than any lateness which rows will come next. Where the stream moves on, a row that came a while ago
    tells of rows as much higher as the stream has risen since. Rows thirty times later than their neighbours are
    left aside. A batch that spans more than half of the wait says nothing here.
    """

    def __init__(self) -> None:
        self._batches: deque[_Kept] = deque()
        self._rows = 0

    def observe(self, values: Floats, weights: Ints | None, rows: int, began: float, lowest: float) -> None:
        """Let a batch in that began to arrive at ``began``."""
        if len(values) > 2 * POINTS:
            values, weights = _grouped(values, weights, rows)
        self._batches.append((began, lowest, values, weights))
        self._rows += rows
        while len(self._batches) > 1 and self._rows - _rows(self._batches[0]) >= ROWS:
            self._rows -= _rows(self._batches.popleft())

    def hold(self, heartbeat: float, now: float, wait: float, drop_ratio: float, balance: float) -> float:
        """The heartbeat, lowered to where the stream is, as far as ``balance`` rows do not pay for finding it out."""
        since = now - MAX_AGE * wait
        fresh = [batch for batch in self._batches if batch[0] >= since]
        if not fresh or min(batch[1] for batch in fresh) >= heartbeat:
            return heartbeat
        values, counts, began = _flat(fresh)
        # a standstill shows after so many rows: where they can be paid for, none is feared before
        asked = self._newest(LEAST_ROWS) if balance >= LEAST_ROWS > counts.sum() else (values, counts, began)
        values = values + _progress(*asked) * (now - began)
        order = np.argsort(values, kind="stable")
        values, ranks = values[order], np.cumsum(counts[order])
        middle = float(values[np.searchsorted(ranks, ranks[-1] / 2)])
        sane = int(np.searchsorted(values, now - ABSURD * max(now - middle, wait)))
        beyond = float(ranks[sane - 1]) if sane else 0.0
        allowed = beyond + int(SHARE * drop_ratio * ranks[-1])
        at = int(np.searchsorted(ranks, allowed, "right"))
        return min(heartbeat, float(values[at])) if at < len(values) else heartbeat

    def _newest(self, rows: int) -> tuple[Floats, Floats, Floats]:
        """The newest batches with so many rows, however old; all where there are fewer."""
        newest: deque[_Kept] = deque()
        for batch in reversed(self._batches):
            newest.appendleft(batch)
            rows -= _rows(batch)
            if rows <= 0:
                break
        return _flat(newest)

    def snapshot(self) -> list[Any]:
        """The batches as lists."""
        return [[b, low, v.tolist(), None if w is None else w.tolist()] for b, low, v, w in self._batches]

    def resume(self, snapshot: list[Any]) -> None:
        """Go on from a snapshot."""
        self._batches = deque(
            (float(b), float(low), np.asarray(v, np.float64), None if w is None else np.asarray(w, np.int64))
            for b, low, v, w in snapshot
        )
        self._rows = sum(_rows(batch) for batch in self._batches)


def _flat(batches: Iterable[_Kept]) -> tuple[Floats, Floats, Floats]:
    """Values, how many rows each stands for, and when its batch began."""
    kept = list(batches)
    counts = np.concatenate([np.ones(len(b[2])) if b[3] is None else b[3] for b in kept]).astype(np.float64)
    began = np.repeat([batch[0] for batch in kept], [len(batch[2]) for batch in kept])
    return np.concatenate([batch[2] for batch in kept]), counts, began


def _progress(values: Floats, counts: Floats, began: Floats) -> float:
    """How fast the values rose beside the clock: 0 at a standstill or where it cannot be told, at most 1.

    From the middle of the older half of the rows to that of the newer one; whole batches, as a batch has one clock.
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
