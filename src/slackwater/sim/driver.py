"""Runs a method of disorder control over a trace, batch by batch, and counts the outcome exactly."""

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
"""By default a trace is divided into at most this many batches."""


@dataclass(frozen=True, slots=True, eq=False)
class Batches:
    """The division of a trace into micro-batches: batch k has the rows ``[ends[k-1], ends[k])``.

    ``clocks[k]`` is the arrival clock at the end of batch k; ``clocks`` is None for a trace without arrivals. In an
    empty batch only the clock advances.
    """

    ends: Ints
    clocks: Floats | None

    @classmethod
    def every(cls, trace: Trace, rows: int | None = None) -> Batches:
        """Batches of ``rows`` rows. The default is the smallest size that makes at most 50 000 batches."""
        if rows is None:
            rows = max(1, math.ceil(trace.rows / DEFAULT_BATCHES))
        ends = np.minimum(np.arange(rows, trace.rows + rows, rows, dtype=np.int64), trace.rows)
        return cls.at(trace, ends)

    @classmethod
    def at(cls, trace: Trace, ends: Sequence[int] | Ints, clocks: Sequence[float] | Floats | None = None) -> Batches:
        """Batches with the given ends, such as the micro-batches of a Spark run.

        Without ``clocks`` the clock of a batch is its last arrival. Raises ``ValueError`` if the ends do not rise to
        the number of rows.
        """
        ends = np.asarray(ends, dtype=np.int64)
        if len(ends) and (np.any(np.diff(ends) < 0) or ends[0] < 0 or ends[-1] != trace.rows):
            raise ValueError(f"the ends of the batches must rise to the {trace.rows} rows of trace {trace.name!r}")
        if trace.arrivals is None or not trace.rows:
            return cls(ends, None)
        if clocks is None:
            return cls(ends, trace.arrivals[np.maximum(ends, 1) - 1])
        return cls(ends, np.maximum.accumulate(np.asarray(clocks, dtype=np.float64)))

    @classmethod
    def each(cls, trace: Trace, period_ms: float) -> Batches:
        """One batch per ``period_ms`` of arrival time, as with a trigger interval.

        A run of empty periods becomes one empty batch at its end. That changes no count, because a heartbeat never
        retreats.
        """
        if trace.arrivals is None:
            raise ValueError(f"trace {trace.name!r} has no arrivals, so it cannot be divided by time")
        period = np.floor((trace.arrivals - trace.arrivals[:1]) / period_ms).astype(np.int64)
        filled, first = np.unique(period, return_index=True)
        ends = np.append(first[1:], trace.rows)
        gaps = np.flatnonzero(np.diff(filled) > 1)
        clocks = trace.arrivals[0] + (np.insert(filled, gaps + 1, filled[gaps + 1] - 1) + 1) * period_ms
        return cls(np.insert(ends, gaps + 1, ends[gaps]).astype(np.int64), clocks)


@dataclass(frozen=True, slots=True, eq=False)
class Outcome:
    """The result of a run. Waits are in milliseconds, or in the unit of the attribute if there is no clock.

    ``ends``, ``heartbeats`` and ``causes`` have one entry per batch. ``heartbeats`` are those in force *during* the
    batch, ``causes`` those of the decision *after* it. ``run_per_row`` leaves ``causes`` empty.
    """

    rows: int
    late: int
    mean_wait: float
    median_wait: float
    p90_wait: float
    p99_wait: float
    mean_buffer_rows: float
    ends: Ints
    heartbeats: Floats
    causes: list[Cause]

    @property
    def drop_ratio(self) -> float:
        """The share of late rows."""
        return self.late / self.rows if self.rows else 0.0


def run(
    trace: Trace,
    controller: DisorderController,
    batches: Batches | None = None,
    *,
    lag: int = 1,
    hide_arrivals: bool = False,
    clock_before: float | None = None,
) -> Outcome:
    """Run the controller over the trace. A row is late if it is below the heartbeat in force.

    The heartbeat decided after batch k is in force from batch k + ``lag``. With ``hide_arrivals`` the method sees only
    the clock of each batch, as on Spark. ``clock_before`` is the arrival clock before the first batch, if it is known.
    Costs a call of the method per batch and a few array passes at the end.
    """
    batches = Batches.every(trace) if batches is None else batches
    heartbeats = np.full(len(batches.ends), UNKNOWN)
    causes: list[Cause] = []
    pending = deque([(controller.heartbeat, clock_before)] * lag, maxlen=lag)
    values, sources = trace.values, trace.sources
    arrivals = None if hide_arrivals else trace.arrivals
    ends = batches.ends.tolist()
    clocks = [None] * len(ends) if batches.clocks is None else batches.clocks.tolist()
    start = 0
    for k, (end, clock) in enumerate(zip(ends, clocks, strict=True)):
        heartbeat, chosen_at = pending[0]
        heartbeats[k] = heartbeat
        if end > start:
            rows = values[start:end]
            batch = Batch(
                rows,
                arrivals=None if arrivals is None else arrivals[start:end],
                sources=None if sources is None else sources[start:end],
                punctuations=None if trace.punctuations is None else _without_nan(trace.punctuations[start:end]),
                clock=clock,
                reference=chosen_at,
                decided_at=chosen_at,
                began=None if trace.arrivals is None else float(trace.arrivals[start]),
                late=int(np.count_nonzero(rows < heartbeat)),
            )
            controller.observe(batch)
        decision = controller.decide(clock)
        pending.append((decision.heartbeat, clock))
        causes.append(decision.cause)
        start = end
    return count(trace, batches.ends, heartbeats, causes)


def _without_nan(punctuations: Floats) -> Floats | None:
    given = punctuations[~np.isnan(punctuations)]
    return given if len(given) else None


def count(trace: Trace, ends: Ints, heartbeats: Floats, causes: list[Cause]) -> Outcome:
    """Count the outcome of a run from the heartbeat that was in force during each batch."""
    if not trace.rows:
        return Outcome(0, 0, 0.0, 0.0, 0.0, 0.0, 0.0, ends, heartbeats, causes)
    starts = np.concatenate(([0], ends[:-1]))
    in_force = np.repeat(heartbeats, ends - starts)
    on_time = trace.values >= in_force
    waits = waits_under(trace, in_force)
    # The heartbeat never retreats, so a row leaves the buffer in the first batch whose heartbeat is above it. Until
    # then it is in the buffer at every arrival.
    accepted = np.flatnonzero(on_time)
    leaves = np.append(starts, trace.rows)[np.searchsorted(heartbeats, trace.values[accepted], side="right")]
    median, p90, p99 = (float(wait) for wait in np.quantile(waits, (0.5, 0.9, 0.99)))
    buffered = float(np.sum(np.maximum(leaves - accepted, 0), dtype=np.float64))
    return Outcome(
        trace.rows,
        int(trace.rows - len(accepted)),
        float(waits.mean()),
        median,
        p90,
        p99,
        buffered / trace.rows,
        ends,
        heartbeats,
        causes,
    )


def waits_under(trace: Trace, heartbeats: Floats) -> Floats:
    """The wait of each row: arrival clock − heartbeat in force, or front − heartbeat without a clock.

    Before the first heartbeat the lowest value so far takes its place. A heartbeat there would make no row late, and an
    infinite wait would make every mean meaningless.
    """
    reference = np.maximum.accumulate(trace.values) if trace.arrivals is None else trace.arrivals
    waits = reference - heartbeats
    # a heartbeat never retreats, so only the first rows can be without one
    unknown = int(np.searchsorted(heartbeats, UNKNOWN, side="right"))
    lowest = np.minimum(np.minimum.accumulate(trace.values[:unknown]), reference[:unknown])
    waits[:unknown] = reference[:unknown] - lowest
    return waits


def clairvoyant_wait(trace: Trace, drop_ratio: float) -> float:
    """The smallest constant wait that keeps the ratio on this trace. It can only be computed afterwards.

    The wait is behind the arrival clock, or behind the front if there are no arrivals. Costs a partition of the
    latenesses.
    """
    if not trace.rows:
        return 0.0
    reference = np.maximum.accumulate(trace.values) if trace.arrivals is None else trace.arrivals
    lateness = reference - trace.values
    may_drop = min(math.floor(drop_ratio * trace.rows), trace.rows - 1)
    kth = trace.rows - 1 - may_drop
    return max(0.0, float(np.partition(lateness, kth)[kth]))
