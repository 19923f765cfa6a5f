"""The window operator equals a plain definition of each window, on random streams, batches and heartbeats."""

import itertools
import math
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from slackwater.kernel.windows import (
    Results,
    Rows,
    WindowOperator,
    WindowSpec,
    aggregate_intervals,
    panes_of,
    takes_panes,
)

NAMES = ("count", "sum", "avg", "min", "max", "var_pop", "stddev_samp")
SPEC_AGGREGATES = (("count", -1), *((name, 0) for name in NAMES))
Row = tuple[int, int, float]
Result = tuple[int, int, int, tuple[float, ...]]


def fold(rows: list[Row]) -> tuple[float, ...]:
    values = [v for _, _, v in rows if not math.isnan(v)]
    n = len(values)
    if not n:
        return (float(len(rows)), 0.0, *[math.nan] * 6)
    mean = sum(values) / n
    squares = sum((v - mean) ** 2 for v in values)
    spread = math.sqrt(squares / (n - 1)) if n > 1 else math.nan
    return (float(len(rows)), float(n), sum(values), mean, min(values), max(values), squares / n, spread)


def expected(spec: WindowSpec, rows: list[Row], heartbeat: int) -> list[Result]:
    """The definition. ``rows`` are the on-time rows in arrival order; the stable sort keeps that order for ties."""
    ordered = sorted(rows, key=lambda row: row[0])
    done = [row for row in ordered if row[0] < heartbeat]
    found: list[Result] = []
    if spec.tuples:
        for i, (at, key, _) in enumerate(done):
            before = [row for row in done[: i + 1] if not spec.per_key or row[1] == key]
            if len(before) % (spec.slide or 1):
                continue
            extent = before[-spec.length :]
            keys = [key] if spec.slide is None or spec.per_key else sorted({row[1] for row in extent})
            found += [(extent[0][0], at, k, fold([row for row in extent if row[1] == k])) for k in keys]
        return found
    keys = sorted({key for _, key, _ in rows})
    if spec.landmark is not None:
        since = [row for row in done if row[0] >= spec.landmark]
        if spec.slide is None:
            for at, key, _ in since:
                found.append((spec.landmark, at, key, fold([row for row in since if row[1] == key and row[0] <= at])))
            return found
        ends = {(spec.landmark + ((r[0] - spec.landmark) // spec.slide + 1) * spec.slide, r[1]) for r in since}
        for end, key in sorted(ends):
            if end <= heartbeat:
                extent = [row for row in ordered if row[1] == key and spec.landmark <= row[0] < end]
                found.append((spec.landmark, end, key, fold(extent)))
        return found
    if spec.slide is None:
        for at, key, _ in done:
            extent = [row for row in done if row[1] == key and at - spec.length < row[0] <= at]
            found.append((at - spec.length, at, key, fold(extent)))
        return found
    if not done:
        return []
    last = done[-1][0] + spec.length
    for end in range(done[0][0], min(heartbeat, last) + 1):
        if (end - spec.length) % spec.slide:
            continue
        for key in keys:
            extent = [row for row in ordered if row[1] == key and end - spec.length <= row[0] < end]
            if extent:
                found.append((end - spec.length, end, key, fold(extent)))
    return found


def columns_of(rows: list[Row]) -> Rows:
    return Rows.of([r[0] for r in rows], [r[1] for r in rows], ([r[2] for r in rows],))


class Shard:
    """A window operator, and the rows that wait for the heartbeat, as a Spark task has them.

    Like Spark's tasks it reduces rows to panes where the window takes panes, before they wait.
    """

    def __init__(self, spec: WindowSpec, columns: int = 1) -> None:
        self.operator = WindowOperator(spec, columns)
        self.spec = spec
        self.waiting = Rows.empty(self.operator.buffer.columns)

    def push(self, rows: Rows, heartbeat: int) -> Results:
        if takes_panes(self.spec):
            rows = panes_of(self.spec, rows.take(rows.attribute >= self.operator.heartbeat))
        return self.push_arranged(rows, heartbeat)

    def push_arranged(self, rows: Rows, heartbeat: int) -> Results:
        """Push rows, or panes where the window takes panes."""
        heartbeat = max(heartbeat, self.operator.heartbeat)
        rows = Rows.concat([self.waiting, rows], self.operator.buffer.columns)
        passed = rows.attribute < heartbeat
        self.waiting = rows.take(~passed)
        return self.operator.advance(rows.take(passed), heartbeat)

    def restart(self) -> None:
        self.operator = WindowOperator(self.spec, 1).resume(self.operator.to_bytes())


def run(
    spec: WindowSpec, batches: list[tuple[list[Row], int]], restart: bool = False
) -> tuple[list[Result], list[Row], int]:
    """The results, the rows that were on time, and the last heartbeat."""
    shard = Shard(spec)
    results: list[Result] = []
    accepted: list[Row] = []
    for rows, heartbeat in batches:
        accepted += [row for row in rows if row[0] >= shard.operator.heartbeat]
        out = shard.push(columns_of(rows), heartbeat)
        folded = zip(*[a.tolist() for a in out.aggregates], strict=True)
        results += list(zip(out.start.tolist(), out.end.tolist(), out.keys.tolist(), folded, strict=True))
        if restart:
            shard.restart()
    return results, accepted, shard.operator.heartbeat


def assert_same(found: list[Result], wanted: list[Result]) -> None:
    def order(result: Result) -> tuple[int, int, int, str]:
        return result[1], result[2], result[0], str(result[3][2:5])

    assert sorted(result[:3] for result in found) == sorted(result[:3] for result in wanted)
    for one, other in zip(sorted(found, key=order), sorted(wanted, key=order), strict=True):
        np.testing.assert_allclose(np.array(one[3]), np.array(other[3]), rtol=1e-9, atol=1e-9)


values = st.one_of(st.integers(-100, 100).map(float), st.just(math.nan))
rows = st.tuples(st.integers(0, 60), st.integers(0, 2), values)
streams = st.lists(st.tuples(st.lists(rows, max_size=12), st.integers(0, 80)), min_size=1, max_size=6)
specs = st.one_of(
    st.builds(
        WindowSpec,
        st.just(0),
        st.one_of(st.none(), st.integers(1, 12)),
        aggregates=st.just(SPEC_AGGREGATES),
        landmark=st.integers(-5, 30),
    ),
    st.builds(WindowSpec, st.integers(1, 40), st.none(), aggregates=st.just(SPEC_AGGREGATES)),
    st.integers(1, 12).flatmap(
        lambda slide: st.builds(WindowSpec, st.integers(slide, 40), st.just(slide), aggregates=st.just(SPEC_AGGREGATES))
    ),
    st.builds(
        WindowSpec,
        st.integers(1, 9),
        st.one_of(st.none(), st.integers(1, 4)),
        st.just(True),
        st.booleans(),
        aggregates=st.just(SPEC_AGGREGATES),
    ),
)


@settings(max_examples=250, deadline=None)
@given(specs, streams, st.booleans())
def test_every_window_comes_once_and_equals_the_definition(
    spec: WindowSpec, batches: list[tuple[list[Row], int]], restart: bool
) -> None:
    found, accepted, heartbeat = run(spec, batches, restart=restart)
    assert_same(found, expected(spec, accepted, heartbeat))


def test_windows_across_large_gaps() -> None:
    shard = Shard(WindowSpec(10, 5, aggregates=(("count", -1),)), columns=0)
    out = shard.push(Rows.of([1, 10**15, 2]), 20)
    assert (out.end.tolist(), out.aggregates[0].tolist()) == ([5, 10], [2.0, 2.0])
    out = shard.push(Rows.of([10**9]), 10**9 + 5)
    assert out.end.tolist() == [10**9 + 5]
    out = shard.push(Rows.of([]), 10**15 + 10)
    assert out.end.tolist() == [10**9 + 10, 10**15 + 5, 10**15 + 10]


def test_a_huge_span_of_many_groups_does_not_overflow() -> None:
    spec = WindowSpec(10, aggregates=(("sum", 0),))
    operator = WindowOperator(spec, 1)
    at = [0, 10**17, 10**17 + 5] * 100
    keys = list(itertools.chain.from_iterable([k] * 3 for k in range(100)))
    out = operator.advance(Rows.of(at, keys, ([1.0] * 300,)), 2 * 10**17)
    assert sorted(out.aggregates[0].tolist()) == [1.0] * 200 + [2.0] * 100


@pytest.mark.parametrize("slide", [None, 10])
def test_the_window_buffer_keeps_the_rows_of_one_window(slide: int | None) -> None:
    shard = Shard(WindowSpec(100, slide, aggregates=(("max", 0),)))
    rng = np.random.default_rng(7)
    for i in range(200):
        at = i * 10 + rng.integers(0, 50, 10)
        shard.push(Rows.of(at, None, (rng.normal(size=10),)), i * 10 - 30)
    assert len(shard.operator.buffer.rows) <= 130


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 400), st.integers(0, 2**32 - 1), st.sampled_from(["min", "max", "sum", "count"]))
def test_aggregates_of_intervals_of_any_length(size: int, seed: int, name: str) -> None:
    rng = np.random.default_rng(seed)
    column = rng.integers(-50, 50, size).astype(float)
    column[rng.random(size) < 0.1] = math.nan
    low = rng.integers(0, size, 50)
    high = low + rng.integers(0, size + 1, 50).clip(max=size - low)
    folds: dict[str, Callable[[list[float]], float]] = {"min": min, "max": max, "sum": sum, "count": len}
    for found, first, end in zip(aggregate_intervals(name, column, low, high), low, high, strict=True):
        known = [value for value in column[first:end] if not math.isnan(value)]
        np.testing.assert_equal(found, float(folds[name](known)) if known or name == "count" else math.nan)


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 12), st.integers(-5, 30), streams)
def test_panes_made_by_two_tasks_give_the_same_results(
    slide: int, landmark: int, batches: list[tuple[list[Row], int]]
) -> None:
    spec = WindowSpec(0, slide, aggregates=SPEC_AGGREGATES, landmark=landmark)
    whole, parted = Shard(spec), Shard(spec)
    for batch, heartbeat in batches:
        rows = columns_of(batch)
        on_time = rows.take(rows.attribute >= whole.operator.heartbeat)
        parts = [panes_of(spec, on_time.take(slice(i, None, 2))) for i in range(2)]
        found = whole.push(rows, heartbeat)
        again = parted.push_arranged(Rows.concat(parts, parted.operator.buffer.columns), heartbeat)
        assert (found.end.tolist(), found.keys.tolist()) == (again.end.tolist(), again.keys.tolist())
        for one, other in zip(found.aggregates, again.aggregates, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-9)


def test_a_pane_of_an_emitted_step_is_left_out() -> None:
    spec = WindowSpec(0, slide=10, aggregates=(("sum", 0),), landmark=0)
    operator = WindowOperator(spec, columns=1)
    operator.advance(panes_of(spec, Rows.of([3, 12], values=([1.0, 2.0],))), heartbeat=20)
    found = operator.advance(panes_of(spec, Rows.of([4, 21], values=([5.0, 7.0],))), heartbeat=30)
    assert (found.end.tolist(), found.aggregates[0].tolist()) == ([30], [10.0])
