"""The default method: the shortest wait that the drops really counted can pay for."""

from __future__ import annotations

import math
from typing import Any, ClassVar

import numpy as np

from slackwater.control.disorder.budgeted.budget import Budget
from slackwater.control.disorder.budgeted.fronts import SourceFronts
from slackwater.control.disorder.budgeted.new_source_bound import NewSourceBound
from slackwater.control.disorder.budgeted.stall_guard import StallGuard
from slackwater.control.disorder.budgeted.standardised import LOCATED_ROWS, StandardisedTail
from slackwater.control.disorder.budgeted.tail import Tail
from slackwater.control.disorder.cause import Cause
from slackwater.control.disorder.protocol import UNKNOWN, Batch, Floats
from slackwater.control.disorder.registry import register
from slackwater.promises import Completeness

BEST_EFFORT_RATIO = 1e-4
"""What a promise of nothing (D = 0) aims at."""
HORIZONS = (2.0, 16.0, 128.0)
"""How many promised drops each horizon spans: quick to follow, steady, and precise."""
WAITS_REMEMBERED = 10.0
"""The first horizon never forgets faster than this many waits, however fast the rows come."""
REACH = 6.0
"""The tails know ranks up to so many times the promised ratio."""
MARGIN = 0.3
"""On the longest lateness known, while not even one row can be afforded: lateness grows before it breaks out."""
SETTLED = 1.2
"""No heartbeat before the stream has run for so many waits: longer latenesses could not have been seen yet."""
FIRST_ROWS = 15
MOST_UNHEARD = 3.0
"""Nor before a source that is still to be heard could have been: taken to be so many times later at most."""
TRUSTED_DROPS = 3.0
"""Nothing is spent before so many promised drops (rule of three: n rows without a loss show a ratio below 3/n)."""
TRUSTED_WAITS = 3.0
"""Nor before the stream has run for so many waits of the promised ratio: rows of one wait tell of one moment."""
SPENT_WAITS = 3.0
"""While the budget is spent, the wait is so many times the longest lateness ever seen."""
LOSS_MEMORY = 16.0
"""The frames are compared over so many promised drops."""
FRONT_ADVANTAGE = 0.2
"""The front frame is taken only where it loses less than this share of what the arrival frame loses."""
STANDARDISED_ADVANTAGE = 0.75
"""The standardised tail is taken only where it loses less than this share of what the plain ones lose."""
LONG_GAP = 10.0
"""Silence of so many times the mean gap, and longer than the wait, is a stall that may have held rows back."""
LEAP = 100.0
"""Without a clock, a value so many waits ahead of the front is not believed before others confirm it."""
CONFIRMING_ROWS = 30
USUAL_WAITS = 100.0
"""Over how many waits the usual lateness is averaged."""


@register
class BudgetedQuantile:
    """Loses at most D of the rows, counted, for nearly the shortest wait; assumes no distribution.

    What matters for a row is its effective lateness: the reference (arrival clock, or front) at the moment when the
    heartbeat that judged it was decided, minus its value. Of these the upper tail is kept, over three horizons, once
    more standardised, and in two frames; the one with the least pinball loss on what came lately proposes the wait, at
    the rate that the budget can pay. While the budget is spent the wait is thrice the longest lateness ever seen. The
    heartbeat never overtakes where the stream itself is.

    Costs some 300 µs a batch and an amount of memory that does not depend on the stream, apart from a few numbers a
    source. Fails, for as long as it takes to notice, when rows come later than ever before without any sign.
    """

    name: ClassVar[str] = "budgeted-quantile"

    def __init__(self, promise: Completeness, horizons: tuple[float, ...] = HORIZONS, margin: float = MARGIN) -> None:
        self.ratio = promise.drop_ratio or BEST_EFFORT_RATIO
        self.horizons = tuple(horizons)
        self.margin = margin
        self.idle_after = promise.idle_after_ms
        self.budget = Budget(self.ratio)
        self.cause = Cause("starting")
        self._sources: SourceFronts | None = None
        self._unheard: NewSourceBound | None = None
        self._standstill = StallGuard()
        self._tails: list[list[Tail | StandardisedTail]] = []
        self._references: list[float] = []
        self._longest = 0.0
        self._start = UNKNOWN
        self._now = UNKNOWN
        self._front = UNKNOWN
        self._wait = 0.0
        self._usual = 0.0
        self._gap = 0.0
        self._gaps = 0
        self._unconfirmed = 0
        self._trusted = False
        self._stalled_at = math.inf
        self._stalled_until = UNKNOWN
        self._bets: Floats = np.zeros(0)
        self._bet = UNKNOWN
        self._probe = UNKNOWN
        self._losses: Floats = np.zeros(0)
        self._last = UNKNOWN

    def observe(self, batch: Batch) -> None:
        """Learn from rows that have just been judged."""
        rows = batch.rows
        self.budget.count(rows, batch.late)
        if not len(batch.values):
            return
        lowest, top = float(batch.values.min()), self._trusted_top(batch, rows)
        before = self._now
        now = max(self._front, top) if batch.clock is None else batch.clock
        if not self._tails:
            self._front, self._start, before = top, now, now
            self._references = [now] if batch.clock is None else [now, top]
            self._tails = self._new_tails(1 if batch.clock is None else 2)
        self._mind_gap(now, now - before)
        self._longest = max(self._longest, self._references[0] - lowest)
        self._learn(batch, rows, lowest, now - before)
        self._score(batch, rows, lowest, now)
        self._front = max(self._front, top)
        self._now = max(now, before)
        late_by = np.maximum(now - batch.values, 0.0)
        total = late_by.sum() if batch.weights is None else late_by @ batch.weights
        self._follow_usual(float(total) / rows, now - before)
        if now - before <= self._wait or not math.isfinite(self._last):
            self._standstill.observe(batch.values, batch.weights, rows, before, lowest)
        if batch.sources is not None:
            if self._sources is None:
                self._sources, self._unheard = SourceFronts(), NewSourceBound()
            if self._unheard is not None:
                self._unheard.observe(late_by, batch.weights, batch.sources)
            self._sources.observe(np.minimum(batch.values, now), batch.weights, batch.sources, now, self._wait)

    def _trusted_top(self, batch: Batch, rows: int) -> float:
        """The highest value, where it can be believed: not ahead of the clock, no lone leap where there is none."""
        top = float(batch.values.max())
        if batch.clock is not None:
            return min(top, batch.clock)
        limit = self._front + LEAP * max(self._wait, self._gap, self._usual)
        if not self._gaps or top <= limit:
            self._unconfirmed = 0
            return top
        near = batch.values[batch.values <= limit]
        if len(near):
            self._unconfirmed = 0
            return float(near.max())
        self._unconfirmed += rows
        return float(batch.values.min()) if self._unconfirmed >= CONFIRMING_ROWS else self._front

    def _mind_gap(self, now: float, elapsed: float) -> None:
        if self._gaps and elapsed > max(self._wait, LONG_GAP * self._gap):
            self._stalled_at, self._stalled_until = self._front, now + self._wait
        self._gaps += 1
        self._gap += (elapsed - self._gap) * max(0.02, 1.0 / self._gaps)

    def _new_tails(self, frames: int) -> list[list[Tail | StandardisedTail]]:
        """Of the clock's frame (the front's where there is none) every tail; of the front's beside it a single one."""
        reach = min(1.0, REACH * self.ratio)
        tails: list[list[Tail | StandardisedTail]] = [[StandardisedTail(reach)], [Tail(reach)]]
        tails[0] += [Tail(reach) for _ in self.horizons]
        return tails[:frames]

    def _learn(self, batch: Batch, rows: int, lowest: float, elapsed: float) -> None:
        forget = rows * self.ratio / self.horizons[0]
        if self._wait > 0:
            forget = min(forget, elapsed / (WAITS_REMEMBERED * self._wait))
        frames = ((self.horizons[-1], *self.horizons), (self.horizons[len(self.horizons) // 2],))
        for reference, tails, horizons in zip(self._references, self._tails, frames, strict=False):
            lateness = reference - batch.values
            for tail, horizon in zip(tails, horizons, strict=True):
                fade = forget * self.horizons[0] / horizon
                tail.add(lateness, batch.weights, rows, reference - lowest, fade)

    def _score(self, batch: Batch, rows: int, lowest: float, now: float) -> None:
        """The pinball loss of each bet on a heartbeat, and the clusters that the chosen one would have lost."""
        if not len(self._bets):
            return
        bets = self._bets
        losses = self.ratio * rows * (bets.max() - bets)
        lost = 0.0
        highest_bet = max(float(bets.max()), self._probe)
        if lowest < highest_bet:
            below = batch.values < highest_bet
            values = batch.values[below]
            missed, probed = np.maximum(bets[:, None] - values, 0.0), values < self._probe
            if batch.weights is None:
                losses += missed.sum(axis=1)
                lost = float(np.count_nonzero(probed))
            else:
                counts = batch.weights[below].astype(np.float64)
                losses += missed @ counts
                lost = float(counts[probed].sum())
        self._losses = self._losses * math.exp(-rows * self.ratio / LOSS_MEMORY) + losses
        self.budget.see_cluster(lost, rows, now, self._probe_wait())

    def _probe_wait(self) -> float:
        """The wait of the promised ratio alone, which a lack of budget cannot inflate."""
        return min(self._wait, self._now - self._probe) if math.isfinite(self._probe) else self._wait

    def _follow_usual(self, lateness: float, elapsed: float) -> None:
        if self._usual <= 0:
            self._usual = lateness
        elif elapsed > 0:
            ran = min(self._now - self._start, USUAL_WAITS * self._wait)
            step = min(elapsed / ran, 1.0) if ran > 0 else 1.0
            self._usual += (min(lateness, 3.0 * self._usual) - self._usual) * step

    def heartbeat(self, clock: float | None) -> float:
        """The heartbeat to put in force now, with the arrival clock at ``clock``."""
        if not self._tails:
            return UNKNOWN
        now = self._front if clock is None else clock
        self._references = [now] if clock is None else [now, self._front]
        # what the promised ratio alone would bet: clusters are learned from it also while nothing can be afforded
        self._probe = now - max(self._tails[0][-1].above(self.ratio * self._tails[0][-1].rows), 0.0)
        self._trusted = self._trusted or self._enough_seen(now)
        rate = self.budget.rate() if self._trusted else 0.0
        waits = [self._waits_for(tails, rate) for tails in self._tails]
        self._bets = np.array([r - w for r, row in zip(self._references, waits, strict=True) for w in row])
        if len(self._losses) != len(self._bets):
            self._losses = np.zeros(len(self._bets))
        choice = self._choose() if self._trusted else 1
        self._bet = float(self._bets[choice])
        self._wait = max(now - self._bet, 0.0)
        heartbeat, self.cause = self._bet, Cause("quantile" if choice < len(waits[0]) else "front-frame")
        heartbeat = self._hold_back(heartbeat, now)
        if self.budget.rows < FIRST_ROWS or now - self._start < self._settled():
            self.cause = Cause("starting")
        else:
            self._unheard = None
            if self.budget.balance < 0:
                heartbeat, self.cause = min(heartbeat, now - SPENT_WAITS * self._longest), Cause("budget")
            self._last = max(self._last, heartbeat)
        return self._last

    def _enough_seen(self, now: float) -> bool:
        """Whether what has been seen tells of the promised ratio at all."""
        ran = now - self._start >= TRUSTED_WAITS * (now - self._probe)
        return ran and self.ratio * self.budget.rows >= TRUSTED_DROPS

    def _settled(self) -> float:
        """How long the stream has to run before the first heartbeat."""
        if self._unheard is None:
            return SETTLED * self._wait
        unheard = min(self._unheard.lateness(self.ratio), MOST_UNHEARD * max(self._tails[0][-1].highest(), 0.0))
        return SETTLED * max(self._wait, (1.0 + self.margin) * unheard)

    def _choose(self) -> int:
        first = len(self._tails[0])
        # the standardised tail, which stands before the plain ones, has to be better by more than chance
        best = 1 + int(np.argmin(self._losses[1:first]))
        # a first horizon shorter than what location and scale rest on follows a change sooner than they do
        quicker = self.horizons[0] > LOCATED_ROWS * self.ratio
        if quicker and self._losses[0] < STANDARDISED_ADVANTAGE * self._losses[best]:
            best = 0
        if len(self._losses) > first:
            other = first + int(np.argmin(self._losses[first:]))
            if self._losses[other] < FRONT_ADVANTAGE * self._losses[best]:
                return other
        return best

    def _waits_for(self, tails: list[Tail | StandardisedTail], rate: float) -> list[float]:
        """What each tail proposes; where the rate leaves one not even a row, what the one behind it does."""
        waits: list[float] = []
        for tail in reversed(tails):
            affordable = rate * tail.rows
            if affordable >= 1.0:
                waits.append(max(tail.above(affordable), 0.0))
            else:
                waits.append(waits[-1] if waits else max(tail.highest(), 0.0) * (1.0 + self.margin) * self._growth())
        return waits[::-1]

    def _growth(self) -> float:
        """How much later the latest of 1/D rows is than the latest of those seen, were the tail exponential."""
        return max(math.log(1.0 / self.ratio) / math.log(max(self.budget.rows, FIRST_ROWS)), 1.0)

    def _hold_back(self, heartbeat: float, now: float) -> float:
        """The heartbeat, kept behind where the stream itself is."""
        balance = max(self.budget.balance, 0.0)
        behind = self._standstill.hold(heartbeat, now, self._wait, self.ratio, balance)
        if behind < heartbeat:
            heartbeat, self.cause = behind, Cause("standstill")
        if now <= self._stalled_until and self._stalled_at < heartbeat:
            heartbeat, self.cause = self._stalled_at, Cause("after-stall")
        if self._sources is not None:
            front, source = self._sources.lowest_binding(now, self._wait, balance, self._usual, self.idle_after)
            if front < heartbeat:
                heartbeat, self.cause = front, Cause("source-behind", source)
            passing = max(heartbeat, self._last)
            kept, source = self._sources.hold_for_silent(passing, now, self._wait, balance, self.idle_after)
            if kept < heartbeat:
                heartbeat, self.cause = kept, Cause("source-silent", source)
        return heartbeat

    def snapshot(self) -> dict[str, Any]:
        """Everything it has learned, as JSON."""
        numbers = [self._start, self._now, self._front, self._wait, self._usual, self._bet, self._last, self._probe]
        numbers += [self._gap, self._stalled_at, self._stalled_until, self._longest]
        return {
            "budget": self.budget.snapshot(),
            "tails": [[tail.snapshot() for tail in tails] for tails in self._tails],
            "references": self._references,
            "numbers": [number if math.isfinite(number) else None for number in numbers],
            "counts": [self._gaps, self._unconfirmed, int(self._trusted)],
            "bets": self._bets.tolist(),
            "losses": self._losses.tolist(),
            "recent": self._standstill.snapshot(),
            "sources": None if self._sources is None else self._sources.snapshot(),
            "unheard": None if self._unheard is None else self._unheard.snapshot(),
        }

    def resume(self, snapshot: dict[str, Any]) -> None:
        """Go on from a snapshot of the same method."""
        self.budget.resume(snapshot["budget"])
        self._tails = self._new_tails(len(snapshot["tails"]))
        for tails, saved in zip(self._tails, snapshot["tails"], strict=True):
            for tail, state in zip(tails, saved, strict=True):
                tail.resume(state)
        self._references = [float(reference) for reference in snapshot["references"]]
        numbers = [UNKNOWN if number is None else float(number) for number in snapshot["numbers"]]
        self._start, self._now, self._front, self._wait, self._usual, self._bet, self._last, self._probe = numbers[:8]
        self._gap, self._stalled_at, self._stalled_until, self._longest = numbers[8:]
        self._gaps, self._unconfirmed, trusted = snapshot["counts"]
        self._trusted = bool(trusted)
        self._bets, self._losses = np.array(snapshot["bets"]), np.array(snapshot["losses"])
        self._standstill.resume(snapshot["recent"])
        if snapshot["sources"] is not None:
            self._sources = SourceFronts()
            self._sources.resume(snapshot["sources"])
        if snapshot["unheard"] is not None:
            self._unheard = NewSourceBound()
            self._unheard.resume(snapshot["unheard"])
