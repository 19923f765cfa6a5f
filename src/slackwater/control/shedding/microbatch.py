"""The control loop of Tu 2006 for a micro-batch engine, whose dynamics differ from those of a queue.

A micro-batch reads all rows that have arrived, keeps a share of them, and takes D = d0 + c·(rows kept), where d0 is the
fixed cost of a batch. The rows arrive during W, the time between two batch starts: the trigger interval, or the last D
if that was longer. So the mean delay of a row is W/2 + D. Without shedding, D(k+1) = d0 + c·λ·W(k): for a load λ below
1/c the durations settle, above it they grow geometrically. (The queue of Tu 2006, Eq. (4) grows linearly.)

The laws control D, with T = W. Back to back, W = D and the delay is 1.5·D; the target for D is derived from that.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from slackwater.control.shedding.batch_cost import BatchCostMonitor
from slackwater.control.shedding.controller import shed_ratio
from slackwater.control.shedding.laws.ctrl_batch import CtrlBatch
from slackwater.control.shedding.protocol import SheddingLaw, Status
from slackwater.control.shedding.source_backlog import SourceBacklog
from slackwater.promises import Timeliness

MOST_SHED = 0.99
"""At least 1 % of the rows are kept, because sums cannot be corrected from no rows."""

AIM = 0.92
"""The loop aims at this share of the promised delay, so that noise does not take the mean above the promise."""

_LEAST_HEADROOM = 0.05
_SHORTEST = 1.1
"""A batch cannot be made shorter than this many times its fixed cost."""
_OVERDUE = 1.15
"""A running batch is overdue if it has taken this many times its target duration."""


@dataclass(frozen=True, slots=True)
class MicroBatch:
    """A committed micro-batch: the time of its trigger, its duration until the commit, the rows read and kept.

    ``mean_arrival_s`` is the mean arrival of the kept rows, on the same clock as ``started_s``; None if unknown.
    ``waiting_rows`` is the lag that the source reports: rows that had arrived and were not handed over. For a source
    with a limit that reports none, ``newest_arrival_s`` is the newest arrival of the rows read.
    """

    started_s: float
    duration_s: float
    rows: int
    kept: int
    mean_arrival_s: float | None = None
    waiting_rows: float | None = None
    newest_arrival_s: float | None = None


@dataclass(frozen=True, slots=True)
class ShedDecision:
    """The shed ratio for the next batches, and the signals that led to it.

    ``backlog_rows`` have arrived and are not in a committed batch. If ``limit_decides``, the limit of the source
    decides the delay and nothing is shed.
    """

    shed_ratio: float
    delay_s: float | None = None
    load_per_s: float | None = None
    capacity_per_s: float | None = None
    backlog_rows: float | None = None
    limit_decides: bool = False
    warning: str | None = None


class MicroBatchController:
    """Keeps one timeliness promise for a micro-batch engine: takes a committed batch and returns a shed ratio.

    A decision applies to the next batch or the one after it, so the first batch of a burst is processed whole. If the
    fixed cost of a batch or the trigger interval alone exceeds the target, the promise cannot be kept; the controller
    then warns once and sheds only enough to keep up with the input. Costs about 20 µs per batch.

    Behind a source that holds rows back, shorter batches read faster: the controller sheds so that the source's backlog
    is worked off within the target. If even the shortest batches read slower than rows arrive, it sheds nothing.
    """

    def __init__(self, promise: Timeliness, law: SheddingLaw) -> None:
        self.promise = promise
        self.law = law
        self.cost = BatchCostMonitor()
        self.source = SourceBacklog()
        self.shed_ratio = 0.0
        self._before: MicroBatch | None = None
        self._trigger_s: float | None = None
        self._lead_s = 0.0
        self._target_s: float | None = None
        self._ratio_before = 0.0
        self._warned = False

    def retarget(self, promise: Timeliness) -> None:
        """Change the target from the next decision on."""
        if promise != self.promise:
            self.promise = promise
            self._warned = False

    def step(self, batch: MicroBatch) -> ShedDecision:
        """Learn from a committed batch and decide for later ones."""
        if batch.rows == 0:
            # an empty batch, such as one that only carries a heartbeat, does not interrupt the arrival of rows
            return ShedDecision(self.silence(batch.started_s))
        before, self._before = self._before, batch
        if before is None:
            # the first batch includes class loading and compilation, so its cost is not representative
            return ShedDecision(self.shed_ratio)
        self.cost.observe(batch.kept, batch.duration_s)
        self.source.observe(before, batch)
        width_s = self._width_s(before, batch)
        delay_s = self._delay_s(batch, width_s)
        if self.cost.cost_s is None:
            return ShedDecision(self.shed_ratio, delay_s)
        next_width_s = max(self._trigger_s or 0.0, batch.duration_s)
        # a source that holds rows back hands over the same number again, however long the batch takes
        offered_per_s = self.source.rows_per_batch / next_width_s if self.source.holds_back else batch.rows / width_s
        load_per_s = self.source.arriving_per_s if self.source.holds_back else offered_per_s
        headroom = max(1.0 - self.cost.fixed_s / next_width_s, _LEAST_HEADROOM)
        capacity_per_s = headroom / self.cost.cost_s
        target_s, warning = self._duration_target_s()
        self._ratio_before = self.shed_ratio
        if self.source.holds_back:
            target_s = self._target_behind_limit_s(target_s)
        if self.source.decides:
            self._target_s, self.shed_ratio = None, 0.0
        else:
            self._target_s = target_s
            status = Status(
                period_s=next_width_s,
                target_s=target_s,
                arrived_per_s=offered_per_s,
                finished_per_s=batch.kept / width_s,
                backlog=batch.duration_s * capacity_per_s,
                cost_s=self.cost.cost_s,
                headroom=headroom,
            )
            self.shed_ratio = min(shed_ratio(self.law.admit_per_s(status), offered_per_s), MOST_SHED)
            if isinstance(self.law, CtrlBatch):
                self._stop_if_unneeded(batch, target_s, offered_per_s, offered_per_s * next_width_s)
        return ShedDecision(
            self.shed_ratio,
            delay_s,
            load_per_s,
            capacity_per_s,
            # what arrived while the batch ran has not been processed either
            (self.source.waiting_rows or 0.0) + load_per_s * batch.duration_s,
            self.source.decides,
            warning,
        )

    def _target_behind_limit_s(self, target_s: float) -> float:
        """The duration of a batch, shortened as far as working off the source's backlog takes."""
        assert self.cost.cost_s is not None
        shortest_s = _SHORTEST * self.cost.fixed_s + (1.0 - MOST_SHED) * self.cost.cost_s * self.source.rows_per_batch
        least_s = max(self._trigger_s or 0.0, shortest_s, 1e-3)
        self.source.judge(least_s)
        return min(target_s, max(self.source.longest_s(self.promise.max_delay_s), least_s))

    def _stop_if_unneeded(self, batch: MicroBatch, target_s: float, load_per_s: float, expected_rows: float) -> None:
        """Set the shed ratio to 0 if the last batch met its target and the next one probably will without shedding."""
        assert self.cost.cost_s is not None
        sustained_per_s = max(1.0 - self.cost.fixed_s / target_s, 0.0) / self.cost.cost_s
        # shedding does not begin while the cost is so uncertain that the next batch may well meet its target
        uncertain = self._ratio_before == 0.0 and expected_rows <= self.cost.rows_surely_longer_than(target_s)
        # batches as long as the target spend a smaller share of their time on fixed cost, and sustain a higher load
        sustainable = load_per_s <= sustained_per_s or uncertain
        if batch.duration_s <= target_s and sustainable:
            self.shed_ratio = 0.0

    def overdue_s(self, now_s: float) -> float:
        """By how much the running batch has exceeded its time, if it began when the last one ended; 0 if it has not."""
        if self._before is None or self._target_s is None or not isinstance(self.law, CtrlBatch):
            return 0.0
        started_s = self._before.started_s + max(self._trigger_s or 0.0, self._before.duration_s)
        return max(now_s - started_s - _OVERDUE * self._target_s, 0.0)

    def overdue(self, now_s: float) -> bool:
        """Raise the shed ratio because the running batch takes too long. Returns whether the ratio was raised.

        The decision after the commit may come too late for the next batch. That batch would then be processed whole and
        take far longer still.
        """
        late_s = self.overdue_s(now_s)
        if late_s == 0.0:
            return False
        assert self._before is not None and self._target_s is not None and self.cost.cost_s is not None
        elapsed_s, fixed_s = late_s + _OVERDUE * self._target_s, self.cost.fixed_s
        # the batch has at least the rows that fit its time so far; either of the last two decisions may apply to it
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
        """The shed ratio while no row arrives: unchanged for one promised delay after the last batch, then 0."""
        last = self._before
        if last is None or now_s - last.started_s > last.duration_s + self.promise.max_delay_s:
            self.shed_ratio = 0.0
        return self.shed_ratio

    def _width_s(self, before: MicroBatch, batch: MicroBatch) -> float:
        """The time in which the rows of the batch arrived, without a gap in which no batch had rows."""
        gap_s = max(batch.started_s - before.started_s, 1e-3)
        if before.duration_s < 0.9 * gap_s:
            self._trigger_s = gap_s if self._trigger_s is None else min(self._trigger_s, gap_s)
        if self._trigger_s is None:
            return gap_s
        return min(gap_s, max(self._trigger_s, before.duration_s))

    def _delay_s(self, batch: MicroBatch, width_s: float) -> float | None:
        """The mean delay of the kept rows: measured if their arrivals are known, otherwise modelled."""
        modelled_s = width_s / 2 + batch.duration_s
        if batch.mean_arrival_s is None:
            return modelled_s + self.source.behind_s if batch.kept else None
        measured_s = batch.started_s + batch.duration_s - batch.mean_arrival_s
        if self.source.holds_back:
            return measured_s
        # the model does not include the time before the source offers the rows
        self._lead_s += 0.3 * (measured_s - modelled_s - self._lead_s)
        return measured_s

    def _duration_target_s(self) -> tuple[float, str | None]:
        """The duration D for which the mean delay W/2 + D + lead meets the target, and a warning if there is none."""
        room_s = AIM * self.promise.max_delay_s - self._lead_s
        trigger_s = self._trigger_s or 0.0
        target_s = room_s / 1.5 if room_s >= 1.5 * trigger_s else room_s - trigger_s / 2
        least_s = _SHORTEST * self.cost.fixed_s
        if target_s > least_s:
            return target_s, None
        warning = None
        if not self._warned:
            self._warned = True
            warning = (
                f"[unattainable-delay] a micro-batch has a fixed cost of {self.cost.fixed_s:.3g} s and rows wait "
                f"{trigger_s / 2 + self._lead_s:.3g} s for it, but the target is {self.promise.max_delay_s:.3g} s; "
                "raise the target: until then the delay is kept as low as possible"
            )
        # keep up with the input and shed no more than that takes
        return max(least_s, trigger_s, 1e-3), warning

    def snapshot(self) -> dict[str, Any]:
        """The state of the law and the cost monitor, and the learned trigger interval, as JSON."""
        return {
            "law": self.law.name,
            "state": self.law.snapshot(),
            "cost": self.cost.snapshot(),
            "shed_ratio": self.shed_ratio,
            "trigger_s": self._trigger_s,
            "lead_s": self._lead_s,
            "source": self.source.snapshot(),
        }

    def resume(self, snapshot: dict[str, Any]) -> None:
        """Restore a snapshot. The time since the snapshot was taken is ignored."""
        if snapshot["law"] == self.law.name:
            self.law.resume(snapshot["state"])
        self.cost.resume(snapshot["cost"])
        self.shed_ratio = snapshot["shed_ratio"]
        self._trigger_s = snapshot["trigger_s"]
        self._lead_s = snapshot["lead_s"]
        if "source" in snapshot:  # snapshots of earlier versions have none
            self.source.resume(snapshot["source"])
