"""The default method: the wait that loses no more than the drops that were promised and really counted."""

from __future__ import annotations

import math
from collections import deque
from typing import Any, ClassVar

import numpy as np

from slackwater.control.disorder.budget import Budget
from slackwater.control.disorder.fronts import SourceFronts
from slackwater.control.disorder.protocol import UNKNOWN, Batch, Floats
from slackwater.control.disorder.registry import register
from slackwater.control.disorder.tail import Tail
from slackwater.promises import Completeness

BEST_EFFORT_RATIO = 1e-4


@register
class BudgetedQuantile:
    """Waits for the (1 − D)-quantile of effective lateness, corrected by the drops really counted.

    A first version: arrival frame (front frame without a clock), budget, guard against stalls.
    """

    name: ClassVar[str] = "budgeted-quantile"

    def __init__(
        self,
        promise: Completeness,
        horizons: tuple[float, ...] = (8.0, 64.0, 512.0),
        margin: float = 0.5,
        settle: float = 2.0,
        idle: tuple[float, ...] = (1.0, 4.0),
        eagerness: float = 2.0,
        caution: float = 1.0,
        discount: float = 16.0,
        rows0: int = 30,
        combine: str = "best",
        frames: str = "a",
        guard_rows: int = 64,
        guard_share: float = 3.0,
        guard_age: float = 0.25,
        hold: float = 0.0,
    ) -> None:
        self.ratio = promise.drop_ratio or BEST_EFFORT_RATIO
        self.budget = Budget(self.ratio, eagerness, caution)
        self.margin, self.settle, self.idle, self.discount = margin, settle, idle, discount
        self.rows0, self.combine = rows0, combine
        self.frames = frames
        self.guard_rows, self.guard_share, self.guard_age, self.hold = guard_rows, guard_share, guard_age, hold
        self._recent: deque[tuple[float, Floats]] = deque()
        self._recent_rows = 0
        self._clock0 = UNKNOWN
        self.horizons = horizons
        self._refs: Floats | None = None
        self._names: list[str] = []
        self._tails: list[list[Tail]] = []
        self._front = UNKNOWN
        self._sources: SourceFronts | None = None
        self._last = UNKNOWN
        self._start: Floats | None = None
        self._bets: Floats | None = None
        self._loss: Floats | None = None
        self._wait_a = 0.0

    def _references(self, clock: float | None) -> Floats:
        refs = []
        if clock is not None and "a" in self.frames:
            refs.append(clock)
        if "f" in self.frames or clock is None:
            refs.append(self._front)
        if self._sources is not None and "s" in self.frames:
            now = self._front if clock is None else clock
            refs += [self._sources.lowest(now - i * self._wait_a) for i in self.idle]
        return np.array(refs)

    def observe(self, batch: Batch) -> None:
        """Learn from rows that have just been judged."""
        values = batch.values
        rows = batch.rows
        self.budget.count(rows, batch.late)
        n = len(values)
        if not n:
            return
        clock = batch.clock
        refs = self._refs
        if refs is None:
            self._fronts(batch)
            refs = self._start = self._references(clock)
            self._tails = [[Tail(h / self.ratio, min(1.0, 6 * self.ratio)) for h in self.horizons] for _ in refs]
        lowest = float(values.min())
        for ref, tails in zip(refs.tolist(), self._tails, strict=True):
            highest = ref - lowest
            x = ref - values
            for tail in tails:
                tail.add(x, batch.weights, rows, highest)
        if self._bets is not None:
            bets = self._bets
            loss = -self.ratio * rows * bets
            low = float(bets.max())
            if lowest < low:
                tailrows = values < low
                v = values[tailrows]
                w = np.ones(1) if batch.weights is None else batch.weights[tailrows][None, :]
                loss = loss + (np.maximum(bets[:, None] - v[None, :], 0) * w).sum(axis=1)
            loss -= loss.min()
            keep = math.exp(-rows * self.ratio / self.discount)
            self._loss = loss if self._loss is None else self._loss * keep + loss
        if self._refs is not None:
            self._fronts(batch)
        self._recent.append((self._clock0, values))
        self._recent_rows += n
        while len(self._recent) > 1 and self._recent_rows - len(self._recent[0][1]) >= self.guard_rows:
            self._recent_rows -= len(self._recent.popleft()[1])
        self._clock0 = self._front if clock is None else clock

    def _guard(self, now: float, wait: float, rate: float) -> float:
        since = now - self.guard_age * wait
        fresh = [v for c, v in self._recent if c >= since]
        if not fresh:
            return math.inf
        v = np.concatenate(fresh)
        k = int(max(self.guard_share * rate, 0) * len(v))
        return float(np.partition(v, k)[k]) if k < len(v) else math.inf

    def _fronts(self, batch: Batch) -> None:
        top = float(batch.values.max())
        if batch.clock is not None:
            top = min(top, batch.clock)
        self._front = max(self._front, top)
        if batch.sources is not None:
            if self._sources is None:
                self._sources = SourceFronts()
            now = batch.arrivals_or_clock()
            v = batch.values if batch.clock is None else np.minimum(batch.values, batch.clock)
            self._sources.observe(v, batch.sources, v if now is None else now)

    def heartbeat(self, clock: float | None) -> float:
        """The heartbeat to put in force now."""
        if self._start is None:
            return UNKNOWN
        refs = self._references(clock)
        self._refs = refs
        rate = min(self.budget.rate, 5 * self.ratio)
        bets = np.empty((len(refs), len(self.horizons)))
        for i, tails in enumerate(self._tails):
            for j, tail in enumerate(tails):
                k = rate * tail.rows
                w = max(tail.above(k), 0.0)
                if k < 1:
                    w *= 1 + self.margin * (1 - max(k, -1))
                bets[i, j] = refs[i] - w
                if i == 0 and j == len(tails) - 1:
                    self._wait_a = w
        self._bets = bets.ravel()
        pick = 0 if self._loss is None else int(np.argmin(self._loss))
        h = float(self._bets[pick])
        i = pick // len(self.horizons)
        if self.budget.rows < self.rows0 or refs[i] - self._start[i] < self.settle * (refs[i] - h):
            return self._last
        if self.budget.balance < -self.hold * max(1.0, self.ratio * self.budget.rows):
            return self._last
        h = min(h, self._guard(self._front if clock is None else clock, refs[i] - h, rate))
        self._last = max(self._last, h)
        return self._last

    def snapshot(self) -> dict[str, Any]:
        """Everything it has learned, as JSON."""
        return {
            "budget": self.budget.snapshot(),
            "refs": _list(self._refs),
            "start": _list(self._start),
            "tails": [[tail.snapshot() for tail in tails] for tails in self._tails],
            "front": _list(np.array([self._front, self._clock0, self._last, self._wait_a])),
            "sources": None if self._sources is None else self._sources.snapshot(),
            "bets": _list(self._bets),
            "loss": _list(self._loss),
            "recent": [[c if math.isfinite(c) else None, v.tolist()] for c, v in self._recent],
        }

    def resume(self, snapshot: dict[str, Any]) -> None:
        """Go on from a snapshot."""
        self.budget.resume(snapshot["budget"])
        self._refs, self._start = _array(snapshot["refs"]), _array(snapshot["start"])
        self._tails = []
        for saved in snapshot["tails"]:
            tails = [Tail(h / self.ratio, min(1.0, 6 * self.ratio)) for h in self.horizons]
            for tail, state in zip(tails, saved, strict=True):
                tail.resume(state)
            self._tails.append(tails)
        front = _array(snapshot["front"])
        assert front is not None
        self._front, self._clock0, self._last, self._wait_a = front.tolist()
        if snapshot["sources"] is not None:
            self._sources = SourceFronts()
            self._sources.resume(snapshot["sources"])
        self._bets, self._loss = _array(snapshot["bets"]), _array(snapshot["loss"])
        self._recent = deque((UNKNOWN if c is None else c, np.array(v)) for c, v in snapshot["recent"])
        self._recent_rows = sum(len(v) for _, v in self._recent)


def _list(values: Floats | None) -> list[float | None] | None:
    return None if values is None else [v if math.isfinite(v) else None for v in values.tolist()]


def _array(values: list[float | None] | None) -> Floats | None:
    return None if values is None else np.array([UNKNOWN if v is None else v for v in values])
