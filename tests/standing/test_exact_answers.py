"""Every answer is the exact value at its time, whatever a micro-batch holds, and comes before its deadline."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from slackwater.kernel.standing.options import EvaluatorOptions
from slackwater.kernel.standing.shard import Shard
from slackwater.kernel.standing.shard_counts import ShardCounts
from slackwater.kernel.standing.weights import ShardWeights

Floats = NDArray[np.float64]
Row = tuple[str, float, float]

TICK_MS = 1000.0
WEIGHTS = {"one": {"s0": 1.0}, "hedge": {"s0": 1.0, "s1": -1.0}, "mix": {"s0": 0.5, "s1": 1.5, "s2": 2.0}}
STREAMS = ["s0", "s1", "s2"]


@lru_cache
def shard_weights(within: float) -> ShardWeights:
    rows = [(query, stream, weight) for query, row in WEIGHTS.items() for stream, weight in row.items()]
    return ShardWeights(pd.DataFrame(rows, columns=["query", "stream", "weight"]), within, 0.9)


@dataclass
class Replay:
    """Micro-batches through a shard that is restarted from its state after each of them.

    ``exact`` computes an answer from the rows alone. Of the rows read until the answer, those count that are newer than
    the newest row of their stream. Every stream has its last known value at every instant; a silent stream is moved by
    its drift.
    """

    options: EvaluatorOptions
    within: float
    state: bytes | None = None
    rows: dict[str, list[tuple[float, float]]] = field(default_factory=lambda: {name: [] for name in STREAMS})
    ends: list[float] = field(default_factory=list)
    drifts: dict[float, Floats] = field(default_factory=dict)
    answers: list[dict[str, Any]] = field(default_factory=list)
    counts: list[ShardCounts] = field(default_factory=list)
    ledger: list[int] = field(default_factory=lambda: [0, 0, 0])  # used, out of order, invalid

    def batch(self, rows: list[Row], clock_ms: float | None = None) -> None:
        """One micro-batch; checks each of its answers. A late answer is checked against the rows read before."""
        shard = Shard(shard_weights(self.within), self.options, 0, self.state)
        times, values = np.array([row[1:] for row in rows], dtype=np.float64).reshape(-1, 2).T
        found = shard.tick([row[0] for row in rows], times, values, clock_ms)
        self.state = shard.state()
        self.counts.append(shard.counts)
        now = shard.evaluator.now
        new: list[dict[str, Any]] = [
            dict(zip(map(str, found.columns), row, strict=True)) for row in found.itertuples(index=False)
        ]
        for answer in new:
            if answer["at"] < now:
                self.check(answer)
        for name, at, value in sorted(rows, key=lambda row: row[1]):
            if not np.isfinite(value):
                self.ledger[2] += 1
            elif self.rows[name] and at <= self.rows[name][-1][0]:
                self.ledger[1] += 1
            else:
                self.ledger[0] += 1
                self.rows[name].append((at, value))
        self.ends.append(now)
        silent, drift = shard.evaluator.silent, shard.evaluator.stream_estimates.trusted_drift()
        self.drifts[now] = np.where(silent, drift, 0.0)
        for answer in new:
            if answer["at"] == now:
                self.check(answer)
        self.answers += new

    def check(self, answer: dict[str, Any]) -> None:
        if not np.isnan(answer["value"]):
            assert answer["value"] == pytest.approx(self.exact(answer["query"], answer["at"]), rel=1e-11, abs=1e-11)

    def aggregate(self, query: str, instants: Floats, guess: Floats) -> Floats:
        total = np.zeros(len(instants))
        for name, weight in WEIGHTS[query].items():
            times, values = np.array(self.rows[name] or [(np.inf, np.nan)]).T
            newest = np.searchsorted(times, instants, side="right") - 1
            elapsed = np.maximum(instants - times[-1], 0.0) * guess[STREAMS.index(name)]
            total += weight * (np.where(newest >= 0, values[newest], np.nan) + elapsed)
        return total

    def exact(self, query: str, at: float) -> float:
        instants = np.unique([*self.ends, *(time for rows in self.rows.values() for time, _ in rows)])
        instants, guess = instants[instants <= at], self.drifts[at]
        best = np.nanmax if self.options.aggregate == "max" else np.nanmin
        if self.options.aggregate == "linear":
            return float(self.aggregate(query, np.array([at]), guess)[0])
        if self.options.window is not None:
            return float(best(self.aggregate(query, instants[instants >= at - self.options.window], guess)))
        known = self.aggregate(query, instants[instants >= self.options.landmark], np.zeros(3))
        return float(best([*known, self.aggregate(query, np.array([at]), guess)[0]]))

    def in_time(self, answer: dict[str, Any], following: dict[str, Any]) -> bool:
        """Whether the following answer met the deadline, or no micro-batch ended in time for it."""
        deadline = answer["next_evaluation_at"]
        return following["at"] <= deadline or not any(answer["at"] < end <= deadline for end in self.ends)

    def check_counts(self) -> None:
        """Every row is in the ledger, and every missed deadline is counted. No micro-batch could have met them."""
        missed = 0
        for query in WEIGHTS:
            mine = [answer for answer in self.answers if answer["query"] == query and not np.isnan(answer["value"])]
            for answer, following in pairwise(mine):
                assert self.in_time(answer, following)
                missed += following["at"] > answer["next_evaluation_at"]
        every, last = ShardCounts.together(self.counts), self.counts[-1]
        assert [every.used, every.out_of_order, every.invalid] == self.ledger
        assert [last.all_used, last.all_out_of_order, last.all_invalid] == self.ledger
        assert every.missed == missed


def walk(ticks: int, seed: int, spikes: tuple[int, ...] = ()) -> list[list[Row]]:
    """One list of rows per tick; ``spikes`` are ticks at which s0 is far above all others."""
    draw = np.random.default_rng(seed)
    values = np.cumsum(draw.standard_normal((ticks, 3)), axis=0)
    values[list(spikes), 0] += 94.0
    return [
        [(name, tick * TICK_MS, float(value)) for name, value in zip(STREAMS, row, strict=True)]
        for tick, row in enumerate(values)
    ]


def batched(ticks: list[list[Row]], size: int) -> list[list[Row]]:
    return [[row for tick in ticks[at : at + size] for row in tick] for at in range(0, len(ticks), size)]


@pytest.mark.parametrize("size", [1, 10, 30, 60, 5000])
@pytest.mark.parametrize("kind", [{"landmark": 0.0}, {"window": 45 * TICK_MS}])
@pytest.mark.parametrize("aggregate", ["max", "min"])
def test_a_peak_is_never_lost(aggregate: Any, kind: dict[str, Any], size: int) -> None:
    replay = Replay(EvaluatorOptions(aggregate=aggregate, **kind), within=5.0)
    for rows in batched(walk(max(6 * size, 360), 3, spikes=(97, 205, 338)), size):
        replay.batch(rows)
    assert len(replay.answers) >= 3 * 6


@pytest.mark.parametrize("size", [1, 10, 60])
@pytest.mark.parametrize("kind", [{"landmark": 0.0}, {"window": 300 * TICK_MS}])
def test_deadlines_are_met_whenever_a_micro_batch_in_time_existed(kind: dict[str, Any], size: int) -> None:
    replay = Replay(EvaluatorOptions(aggregate="max", k=400, **kind), within=25.0)
    for rows in batched(walk(60 * size, 5), size):
        replay.batch(rows)
    assert len(replay.answers) < 3 * 60, "some evaluations were deferred"
    replay.check_counts()


@st.composite
def batches(draw: st.DrawFn) -> list[list[Row]]:
    """Streams with gaps and silences, cut into micro-batches anywhere, with rows that repeat or run backwards."""
    ticks = draw(st.integers(30, 200))
    random = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    values = 50.0 + np.cumsum(random.standard_normal((ticks, 3)), axis=0)
    values[random.random(ticks) < 0.02, 0] += 94.0
    there = random.random((ticks, 3)) < draw(st.sampled_from([1.0, 0.9, 0.4]))
    for _ in range(draw(st.integers(0, 2))):
        start, length = draw(st.integers(0, ticks - 1)), draw(st.integers(5, 60))
        there[start : start + length, draw(st.integers(0, 2))] = False
    there[0] |= ~there.any()
    rows = [(STREAMS[at], tick * TICK_MS, float(values[tick, at])) for tick, at in zip(*np.nonzero(there), strict=True)]
    for at in random.integers(0, len(rows), draw(st.integers(0, 6))):
        old = rows[random.integers(0, at + 1)]
        rows.insert(at + 1, (old[0], old[1], 1e6 * draw(st.sampled_from([1.0, -1.0, float("nan")]))))
    cuts = np.unique(random.integers(1, max(len(rows), 2), draw(st.integers(0, 30)))).tolist()
    return [rows[start:end] for start, end in zip([0, *cuts], [*cuts, len(rows)], strict=True)]


@settings(max_examples=40, deadline=None)
@given(
    batches=batches(),
    aggregate=st.sampled_from(["linear", "max", "min"]),
    window=st.sampled_from([None, 1.0, 7.5, 30.0]),
    landmark=st.sampled_from([-5.0, 0.0, 20.5]),
    within=st.sampled_from([0.0, 3.0, 10.0, 100.0]),
    method=st.sampled_from(["brownian", "calibrated", "economical"]),
    k=st.sampled_from([8, 20, 100]),
)
def test_every_answer_is_exact_and_in_time(
    batches: list[list[Row]],
    aggregate: Any,
    window: float | None,
    landmark: float,
    within: float,
    method: str,
    k: int,
) -> None:
    kind: dict[str, Any] = {}
    if aggregate != "linear":
        kind = {"landmark": landmark * TICK_MS} if window is None else {"window": window * TICK_MS}
    replay = Replay(EvaluatorOptions(aggregate=aggregate, method=method, k=k, **kind), within)
    for rows in batches:
        replay.batch(rows)
    replay.check_counts()


def test_an_instant_that_two_micro_batches_share_makes_no_peak() -> None:
    replay = Replay(EvaluatorOptions(aggregate="max", landmark=0.0), within=0.0)
    for tick in range(20):
        replay.batch([("s0", tick * TICK_MS, 5.0 * tick), ("s2", tick * TICK_MS, 0.0)])
        replay.batch([("s1", tick * TICK_MS, 5.0 * tick)])
    values = [answer["value"] for answer in replay.answers if answer["query"] == "hedge"]
    assert values[-1] == 0.0, "s0 and s1 rise together"
    assert set(values[1:]) == {0.0, 5.0}, "a difference is seen only until the second half of the instant has come"


def test_a_silent_stream_that_returns_with_its_past_loses_no_peak() -> None:
    replay = Replay(EvaluatorOptions(aggregate="max", landmark=0.0, k=8), within=0.0)
    for tick in range(60):
        rows = [("s1", tick * TICK_MS, 1.0), ("s2", tick * TICK_MS, 1.0)]
        replay.batch([("s0", tick * TICK_MS, 1.0), *rows] if tick < 20 else rows)
    past = [("s0", tick * TICK_MS, 94.0 if tick == 33 else 1.0) for tick in range(20, 60)]
    replay.batch([*past, *((name, 60 * TICK_MS, 1.0) for name in STREAMS)])
    assert next(answer["value"] for answer in replay.answers[::-1] if answer["query"] == "one") == 94.0
