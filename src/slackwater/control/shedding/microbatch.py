"""The paper's loop for a micro-batch engine, whose dynamics differ from a queue's.

A micro-batch takes all rows that have arrived, keeps a share of them, and is done after D = d0 + c·(rows kept): d0 is
the fixed cost of a batch. Rows arrive for W, the time between two batch starts (the trigger interval, or the last
D if that was longer), so a row's delay is W/2 + D on average. With everything kept, D(k+1) = d0 + c·λ·W(k): batches of
a load below 1/c settle, those of a load above it grow geometrically, where the queue of Tu 2006, Eq. (4) grows
linearly. The laws control D, with T = W; the delay that follows from it is 1.5·D, and the target is set accordingly.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from slackwater.control.shedding.batch_cost import BatchCostMonitor
from slackwater.control.shedding.controller import shed_ratio
from slackwater.control.shedding.laws.ctrl_batch import CtrlBatch
from slackwater.control.shedding.protocol import SheddingLaw, Status
from slackwater.promises import Timeliness

MOST_SHED = 0.99
"""Of a period's rows at least one in a hundred is kept: with none, sums could not be corrected."""

AIM = 0.92
"""The loop aims a little below what is promised, since noise takes the mean to either side of where it aims."""

_LEAST_HEADROOM = 0.05
_OVERDUE = 1.15


@dataclass(frozen=True, slots=True)
class MicroBatch:
    """One committed micro-batch: when its trigger fired, how long until its commit, what it read and kept.

    ``mean_arrival_s`` is over the rows kept, on the clock of ``started_s``; None where arrivals are not known.
    """

    started_s: float
    duration_s: float
    rows: int
    kept: int
    mean_arrival_s: float | None = None


@dataclass(frozen=True, slots=True)
class ShedDecision:
    """The shed ratio from now on, and the signals behind it."""

    shed_ratio: float
    delay_s: float | None = None
    load_per_s: float | None = None
    capacity_per_s: float | None = None
    warning: str | None = None


class MicroBatchController:
    """Keeps one timeliness promise beside a micro-batch engine: a committed batch in, a shed ratio out.

    Costs some 20 µs a batch. It learns from a batch what to do in the next or the next but one, so the first
    batch of a burst is processed whole. A target that the fixed cost of a batch or the trigger interval alone exceeds
    cannot be kept; it says so once, and then sheds only what it takes to keep up.
    """

    def __init__(self, promise: Timeliness, law: SheddingLaw) -> None:
        self.promise = promise
        self.law = law
        self.cost = BatchCostMonitor()
        self.shed_ratio = 0.0
        self._before: MicroBatch | None = None
        self._trigger_s: float | None = None
        self._lead_s = 0.0
        self._target_s: float | None = None
        self._ratio_before = 0.0
        self._warned = False

    def step(self, batch: MicroBatch) -> ShedDecision:
        """Learn from a batch, decide for a later one."""
        if batch.rows == 0:
            # rows go on arriving while an empty batch runs (a heartbeat's, say): it is no batch of its own
            return ShedDecision(self.silence(batch.started_s))
        before, self._before = self._before, batch
        if before is None:
            # nothing is learned from the first batch: it pays for class loading and compilation
            return ShedDecision(self.shed_ratio)
        self.cost.observe(batch.kept, batch.duration_s)
        width_s = self._width_s(before, batch)
        delay_s = self._delay_s(batch, width_s)
        if self.cost.cost_s is None:
            return ShedDecision(self.shed_ratio, delay_s)
        load_per_s = batch.rows / width_s
        next_width_s = max(self._trigger_s or 0.0, batch.duration_s)
        headroom = max(1.0 - self.cost.fixed_s / next_width_s, _LEAST_HEADROOM)
        capacity_per_s = headroom / self.cost.cost_s
        target_s, warning = self._duration_target_s()
        self._target_s, self._ratio_before = target_s, self.shed_ratio
        status = Status(
            period_s=next_width_s,
            target_s=target_s,
            arrived_per_s=load_per_s,
            finished_per_s=batch.kept / width_s,
            backlog=batch.duration_s * capacity_per_s,
            cost_s=self.cost.cost_s,
            headroom=headroom,
        )
        self.shed_ratio = min(shed_ratio(self.law.admit_per_s(status), load_per_s), MOST_SHED)
        if isinstance(self.law, CtrlBatch):
            self._spare(batch, target_s, load_per_s, load_per_s * next_width_s)
        return ShedDecision(self.shed_ratio, delay_s, load_per_s, capacity_per_s, warning)

    def _spare(self, batch: MicroBatch, target_s: float, load_per_s: float, expected_rows: float) -> None:
        """Shed nothing while the batch was short enough, and the next one will be or may well be."""
        assert self.cost.cost_s is not None
        sustained_per_s = max(1.0 - self.cost.fixed_s / target_s, 0.0) / self.cost.cost_s
        # while nothing is shed, a cost that may well be lower gets the benefit of the doubt
        doubtful = self._ratio_before == 0.0 and expected_rows <= self.cost.rows_surely_longer_than(target_s)
        bearable = load_per_s <= sustained_per_s or doubtful
        if batch.duration_s <= target_s and bearable:
            # short batches spend most of their time on themselves; longer ones, within the target, bear the load
            self.shed_ratio = 0.0

    def overdue_s(self, now_s: float) -> float:
        """For how long the batch that is running has run longer than it may, if one began when the last one ended."""
        if self._before is None or self._target_s is None or not isinstance(self.law, CtrlBatch):
            return 0.0
        started_s = self._before.started_s + max(self._trigger_s or 0.0, self._before.duration_s)
        return max(now_s - started_s - _OVERDUE * self._target_s, 0.0)

    def overdue(self, now_s: float) -> bool:
        """Learn from a batch that ought to be over and is not: whether the next one must be shed more than decided.

        What is decided after a commit may miss the next batch, which is then as whole as this one and longer by far.
        """
        late_s = self.overdue_s(now_s)
        if late_s == 0.0:
            return False
        assert self._before is not None and self._target_s is not None and self.cost.cost_s is not None
        elapsed_s, fixed_s = late_s + _OVERDUE * self._target_s, self.cost.fixed_s
        # it has at least as many rows as it has had time for, and either of the last two decisions may be in force
        kept = (elapsed_s - fixed_s) / self.cost.cost_s
        load_per_s = kept / (1.0 - min(self.shed_ratio, self._ratio_before))
        load_per_s /= max(self._trigger_s or 0.0, self._before.duration_s)
        may_keep = max(self._target_s - fixed_s, 0.0) / self.cost.cost_s
        ratio = min(shed_ratio(may_keep / elapsed_s, load_per_s), MOST_SHED)
        if ratio <= self.shed_ratio:
            return False
        self.shed_ratio = ratio
        return True

    def silence(self, now_s: float) -> float:
        """No row has come: the shed ratio stays for as long as a delay may be, then nothing is shed any more."""
        last = self._before
        if last is None or now_s - last.started_s > last.duration_s + self.promise.max_delay_s:
            self.shed_ratio = 0.0
        return self.shed_ratio

    def _width_s(self, before: MicroBatch, batch: MicroBatch) -> float:
        """How long the batch's rows had time to arrive; a gap in which nothing came is not part of it."""
        gap_s = max(batch.started_s - before.started_s, 1e-3)
        if before.duration_s < 0.9 * gap_s:
            self._trigger_s = gap_s if self._trigger_s is None else min(self._trigger_s, gap_s)
        if self._trigger_s is None:
            return gap_s
        return min(gap_s, max(self._trigger_s, before.duration_s))

    def _delay_s(self, batch: MicroBatch, width_s: float) -> float | None:
        """The mean delay of the rows kept, measured if their arrival is known."""
        modelled_s = width_s / 2 + batch.duration_s
        if batch.mean_arrival_s is None:
            return modelled_s if batch.kept else None
        measured_s = batch.started_s + batch.duration_s - batch.mean_arrival_s
        # what rows wait before the source offers them comes on top of the model
        self._lead_s += 0.3 * (measured_s - modelled_s - self._lead_s)
        return measured_s

    def _duration_target_s(self) -> tuple[float, str | None]:
        """The duration that makes the mean delay W/2 + D + lead equal to the target, and a complaint if none does."""
        room_s = AIM * self.promise.max_delay_s - self._lead_s
        trigger_s = self._trigger_s or 0.0
        target_s = room_s / 1.5 if room_s >= 1.5 * trigger_s else room_s - trigger_s / 2
        least_s = 1.1 * self.cost.fixed_s
        if target_s > least_s:
            return target_s, None
        warning = None
        if not self._warned:
            self._warned = True
            warning = (
                f"[unattainable-delay] a micro-batch takes {self.cost.fixed_s:.3g} s before its first row, rows wait "
                f"{trigger_s / 2 + self._lead_s:.3g} s for it, and the target is {self.promise.max_delay_s:.3g} s; "
                "the delay is kept as low as it can be"
            )
        # do the best: keep up with the input, and shed no more than that takes
        return max(least_s, trigger_s, 1e-3), warning

    def snapshot(self) -> dict[str, Any]:
        """Law, monitor and what is known of the trigger, as JSON."""
        return {
            "law": self.law.name,
            "state": self.law.snapshot(),
            "cost": self.cost.snapshot(),
            "shed_ratio": self.shed_ratio,
            "trigger_s": self._trigger_s,
            "lead_s": self._lead_s,
        }

    def resume(self, snapshot: dict[str, Any]) -> None:
        """Go on from a snapshot; the time since then counts for nothing."""
        if snapshot["law"] == self.law.name:
            self.law.resume(snapshot["state"])
        self.cost.resume(snapshot["cost"])
        self.shed_ratio = snapshot["shed_ratio"]
        self._trigger_s = snapshot["trigger_s"]
        self._lead_s = snapshot["lead_s"]
