"""The window operator against a definition that anybody can read, on drawn streams, cuts and heartbeats."""

import itertools
import math
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from slackwater.kernel.windows import Rows, WindowOperator, WindowSpec, aggregate_intervals, panes_of

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
    """The definition: ``rows`` are the on-time rows in arrival order; the sort below is stable, so ties keep it."""
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


def run(
    spec: WindowSpec, batches: list[tuple[list[Row], int]], slack: int | None = None, restart: bool = False
) -> tuple[list[Result], list[Row], int]:
    operator = WindowOperator(spec, 1, slack=slack, bucket_width=3)
    results: list[Result] = []
    accepted: list[Row] = []
    for rows, heartbeat in batches:
        before = operator.heartbeat
        accepted += [row for row in rows if row[0] >= before]
        out, late = operator.push(columns_of(rows), heartbeat)
        assert len(late) == sum(row[0] < before for row in rows)
        folded = zip(*[a.tolist() for a in out.aggregates], strict=True)
        results += list(zip(out.start.tolist(), out.end.tolist(), out.keys.tolist(), folded, strict=True))
        if restart:
            operator = WindowOperator(spec, 1, slack=slack, bucket_width=3).resume(operator.to_bytes())
    assert operator.late + operator.on_time == sum(len(rows) for rows, _ in batches)
    return results, accepted, operator.heartbeat


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
def test_every_window_once_and_right(spec: WindowSpec, batches: list[tuple[list[Row], int]], restart: bool) -> None:
    found, accepted, heartbeat = run(spec, batches, restart=restart)
    assert_same(found, expected(spec, accepted, heartbeat))


@settings(max_examples=80, deadline=None)
@given(specs, streams, st.integers(1, 6))
def test_slack_caps_what_is_held(spec: WindowSpec, batches: list[tuple[list[Row], int]], slack: int) -> None:
    operator = WindowOperator(spec, 1, slack=slack, bucket_width=3)
    for batch, _ in batches:
        operator.push(columns_of(batch))
        held = operator.store.slack_rows().attribute
        assert operator.store.held == len(held)
        # Ties at the heartbeat stay: they are on time.
        assert (held > operator.heartbeat).sum() <= slack


def test_aurora_drops_what_is_more_than_n_positions_out_of_order() -> None:
    """Kim 2007, Section 2: with SLACK n a row that n larger rows overtook is dropped."""
    operator = WindowOperator(WindowSpec(10, aggregates=(("count", -1),)), 0, slack=2)
    for at in (1, 3, 4, 5):
        operator.push(Rows.of([at]))
    _, late = operator.push(Rows.of([2]))
    assert late.attribute.tolist() == [2]
    _, late = operator.push(Rows.of([3]))
    assert len(late) == 0  # a tie at the heartbeat


def test_rows_from_the_future_and_far_gaps_are_kept_apart() -> None:
    spec = WindowSpec(10, 5, aggregates=(("count", -1),))
    operator = WindowOperator(spec, 0, bucket_width=1)
    out, _ = operator.push(Rows.of([1, 10**15, 2]), 20)
    assert (out.end.tolist(), out.aggregates[0].tolist()) == ([5, 10], [2.0, 2.0])
    out, _ = operator.push(Rows.of([10**9]), 10**9 + 5)
    assert out.end.tolist() == [10**9 + 5]
    out, _ = operator.push(Rows.of([]), 10**15 + 10)
    assert out.end.tolist() == [10**9 + 10, 10**15 + 5, 10**15 + 10]


def test_huge_keys_do_not_overflow() -> None:
    spec = WindowSpec(10, aggregates=(("sum", 0),))
    operator = WindowOperator(spec, 1)
    at = [0, 10**17, 10**17 + 5] * 100
    keys = list(itertools.chain.from_iterable([k] * 3 for k in range(100)))
    out, _ = operator.push(Rows.of(at, keys, ([1.0] * 300,)), 2 * 10**17)
    assert sorted(out.aggregates[0].tolist()) == [1.0] * 200 + [2.0] * 100


@pytest.mark.parametrize("slide", [None, 10])
def test_the_record_store_keeps_no_more_than_the_wait_and_a_window(slide: int | None) -> None:
    operator = WindowOperator(WindowSpec(100, slide, aggregates=(("max", 0),)), 1)
    rng = np.random.default_rng(7)
    for i in range(200):
        at = i * 10 + rng.integers(0, 50, 10)
        operator.push(Rows.of(at, None, (rng.normal(size=10),)), i * 10 - 30)
    assert len(operator.store.window) <= 130
    assert operator.store.held <= 130


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
def test_panes_made_elsewhere_give_the_same(slide: int, landmark: int, batches: list[tuple[list[Row], int]]) -> None:
    spec = WindowSpec(0, slide, aggregates=SPEC_AGGREGATES, landmark=landmark)
    whole, parted = WindowOperator(spec, 1), WindowOperator(spec, 1)
    for batch, heartbeat in batches:
        rows = columns_of(batch)
        on_time = rows.take(rows.attribute >= whole.heartbeat)
        parts = [panes_of(spec, on_time.take(slice(i, None, 2))) for i in range(2)]  # as two tasks make them
        found, _ = whole.push(rows, heartbeat)
        again = parted.push_panes(Rows.concat(parts, parted.store.columns), heartbeat)
        assert (found.end.tolist(), found.keys.tolist()) == (again.end.tolist(), again.keys.tolist())
        for one, other in zip(found.aggregates, again.aggregates, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-9)
    assert whole.on_time - parted.on_time == sum(row[0] < landmark for row in _accepted(batches))


def _accepted(batches: list[tuple[list[Row], int]]) -> list[Row]:
    heartbeat, found = -(2**62), []
    for batch, asked in batches:
        found += [row for row in batch if row[0] >= heartbeat]
        heartbeat = max(heartbeat, asked)
    return found


def test_a_pane_of_a_step_that_came_out_is_late() -> None:
    spec = WindowSpec(0, slide=10, aggregates=(("sum", 0),), landmark=0)
    operator = WindowOperator(spec, columns=1)
    operator.push_panes(panes_of(spec, Rows.of([3, 12], values=([1.0, 2.0],))), heartbeat=20)
    found = operator.push_panes(panes_of(spec, Rows.of([4, 21], values=([5.0, 7.0],))), heartbeat=30)
    assert (found.end.tolist(), found.aggregates[0].tolist()) == ([30], [10.0])
    assert (operator.on_time, operator.late) == (3, 1)
