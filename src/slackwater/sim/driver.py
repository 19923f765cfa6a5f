"""Any method of disorder control over any trace: batch by batch, in arrival order, counted exactly."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from slackwater.control.disorder.cause import Cause
from slackwater.control.disorder.controller import DisorderController
from slackwater.control.disorder.protocol import UNKNOWN, Batch
from slackwater.sim.trace import Trace

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

DEFAULT_BATCHES = 50_000
LARGE_ROWS, LARGE_BATCHES = 1_000_000, 12_500


@dataclass(frozen=True, slots=True, eq=False)
class Batches:
    """How a trace falls into micro-batches: batch k holds the rows ``[ends[k-1], ends[k])`` and ends at ``clocks[k]``.

    ``clocks`` is None for a trace without arrivals. A batch may be empty: then only time passes.
    """

    ends: Ints
    clocks: Floats | None

    @classmethod
    def every(cls, trace: Trace, rows: int | None = None) -> Batches:
        """Batches of so many rows each; by default of a single row on a short trace.

        The default makes at most 50 000 batches, or 12 500 of a trace of more than a million rows.
        """
        if rows is None:
            rows = max(1, math.ceil(trace.rows / (DEFAULT_BATCHES if trace.rows <= LARGE_ROWS else LARGE_BATCHES)))
        ends = np.minimum(np.arange(rows, trace.rows + rows, rows, dtype=np.int64), trace.rows)
        return cls.at(trace, ends)

    @classmethod
    def at(cls, trace: Trace, ends: Sequence[int] | Ints, clocks: Sequence[float] | Floats | None = None) -> Batches:
        """Batches that end before the rows ``ends``: the micro-batches that a Spark run had.

        Without ``clocks`` the clock of a batch is its last arrival.
        """
        cut = np.asarray(ends, dtype=np.int64)
        if len(cut) and (np.any(np.diff(cut) < 0) or cut[0] < 0 or cut[-1] != trace.rows):
            raise ValueError(f"the cuts must rise to the {trace.rows} rows of trace {trace.name!r}")
        if trace.arrivals is None or not trace.rows:
            return cls(cut, None)
        if clocks is None:
            return cls(cut, trace.arrivals[np.maximum(cut, 1) - 1])
        return cls(cut, np.maximum.accumulate(np.asarray(clocks, dtype=np.float64)))

    @classmethod
    def each(cls, trace: Trace, period_ms: float) -> Batches:
        """A batch every ``period_ms`` of arrival time, as a trigger interval makes them.

        Of a run of empty periods only the last is kept: a heartbeat never retreats, so the last one tells.
        """
        if trace.arrivals is None:
            raise ValueError(f"trace {trace.name!r} has no arrivals to cut a period from")
        period = np.floor((trace.arrivals - trace.arrivals[:1]) / period_ms).astype(np.int64)
        filled, first = np.unique(period, return_index=True)
        ends = np.append(first[1:], trace.rows)
        gaps = np.flatnonzero(np.diff(filled) > 1)
        clocks = trace.arrivals[0] + (np.insert(filled, gaps + 1, filled[gaps + 1] - 1) + 1) * period_ms
        return cls(np.insert(ends, gaps + 1, ends[gaps]).astype(np.int64), clocks)


@dataclass(frozen=True, slots=True, eq=False)
class Outcome:
    """What a method did to a trace. Waits are in milliseconds, or in the attribute's own unit without a clock.

    The log has an entry a batch: the heartbeat in force *during* it, and why the heartbeat decided *after* it
    was what it was.
    """

    rows: int
    late: int
    mean_wait: float
    p99_wait: float
    mean_buffer_rows: float
    ends: Ints
    heartbeats: Floats
    causes: list[Cause]

    @property
    def drop_ratio(self) -> float:
        """Late rows among all rows."""
        return self.late / self.rows if self.rows else 0.0


def run(
    trace: Trace,
    controller: DisorderController,
    batches: Batches | None = None,
    *,
    lag: int = 1,
    hide_arrivals: bool = False,
) -> Outcome:
    """Run the controller over the trace and count: a row is late if it is below the heartbeat in force.

    The heartbeat decided after batch k is in force from batch k + ``lag``; Spark has a lag of 1 or 2. With
    ``hide_arrivals`` the method learns no more than a batch's clock, as on Spark. Costs a call of the method
    per batch, and a few array passes at the end.
    """
    batches = Batches.every(trace) if batches is None else batches
    heartbeats = np.full(len(batches.ends), UNKNOWN)
    causes: list[Cause] = []
    pending = deque([controller.heartbeat] * lag, maxlen=lag)
    values, sources = trace.values, trace.sources
    arrivals = None if hide_arrivals else trace.arrivals
    ends = batches.ends.tolist()
    clocks = [None] * len(ends) if batches.clocks is None else batches.clocks.tolist()
    start = 0
    for k, (end, clock) in enumerate(zip(ends, clocks, strict=True)):
        heartbeat = pending[0]
        heartbeats[k] = heartbeat
        if end > start:
            rows = values[start:end]
            batch = Batch(
                rows,
                None if arrivals is None else arrivals[start:end],
                None,
                None if sources is None else sources[start:end],
                None if trace.punctuations is None else _present(trace.punctuations[start:end]),
                clock,
                int(np.count_nonzero(rows < heartbeat)),
            )
            controller.observe(batch)
        decision = controller.decide(clock)
        pending.append(decision.heartbeat)
        causes.append(decision.cause)
        start = end
    return count(trace, batches.ends, heartbeats, causes)


def _present(punctuations: Floats) -> Floats | None:
    present = punctuations[~np.isnan(punctuations)]
    return present if len(present) else None


def count(trace: Trace, ends: Ints, heartbeats: Floats, causes: list[Cause]) -> Outcome:
    """The exact outcome of a run, from the heartbeat that was in force during each batch."""
    if not trace.rows:
        return Outcome(0, 0, 0.0, 0.0, 0.0, ends, heartbeats, causes)
    starts = np.concatenate(([0], ends[:-1]))
    in_force = np.repeat(heartbeats, ends - starts)
    on_time = trace.values >= in_force
    waits = waits_under(trace, in_force)
    # The heartbeat never retreats, so an accepted row leaves the buffer at the first batch whose heartbeat is
    # above it: it has then been counted at every arrival in between.
    accepted = np.flatnonzero(on_time)
    leaves = np.append(starts, trace.rows)[np.searchsorted(heartbeats, trace.values[accepted], side="right")]
    held = float(np.sum(np.maximum(leaves - accepted, 0), dtype=np.float64))
    return Outcome(
        trace.rows,
        int(trace.rows - len(accepted)),
        float(waits.mean()),
        float(np.quantile(waits, 0.99)),
        held / trace.rows,
        ends,
        heartbeats,
        causes,
    )


def waits_under(trace: Trace, heartbeats: Floats) -> Floats:
    """Each row's wait: arrival clock − heartbeat in force, or running front − heartbeat without a clock.

    Before the first heartbeat the wait is taken back to the lowest value seen so far: a heartbeat there would have
    made no difference, and an infinite wait would make every mean meaningless.
    """
    reference = np.maximum.accumulate(trace.values) if trace.arrivals is None else trace.arrivals
    waits = reference - heartbeats
    # a heartbeat never retreats, so it is missing only at the start
    unknown = int(np.searchsorted(heartbeats, UNKNOWN, side="right"))
    lowest = np.minimum(np.minimum.accumulate(trace.values[:unknown]), reference[:unknown])
    waits[:unknown] = reference[:unknown] - lowest
    return waits


def clairvoyant_wait(trace: Trace, drop_ratio: float) -> float:
    """The smallest constant wait ≥ 0 that would have kept the ratio on this trace, known only afterwards.

    In the arrival frame; behind the running front where there is no arrival. Costs a partition of the latenesses.
    """
    if not trace.rows:
        return 0.0
    reference = np.maximum.accumulate(trace.values) if trace.arrivals is None else trace.arrivals
    lateness = reference - trace.values
    may_drop = min(math.floor(drop_ratio * trace.rows), trace.rows - 1)
    kth = trace.rows - 1 - may_drop
    return max(0.0, float(np.partition(lateness, kth)[kth]))
