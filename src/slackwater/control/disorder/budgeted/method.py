"""The default method: the shortest wait that a budget of late rows allows."""

from __future__ import annotations

import math
from typing import Any, ClassVar

import numpy as np

from slackwater.control.disorder.budgeted.budget import MOST_SPENT, Budget
from slackwater.control.disorder.budgeted.front_frame import FrontFrame
from slackwater.control.disorder.budgeted.fronts import SourceFronts
from slackwater.control.disorder.budgeted.new_source_bound import NewSourceBound
from slackwater.control.disorder.budgeted.tail import Tail
from slackwater.control.disorder.cause import Cause
from slackwater.control.disorder.protocol import UNKNOWN, Batch, Floats, from_json, to_json
from slackwater.control.disorder.registry import register
from slackwater.control.policy import Room
from slackwater.promises import Completeness

BEST_EFFORT_RATIO = 1e-4
"""The drop ratio that best effort (D = 0) aims at."""
HORIZONS = (4.0, 64.0)
"""The horizons of the tails, in promised drops: a horizon h remembers about h/D rows."""
WAITS_REMEMBERED = 10.0
"""The shortest horizon remembers at least this many waits, however fast the rows arrive."""
MARGIN = 0.3
"""The safety margin on the longest known lateness, used while the budget does not cover a single row."""
SETTLED = 2.0
"""There is no heartbeat before the stream has run for this many waits: longer latenesses cannot have been seen."""
FIRST_ROWS = 15
"""There is no heartbeat before this many rows."""
MOST_UNHEARD = 3.0
"""A source that has not been heard yet is expected to be at most this many times as late as the known ones."""
TRUSTED_DROPS = 3.0
"""The budget is not spent before this many promised drops (rule of three: n rows without loss show a ratio < 3/n)."""
TRUSTED_WAITS = 3.0
"""The budget is not spent before this many waits have passed: rows within one wait are correlated."""
LOSS_MEMORY = 16.0
"""The losses of the candidates are averaged over about this many promised drops."""
LONG_GAP = 10.0
"""A gap of more than this many mean gaps, and longer than the wait, is a stall: rows may have been held back."""
LEAP = 100.0
"""Without a clock, a value this many waits ahead of the front is ignored until other rows confirm it."""
CONFIRMING_ROWS = 30
"""This many consecutive rows beyond ``LEAP`` confirm it."""
USUAL_WAITS = 100.0
"""The usual lateness is averaged over this many waits."""
_FORMAT = 4
"""The format of snapshots. From a snapshot of another format only the budget is resumed."""
_NUMBERS = (
    *("_start", "_now", "_front", "_wait", "_usual", "_last", "_probe"),
    *("_gap", "_stalled_at", "_stalled_until", "_reference"),
)
"""The attributes that a snapshot lists under ``numbers``, in this order."""


@register
class BudgetedQuantile:
    """Keeps the counted drop ratio at or below D with nearly the shortest wait, without assuming a distribution.

    The effective lateness of a row is the reference minus its value. The reference is the arrival clock, or the front,
    at the time when the heartbeat that applied to the row was decided. The method keeps the upper tail of the effective
    lateness behind the clock over two horizons, and behind the front over one. Each tail proposes a candidate
    heartbeat at the rate that the budget allows. Of those behind the clock the one with the lowest recent pinball loss
    counts. The heartbeat is the lower of that and the one behind the front: a pipeline that falls behind moves its
    front, and a steady one has both in the same place. Where the rows themselves raise the heartbeat, they are given
    both distances, behind the clock and behind the front, instead of a heartbeat that is one batch older.

    With sources, the fronts of those that are behind or silent limit the heartbeat further.

    Costs about 300 µs per batch and constant memory, plus a few numbers per source. When rows suddenly come later than
    ever before, rows are lost until the method notices.
    """

    name: ClassVar[str] = "budgeted-quantile"
    follows_clock: ClassVar[bool] = True

    def __init__(self, promise: Completeness, horizons: tuple[float, ...] = HORIZONS, margin: float = MARGIN) -> None:
        self.ratio = promise.drop_ratio or BEST_EFFORT_RATIO
        self.horizons = tuple(horizons)
        self.margin = margin
        self.idle_after = promise.idle_after_ms
        self.budget = Budget(self.ratio)
        self.cause = Cause("starting")
        self.rising = UNKNOWN
        self.ceiling = math.inf
        self.room: Room | None = None
        self._sources: SourceFronts | None = None
        self._new_sources: NewSourceBound | None = None
        self._tails: list[Tail] = []
        self._front_frame: FrontFrame | None = None
        self._reference = UNKNOWN
        self._start = UNKNOWN
        self._now = UNKNOWN
        self._front = UNKNOWN
        self._wait = 0.0
        self._usual = 0.0
        self._gap = 0.0
        self._gaps = 0
        self._unconfirmed = 0
        self._stalled_at = math.inf
        self._stalled_until = UNKNOWN
        self._may_spend = False
        self._candidates: Floats = np.zeros(0)
        self._probe = UNKNOWN
        self._losses: Floats = np.zeros(0)
        self._last = UNKNOWN

    def observe(self, batch: Batch) -> None:
        """Learn from a batch whose late rows have been counted."""
        rows = batch.rows
        self.budget.count(rows, batch.late)
        if not len(batch.values):
            return
        lowest, top = float(batch.values.min()), self._highest_trusted(batch, rows)
        before = self._now
        now = max(self._front, top) if batch.clock is None else batch.clock
        first = not self._tails
        if first:
            self._front, self._start, before = top, now if batch.began is None else min(batch.began, now), now
            self._new_tails(with_front=batch.clock is not None)
        if first:
            self._reference = now
        else:
            self._note_gap(now, now - before)
        if batch.reference is not None:
            self._move_reference(batch.reference)
        self._learn(batch, rows, lowest, now - before)
        self._score(batch, rows, lowest, now)
        self._front = max(self._front, top)
        self._now = max(now, before)
        late_by = np.maximum(now - batch.values, 0.0)
        total = late_by.sum() if batch.weights is None else late_by @ batch.weights
        self._follow_usual(float(total) / rows, now - before)
        if batch.sources is not None:
            if self._sources is None:
                self._sources, self._new_sources = SourceFronts(), NewSourceBound()
            if self._new_sources is not None:
                self._new_sources.observe(late_by, batch.weights, batch.sources)
            self._sources.observe(np.minimum(batch.values, now), batch.weights, batch.sources, now, self._wait)

    def _move_reference(self, reference: float) -> None:
        """Shift what was decided last to the clock at which the heartbeat in force was really chosen."""
        shift = reference - self._reference
        self._reference = reference
        self._candidates = self._candidates + shift
        self._probe += shift

    def _highest_trusted(self, batch: Batch, rows: int) -> float:
        """The highest plausible value: at most the clock, or without a clock no unconfirmed leap beyond the front."""
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

    def _note_gap(self, now: float, elapsed: float) -> None:
        """Recognise a stall by an unusually long gap between batches, and follow the mean gap."""
        if self._gaps and elapsed > max(self._wait, LONG_GAP * self._gap):
            self._stalled_at, self._stalled_until = self._front, now + self._wait
        self._gaps += 1
        self._gap += (elapsed - self._gap) * max(0.02, 1.0 / self._gaps)

    def _new_tails(self, *, with_front: bool) -> None:
        reach = min(1.0, MOST_SPENT * self.ratio)
        self._tails = [Tail(reach) for _ in self.horizons]
        self._front_frame = FrontFrame(reach) if with_front else None

    def _learn(self, batch: Batch, rows: int, lowest: float, elapsed: float) -> None:
        """Add the effective lateness of the rows to every tail."""
        forget = rows * self.ratio
        if self._wait > 0:
            forget = min(forget, self.horizons[0] * elapsed / (WAITS_REMEMBERED * self._wait))
        lateness = self._reference - batch.values
        for tail, horizon in zip(self._tails, self.horizons, strict=True):
            tail.add(lateness, batch.weights, rows, self._reference - lowest, forget / horizon)
        if self._front_frame is not None:
            self._front_frame.learn(batch, rows, lowest, forget / self.horizons[-1])

    def _score(self, batch: Batch, rows: int, lowest: float, now: float) -> None:
        """Update the pinball loss of each candidate heartbeat, and report clusters of losses to the budget."""
        if not len(self._candidates):
            return
        candidates = self._candidates
        losses = self.ratio * rows * (candidates.max() - candidates)
        lost = 0.0
        highest = max(float(candidates.max()), self._probe)
        if lowest < highest:
            below = batch.values < highest
            values = batch.values[below]
            missed, probed = np.maximum(candidates[:, None] - values, 0.0), values < self._probe
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
        """The wait for the promised ratio itself, which does not grow when the budget is short."""
        return min(self._wait, self._now - self._probe) if math.isfinite(self._probe) else self._wait

    def _follow_usual(self, lateness: float, elapsed: float) -> None:
        """Average the lateness; a sudden rise counts at most threefold."""
        if self._usual <= 0:
            self._usual = lateness
        elif elapsed > 0:
            ran = min(self._now - self._start, USUAL_WAITS * self._wait)
            step = min(elapsed / ran, 1.0) if ran > 0 else 1.0
            self._usual += (min(lateness, 3.0 * self._usual) - self._usual) * step

    def heartbeat(self, clock: float | None) -> float:
        """Propose a heartbeat for the arrival clock ``clock``; None means that the stream has no clock."""
        if not self._tails:
            return UNKNOWN
        now = self._front if clock is None else clock
        self._reference = now
        # the heartbeat for the promised ratio itself: clusters are learned from it even while the budget is short
        longest = self._tails[-1]
        self._probe = now - max(longest.above(self.ratio * longest.rows), 0.0)
        self._may_spend = self._may_spend or self._enough_seen(now)
        rate = self.budget.rate() if self._may_spend else 0.0
        self._candidates = now - np.array(self._waits_for(rate))
        if len(self._losses) != len(self._candidates):
            self._losses = np.zeros(len(self._candidates))
        by_clock, by_front, behind = self._choose(), math.inf, 0.0
        if self._front_frame is not None:
            self._front_frame.decide_at(now, self._front)
            behind = self._front_frame.behind(rate, self._margin(), self.budget.balance)
            by_front = self._front - behind
        self._wait = max(now - by_clock, 0.0)
        heartbeat = min(by_clock, by_front)
        self.rising, self.ceiling, self.room = UNKNOWN, math.inf, None
        self.cause = Cause("quantile" if by_clock <= by_front else "front-frame")
        if self.budget.balance < 0:
            self.cause = Cause("budget")
        if self.budget.rows < FIRST_ROWS or now - self._start < self._settling_time():
            self.cause = Cause("starting")
            return UNKNOWN
        self._new_sources = None
        limited = self._limit_by_sources(self._limit_after_stall(heartbeat, now), now)
        self.rising, self.ceiling = by_clock, by_front if limited >= heartbeat else limited
        if self._front_frame is not None:
            goes_on = limited >= heartbeat and self._front_frame.goes_on(self.budget.balance)
            self.room = Room(self._wait, behind, math.inf if goes_on else limited)
        self._last = max(self._last, limited)
        return limited

    def _enough_seen(self, now: float) -> bool:
        """Whether enough rows and time have passed to estimate the quantile for the promised ratio."""
        long_enough = now - self._start >= TRUSTED_WAITS * (now - self._probe)
        return long_enough and self.ratio * self.budget.rows >= TRUSTED_DROPS

    def _settling_time(self) -> float:
        """The time that the stream has to run before the first heartbeat."""
        if self._new_sources is None:
            return SETTLED * self._wait
        lateness = min(self._new_sources.lateness(self.ratio), MOST_UNHEARD * max(self._tails[-1].highest(), 0.0))
        return SETTLED * max(self._wait, (1.0 + self.margin) * lateness)

    def _choose(self) -> float:
        """The candidate with the lowest loss; that of the longest horizon until the budget may be spent."""
        return float(self._candidates[int(np.argmin(self._losses)) if self._may_spend else -1])

    def _waits_for(self, rate: float) -> list[float]:
        """The wait that each tail proposes at ``rate``; below one row, the wait of the next longer horizon."""
        waits: list[float] = []
        for tail in reversed(self._tails):
            affordable = rate * tail.rows
            if affordable >= 1.0:
                waits.append(max(tail.above(affordable), 0.0))
            else:
                waits.append(waits[-1] if waits else max(tail.highest(), 0.0) + self._margin())
        return waits[::-1]

    def _margin(self) -> float:
        """The safety margin on the longest known lateness."""
        return max(self._tails[-1].highest(), 0.0) * self.margin

    def _limit_after_stall(self, heartbeat: float, now: float) -> float:
        """Keep the heartbeat at the front from before a stall until the stream has been back for one wait."""
        if now <= self._stalled_until and self._stalled_at < heartbeat:
            heartbeat, self.cause = self._stalled_at, Cause("after-stall")
        return heartbeat

    def _limit_by_sources(self, heartbeat: float, now: float) -> float:
        """Lower the heartbeat to the fronts of sources that are behind or silent, and note the cause."""
        if self._sources is None:
            return heartbeat
        balance = max(self.budget.balance, 0.0)
        front, source = self._sources.lowest_limit(now, self._wait, balance, self._usual, self.idle_after)
        if front < heartbeat:
            heartbeat, self.cause = front, Cause("source-behind", source)
        in_force = max(heartbeat, self._last)
        limit, source = self._sources.limit_for_silent(in_force, now, self._wait, balance, self.idle_after)
        if limit < heartbeat:
            heartbeat, self.cause = limit, Cause("source-silent", source)
        return heartbeat

    def snapshot(self) -> dict[str, Any]:
        """The state of the method, as JSON."""
        return {
            "format": _FORMAT,
            "budget": self.budget.snapshot(),
            "tails": [tail.snapshot() for tail in self._tails],
            "front": None if self._front_frame is None else self._front_frame.snapshot(),
            "numbers": [to_json(getattr(self, name)) for name in _NUMBERS],
            "counts": [self._gaps, self._unconfirmed, int(self._may_spend)],
            "bets": self._candidates.tolist(),
            "losses": self._losses.tolist(),
            "sources": None if self._sources is None else self._sources.snapshot(),
            "unheard": None if self._new_sources is None else self._new_sources.snapshot(),
        }

    def resume(self, snapshot: dict[str, Any]) -> None:
        """Restore the state from a snapshot of the same method. One of another format restores the budget only."""
        self.budget.resume(snapshot["budget"])
        if snapshot.get("format") != _FORMAT:
            return
        if snapshot["tails"]:
            self._new_tails(with_front=snapshot["front"] is not None)
        for tail, state in zip(self._tails, snapshot["tails"], strict=True):
            tail.resume(state)
        if self._front_frame is not None:
            self._front_frame.resume(snapshot["front"])
        for name, number in zip(_NUMBERS, snapshot["numbers"], strict=True):
            setattr(self, name, from_json(number))
        self._gaps, self._unconfirmed, may_spend = snapshot["counts"]
        self._may_spend = bool(may_spend)
        self._candidates, self._losses = np.array(snapshot["bets"]), np.array(snapshot["losses"])
        if snapshot["sources"] is not None:
            self._sources = SourceFronts()
            self._sources.resume(snapshot["sources"])
        if snapshot["unheard"] is not None:
            self._new_sources = NewSourceBound()
            self._new_sources.resume(snapshot["unheard"])
