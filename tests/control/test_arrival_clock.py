"""Backlogs whose partitions are read side by side: heartbeats come, windows close and the promise holds."""

from __future__ import annotations

import dataclasses
import json
import math
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from slackwater.control.arrival_clock import ArrivalClock
from slackwater.control.choice import Method
from slackwater.promises import Completeness
from slackwater.spark.completeness.batches import BatchObservation
from slackwater.spark.completeness.histogram import Cells
from slackwater.spark.completeness.tracker import CompletenessSpec, CompletenessTracker
from slackwater.spark.worker.heartbeat_offset import HeartbeatOffset
from slackwater.spark.worker.mailbox import Mailbox

Floats = NDArray[np.float64]
ORIGIN_MS, HOUR_MS, BATCHES = 1.7e12, 3.6e6, 25
READ_LATER_MS = ORIGIN_MS + 1e12
"""The backlog is read long after its rows arrived."""


def partition(rows: int, begin: float, end: float, late_ms: float = 1000.0, seed: int = 1) -> tuple[Floats, Floats]:
    """Arrivals and event times of a partition; begin and end are parts of the hour."""
    draw = np.random.default_rng(seed)
    arrivals = ORIGIN_MS + np.sort(draw.uniform(begin * HOUR_MS, end * HOUR_MS, rows))
    return arrivals, arrivals - draw.exponential(late_ms, rows)


@dataclass
class Backlog:
    """Partitions that are read side by side, each at a rate in proportion to its rows, as Kafka's source does.

    The first one delivers nothing in the micro-batches of ``silent``, and goes on where it was. Micro-batches take
    ``each_ms``.
    """

    partitions: list[tuple[Floats, Floats]]
    silent: range = range(0)
    each_ms: float = 1000.0
    tracker: CompletenessTracker = field(default_factory=lambda: new_tracker())
    heartbeats: list[float | None] = field(default_factory=lambda: [None, None])
    chosen_at: list[float | None] = field(default_factory=lambda: [None, None])

    def read(self, batches: range) -> None:
        """Read these of the micro-batches; a heartbeat decided after one is in force two later."""
        for number in batches:
            cuts = [[self._position(i, turn) for turn in (number, number + 1)] for i in range(len(self.partitions))]
            arrivals, values = (
                np.concatenate([part[which][low:high] for part, (low, high) in zip(self.partitions, cuts, strict=True)])
                for which in (0, 1)
            )
            in_force, policy = self.heartbeats[number], self.tracker.policy
            reference = None if number == 0 else in_force or float(arrivals.max())
            margins_us = (values - (arrivals if reference is None else reference)) * 1000
            late = 0 if in_force is None else int((values < in_force).sum())
            self.tracker.on_batch(
                BatchObservation(
                    number,
                    in_force,
                    reference,
                    float(arrivals.max()),
                    Cells(margins_us, np.ones(len(values), dtype=np.int64), None, late, 0),
                    READ_LATER_MS + number * self.each_ms,
                    5,
                    began_ms=float(arrivals.min()),
                    chosen_at_ms=self.chosen_at[number] if in_force is not None else None,
                )
            )
            policy = self.tracker.policy
            decided = -math.inf if policy is None else policy.heartbeat_at(READ_LATER_MS)
            known = [mark for mark in (self.heartbeats[-1], decided) if mark is not None and math.isfinite(mark)]
            self.heartbeats.append(max(known, default=None))
            self.chosen_at.append(None if policy is None else policy.clock)

    def _position(self, i: int, batch: int) -> int:
        """How many rows of a partition the micro-batches before this one have read."""
        passed = sum(number < batch for number in self.silent) if i == 0 else 0
        return len(self.partitions[i][0]) * min(batch - passed, BATCHES) // BATCHES


def new_tracker() -> CompletenessTracker:
    promise = Completeness(0.01, min_wait_ms=100.0)
    spec = CompletenessSpec("p", "ts", promise, Method("budgeted-quantile"), [], Mailbox(Path("nowhere")))
    return CompletenessTracker(spec, "q", "e")


SPARSE_AND_LATE = [partition(80_000, 0, 1), partition(500, 0, 1, seed=2), partition(19_500, 11 / 12, 1, 1e4, seed=3)]


@pytest.mark.parametrize(
    ("partitions", "ends_at"),
    [
        (SPARSE_AND_LATE, 1.0),
        ([partition(98_000, 11 / 12, 1), partition(2_000, 0, 1)], 1.0),
        ([partition(40_000, 0, 0.5), partition(40_000, 0.5, 1)], 0.5),
        ([partition(50_000, 0, 1), partition(50_000, 0, 1, seed=4)], 1.0),
    ],
    ids=["sparse and late", "few rows are old", "one after the other", "side by side"],
)
def test_windows_close_while_a_skewed_backlog_is_read(partitions: list[tuple[Floats, Floats]], ends_at: float) -> None:
    backlog = Backlog(partitions)
    backlog.read(range(BATCHES))
    first = next(number for number, mark in enumerate(backlog.heartbeats) if mark is not None)
    assert first <= 6
    ledger = backlog.tracker.ledger
    assert ledger.input == sum(len(arrivals) for arrivals, _ in partitions)
    assert ledger.late <= 0.01 * ledger.input
    last = backlog.heartbeats[-1]
    assert last is not None and last >= ORIGIN_MS + 0.85 * ends_at * HOUR_MS


@pytest.mark.parametrize(
    "others",
    [[partition(20_000, 11 / 12, 1, 1e4, seed=3)], [partition(10_000, 0.66, 1), partition(40_000, 11 / 12, 1, seed=4)]],
    ids=["one ahead", "two ahead"],
)
def test_a_slow_partition_that_is_interrupted_loses_nothing(others: list[tuple[Floats, Floats]]) -> None:
    backlog = Backlog([partition(50_000, 0, 1), *others], silent=range(8, 11))
    backlog.read(range(BATCHES + 3))
    ledger = backlog.tracker.ledger
    assert ledger.input == sum(len(arrivals) for arrivals, _ in backlog.partitions)
    assert ledger.late <= 0.01 * ledger.input
    last = backlog.heartbeats[-1]
    assert last is not None and last >= ORIGIN_MS + 0.85 * HOUR_MS


def test_a_restart_in_the_middle_of_a_skewed_backlog_does_not_leap_ahead() -> None:
    before = Backlog(SPARSE_AND_LATE)
    before.read(range(12))
    state = json.loads(json.dumps(before.tracker.snapshot()))
    after = dataclasses.replace(before, tracker=new_tracker())
    heartbeat = before.heartbeats[11]
    assert heartbeat is not None
    after.tracker.resume(state, HeartbeatOffset("e", math.floor(heartbeat)), 12)
    after.read(range(12, BATCHES))
    assert after.tracker.ledger.late <= 0.01 * after.tracker.ledger.input
    assert after.tracker.ledger.input == 100_000


def test_a_few_arrivals_that_are_too_old_hold_nothing_back() -> None:
    clock, counts = ArrivalClock(0.01), np.array([1, 999])
    for now in (1e6, 2e6, 3e6):
        assert clock.observe(now, 0.0, np.array([0.0, now - 10.0]), counts, now) == now
        assert not clock.is_held


def test_a_partition_that_has_ended_releases_the_clock_step_by_step() -> None:
    clock, counts, start = ArrivalClock(0.01, idle_after=2e6), np.array([100]), 1e6
    clock.observe(start, 0.0, np.array([1.0]), counts, 0.0)
    held = [clock.observe(start + 1e3, 1e5, np.array([1e5]), counts, 0.0)]
    later = start + 1e3 * np.arange(2, 20)
    held += [clock.observe(newest, newest - 500, np.array([newest - 600]), counts, newest) for newest in later]
    steps = np.diff(held)
    assert held[0] == 1.01e5 and held[-1] == start + 19e3
    assert (steps > 0).all() and (steps[1:6] <= 2 * steps[:5] + 1).all()
    assert clock.release() == clock.newest == start + 19e3


def test_a_partition_that_was_far_behind_is_waited_for() -> None:
    """For as long as a silent source is; a restart in between changes nothing."""
    clock, counts, start = ArrivalClock(0.01, idle_after=6e4), np.array([100]), 1e6
    clock.observe(start, 0.0, np.array([1.0]), counts, now=0.0)
    before = clock.observe(start + 1e3, 1e5, np.array([1e5]), counts, now=1e3)
    for now in (2e3, 3e4, 6.2e4):
        newest = start + now
        assert clock.observe(newest, newest - 500, np.array([newest - 600]), counts, now) == before
        state = json.loads(json.dumps(clock.snapshot()))
        clock = ArrivalClock(0.01, idle_after=6e4)
        clock.resume(state)
    newest = start + 7e4
    assert clock.observe(newest, newest - 500, np.array([newest - 600]), counts, now=6.3e4) > before
