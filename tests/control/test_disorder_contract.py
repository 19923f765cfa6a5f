"""The contract of every method of disorder control, as properties of generated batches."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from slackwater.control.disorder import Batch, DisorderController, make_method, method_names
from slackwater.control.disorder.protocol import Floats
from slackwater.promises import Completeness

EPOCH = 1.7e12
YEAR_2099 = 4.07e12
METHODS = method_names()
Row = tuple[int, int, int]
Batches = list[list[Row]]

rows = st.tuples(st.integers(0, 500), st.integers(0, 5_000), st.integers(0, 3))
streams = st.lists(st.lists(rows, min_size=1, max_size=8), min_size=2, max_size=25)


def controller(name: str, ratio: float = 0.01) -> DisorderController:
    promise = Completeness(ratio)
    return DisorderController(promise, make_method(name, promise))


def to_batches(drawn: Batches, has_clock: bool = True, sources: bool = True) -> list[Batch]:
    """Batches in arrival order from drawn rows: (milliseconds since the last row, lateness, source)."""
    batches, clock = [], EPOCH
    for group in drawn:
        arrivals = clock + np.cumsum([float(gap) for gap, _, _ in group])
        clock = float(arrivals[-1])
        batches.append(
            Batch(
                arrivals - np.array([float(late) for _, late, _ in group]),
                arrivals=arrivals if has_clock else None,
                sources=np.array([source for _, _, source in group], dtype=np.int64) if sources else None,
                clock=clock if has_clock else None,
            )
        )
    return batches


def steady(count: int, rows_each: int = 20, seed: int = 1) -> list[Batch]:
    """A stream of one row per millisecond on average, with exponential lateness."""
    random = np.random.default_rng(seed)
    values = EPOCH + np.cumsum(random.exponential(1.0, count * rows_each))
    arrivals = values + random.exponential(20.0, len(values))
    order = np.argsort(arrivals, kind="stable")
    values, arrivals = values[order], arrivals[order]
    cuts = range(0, len(values), rows_each)
    return [
        Batch(values[i : i + rows_each], arrivals[i : i + rows_each], clock=arrivals[i + rows_each - 1]) for i in cuts
    ]


def with_late_rows(batch: Batch, heartbeat: float) -> Batch:
    counts = np.ones(len(batch.values), dtype=np.int64) if batch.weights is None else batch.weights
    late = int(counts[batch.values < heartbeat].sum())
    return replace(batch, late=late)


def drive(subject: DisorderController, batches: list[Batch]) -> list[float]:
    heartbeats = []
    for batch in batches:
        subject.observe(with_late_rows(batch, subject.heartbeat))
        heartbeats.append(subject.decide(batch.clock).heartbeat)
    return heartbeats


def with_row(batches: list[Batch], at: int, value: float) -> list[Batch]:
    changed = list(batches)
    old = changed[at]
    arrivals = None if old.arrivals is None else np.append(old.arrivals, old.arrivals[-1])
    changed[at] = Batch(np.append(old.values, value), arrivals, clock=old.clock)
    return changed


@pytest.mark.parametrize("name", METHODS)
@settings(max_examples=25)
@given(drawn=streams, has_clock=st.booleans(), sources=st.booleans())
def test_heartbeat_never_retreats(name: str, drawn: Batches, has_clock: bool, sources: bool) -> None:
    heartbeats = drive(controller(name), to_batches(drawn, has_clock, sources))
    assert not any(math.isnan(h) for h in heartbeats)
    assert all(b >= a for a, b in pairwise(heartbeats))


@pytest.mark.parametrize("name", METHODS)
@settings(max_examples=15)
@given(drawn=streams, at=st.integers(1, 24), sources=st.booleans())
def test_snapshot_resumes_to_the_same_decisions(name: str, drawn: Batches, at: int, sources: bool) -> None:
    batches = to_batches(drawn, sources=sources)
    at = min(at, len(batches) - 1)
    first = controller(name)
    drive(first, batches[:at])
    text = json.dumps(first.snapshot(), allow_nan=False)
    second = controller(name)
    second.resume(json.loads(text))
    assert drive(second, batches[at:]) == drive(first, batches[at:])


@pytest.mark.parametrize("name", METHODS)
def test_row_from_2099_changes_nothing(name: str) -> None:
    batches = steady(60)
    assert drive(controller(name), with_row(batches, 30, YEAR_2099)) == drive(controller(name), batches)


@pytest.mark.parametrize("name", METHODS)
def test_row_from_1970_makes_no_other_row_late(name: str) -> None:
    batches = steady(60)
    plain, poisoned = drive(controller(name), batches), drive(controller(name), with_row(batches, 30, 0.0))
    in_force: list[tuple[Floats, float, float]] = [
        (batch.values, before, after) for batch, before, after in zip(batches[1:], plain, poisoned, strict=False)
    ]
    assert sum(int(np.sum((v < after) & (v >= before))) for v, before, after in in_force) == 0


@pytest.mark.parametrize("name", METHODS)
@settings(max_examples=15)
@given(drawn=st.lists(st.lists(st.tuples(rows, st.integers(1, 5)), min_size=1, max_size=6), min_size=2, max_size=15))
def test_weight_equals_repeated_rows(name: str, drawn: list[list[tuple[Row, int]]]) -> None:
    weighted, repeated = [], []
    for batch, group in zip(to_batches([[row for row, _ in group] for group in drawn]), drawn, strict=True):
        counts = np.array([count for _, count in group], dtype=np.int64)
        assert batch.sources is not None
        weighted.append(Batch(batch.values, weights=counts, sources=batch.sources, clock=batch.clock))
        values, sources = np.repeat(batch.values, counts), np.repeat(batch.sources, counts)
        repeated.append(Batch(values, sources=sources, clock=batch.clock))
    assert drive(controller(name), weighted) == pytest.approx(drive(controller(name), repeated))


@pytest.mark.parametrize("name", METHODS)
def test_no_row_is_late_with_system_timestamps(name: str) -> None:
    arrivals = EPOCH + np.cumsum(np.random.default_rng(3).exponential(5.0, 2_000))
    subject = controller(name)
    late = 0
    for i in range(0, len(arrivals), 10):
        batch = Batch(arrivals[i : i + 10], arrivals[i : i + 10], clock=arrivals[i + 9])
        late += with_late_rows(batch, subject.heartbeat).late
        drive(subject, [batch])
    assert late == 0
