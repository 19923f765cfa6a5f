"""Runs a method under Spark's conditions: micro-batches, decisions when a batch is planned, reports that come later.

Batch k is planned, runs and is committed; then the driver learns from it. When batch k is planned, the newest policy
gives a heartbeat, and the room in which its rows may raise it. What they raise it to is the watermark of batch k + 1
and judges its rows, as Spark's own watermark would.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from slackwater.control.disorder.cause import Cause
from slackwater.control.disorder.controller import DisorderController
from slackwater.control.disorder.protocol import UNKNOWN, Batch
from slackwater.control.policy import LiveClock, Policy, Room
from slackwater.sim.driver import Outcome, count, waits_under
from slackwater.sim.trace import Trace
from slackwater.units import MINUTE_MS

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

REPORT_MS = 50.0
"""From the commit of a micro-batch until the heartbeat source knows the decision from it, as measured on Spark."""


@dataclass(frozen=True, slots=True)
class Trigger:
    """When micro-batches are planned and how long they take.

    ``interval_ms`` is the trigger interval; 0 means back to back. A micro-batch of n rows takes ``fixed_ms`` +
    n · ``row_ms``.
    """

    interval_ms: float
    fixed_ms: float = 300.0
    row_ms: float = 0.002

    def next_after(self, start_ms: float, at_ms: float) -> float:
        """When the next micro-batch is planned if Spark is ready at ``at_ms``."""
        if self.interval_ms <= 0:
            return at_ms
        return start_ms + float(np.ceil((at_ms - start_ms) / self.interval_ms - 1e-9)) * self.interval_ms


@dataclass(frozen=True, slots=True, eq=False)
class SparkBatches:
    """The micro-batches of a run: batch k has the rows ``[ends[k-1], ends[k])``, arrived until ``planned[k]``."""

    ends: Ints
    planned: Floats
    committed: Floats

    @classmethod
    def of(cls, trace: Trace, trigger: Trigger) -> SparkBatches:
        """The micro-batches into which the trigger divides a trace.

        A silence begins with one empty batch, in which only the heartbeat moves.
        """
        if trace.arrivals is None:
            raise ValueError(f"trace {trace.name!r} has no arrivals, so it has no micro-batches")
        arrivals, start = trace.arrivals, float(trace.arrivals[0])
        ends, planned, committed = [], [], []
        at, done = start + max(trigger.interval_ms, trigger.fixed_ms), 0
        while done < trace.rows:
            end = int(np.searchsorted(arrivals, at, "right"))
            ends.append(end)
            planned.append(at)
            committed.append(at + trigger.fixed_ms + trigger.row_ms * (end - done))
            done = end
            at = trigger.next_after(start, committed[-1])
            if done < trace.rows and arrivals[done] > at:  # silent: one empty batch now, then one at the next row
                if at > planned[-1] and ends[-1] > (ends[-2] if len(ends) > 1 else 0):
                    continue
                at = trigger.next_after(start, float(arrivals[done]))
        return cls(np.array(ends, dtype=np.int64), np.array(planned), np.array(committed))


def run_on_spark(
    trace: Trace,
    controller: DisorderController,
    batches: SparkBatches,
    *,
    report_ms: float = REPORT_MS,
    follows_rows: bool = True,
    settles: bool = False,
) -> Outcome:
    """Run the controller over the trace under Spark's conditions. Every row counts, including the first.

    ``follows_rows``: rows may raise the heartbeat, as in a query with one promise. A micro-batch then waits for the
    report of the one before it, so the policy from that one applies to its rows. ``settles``: rows come so slowly that
    an empty micro-batch puts each decision in force before the next ones.
    """
    assert trace.arrivals is not None
    heartbeats = np.full(len(batches.ends), UNKNOWN)
    causes: list[Cause] = []
    policies: deque[tuple[float, Policy | None]] = deque()
    policy: Policy | None = None
    newest: Policy | None = None
    live, in_force = LiveClock(), UNKNOWN
    reference: float | None = None
    decided_at: float | None = None
    before: float | None = None
    start = 0
    for k, end in enumerate(batches.ends.tolist()):
        wall = float(batches.planned[k])
        while policies and policies[0][0] <= wall:
            policy = policies.popleft()[1]
        heartbeats[k] = in_force
        rows, arrivals = trace.values[start:end], trace.arrivals[start:end]
        judged_by, judged_from = (reference if np.isfinite(in_force) else before), decided_at
        if follows_rows:
            judged_by = judged_from = before
        offered = in_force
        if policy is not None:
            offered, reference = max(in_force, policy.heartbeat_at(wall)), policy.clock_at(wall)
            decided_at = policy.clock
        if follows_rows and newest is not None and newest.room is not None and end > start:
            offered = max(offered, raised_by(newest.room, rows, arrivals))
        clock = float(trace.arrivals[max(end, 1) - 1])
        if end > start:
            live.observe(clock, wall, float(batches.committed[k]) - wall)
            controller.raise_to(in_force)
            batch = _reported(
                trace, start, end, clock, judged_by, measured=(newest if follows_rows else policy) is not None
            )
            late = int(np.count_nonzero(rows < in_force))
            controller.observe(
                replace(batch, late=late, decided_at=judged_from, began=float(arrivals[0]), follows_rows=follows_rows)
            )
            decision = controller.decide(clock)
            decided = decision.policy(wall, live.reach)
            before = clock
        else:
            decision = controller.decide(wall)
            decided = None if before is None else decision.policy(wall, 0.0)
        newest = decided
        policies.append((float(batches.committed[k]) + report_ms, decided))
        causes.append(decision.cause)
        in_force, start = max(offered, decision.heartbeat if settles else UNKNOWN), end
    return count(trace, batches.ends, heartbeats, causes)


def raised_by(room: Room, values: Floats, arrivals: Floats) -> float:
    """The heartbeat to which rows raise it."""
    allowed = np.minimum(np.minimum(values, arrivals) - room.behind, arrivals - room.wait)
    trusted = values <= arrivals + MINUTE_MS
    return min(float(allowed[trusted].max(initial=UNKNOWN)), room.ceiling)


def _reported(trace: Trace, start: int, end: int, clock: float, reference: float | None, *, measured: bool) -> Batch:
    """The rows of a micro-batch as Spark reports them.

    A batch that is planned before the first report has no reference. Each of its rows is measured from its own arrival.
    """
    assert trace.arrivals is not None
    values = trace.values[start:end]
    if not measured:
        values, reference = clock - (trace.arrivals[start:end] - values), clock
    sources = None if trace.sources is None else trace.sources[start:end]
    return Batch(values, sources=sources, clock=clock, reference=reference)


def best_constant(trace: Trace, batches: SparkBatches, drop_ratio: float) -> tuple[float, Floats]:
    """The best constant delay for Spark's ``withWatermark`` in these batches, known afterwards, and its watermarks.

    The watermark of a batch is the highest value of the batches before it, less the delay.
    """
    ends = batches.ends
    starts = np.concatenate(([0], ends[:-1]))
    highest = np.concatenate(([UNKNOWN], np.maximum.accumulate(trace.values)))[starts]
    behind = np.repeat(highest, ends - starts) - trace.values
    may_drop = min(int(np.floor(drop_ratio * trace.rows)), trace.rows - 1)
    delay = max(0.0, float(np.partition(behind, trace.rows - 1 - may_drop)[trace.rows - 1 - may_drop]))
    return delay, np.asarray(highest - delay)


def beside_spark(
    trace: Trace, batches: SparkBatches, outcome: Outcome, drop_ratio: float, window_ms: float
) -> tuple[float, float | None, float | None]:
    """The mean wait under the best constant delay, and the publication delays of the method and of that constant."""
    watermarks = best_constant(trace, batches, drop_ratio)[1]
    sizes = np.diff(np.concatenate(([0], batches.ends)))
    return (
        float(waits_under(trace, np.repeat(watermarks, sizes)).mean()),
        mean_publication_delay(batches, outcome.heartbeats, window_ms),
        mean_publication_delay(batches, watermarks, window_ms),
    )


def mean_publication_delay(batches: SparkBatches, heartbeats: Floats, window_ms: float) -> float | None:
    """The mean time from a window's end until the commit of the batch that closes it; None if none closes."""
    known = np.isfinite(heartbeats)
    if not known.any() or window_ms <= 0:
        return None
    first, last = float(heartbeats[known][0]), float(heartbeats[known][-1])
    window_ms = max(window_ms, (last - first) / 100_000)
    window_ends = np.arange(np.ceil(first / window_ms), np.floor(last / window_ms) + 1) * window_ms
    closes = np.searchsorted(heartbeats, window_ends, "left")
    closed = closes < len(heartbeats)
    if not closed.any():
        return None
    return float(np.mean(batches.committed[closes[closed]] - window_ends[closed]))
