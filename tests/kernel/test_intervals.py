"""MIN and MAX over many intervals, by cuts and by blocks, equal a loop over the intervals."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from slackwater.kernel.windows.intervals import _cuts, aggregate_intervals
from slackwater.kernel.windows.rows import Floats, Ints


def one_by_one(name: str, values: Floats, low: Ints, high: Ints) -> list[float]:
    best = {"min": min, "max": max}[name]
    known = [[v for v in values[a:b].tolist() if v == v] for a, b in zip(low.tolist(), high.tolist(), strict=True)]
    return [best(part) if part else float("nan") for part in known]


@st.composite
def columns(draw: st.DrawFn) -> tuple[Floats, np.random.Generator]:
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    values = rng.integers(-50, 50, draw(st.integers(1, 4000))).astype(np.float64)
    values[rng.random(len(values)) < draw(st.sampled_from([0.0, 0.1, 0.98]))] = np.nan
    return values, rng


@pytest.mark.parametrize("name", ["min", "max"])
@given(columns(), st.integers(1, 3000), st.integers(1, 3))
def test_extremes_of_windows_that_move_forward(
    name: str, column: tuple[Floats, np.random.Generator], longest: int, groups: int
) -> None:
    values, rng = column
    # As in rows sorted by group: no window begins before its group does.
    begins = np.concatenate([[0], np.sort(rng.integers(0, len(values), groups - 1))])
    ends = np.arange(1, len(values) + 1)
    first = begins[np.searchsorted(begins, ends - 1, side="right") - 1]
    widths = rng.integers(max(longest // 2, 1), longest + 1, len(values))
    low = np.maximum.accumulate(np.maximum(ends - widths, first))
    some = np.sort(rng.choice(len(values), rng.integers(1, len(values) + 1), replace=False))
    low, high = low[some], ends[some]
    np.testing.assert_array_equal(aggregate_intervals(name, values, low, high), one_by_one(name, values, low, high))


@pytest.mark.parametrize("name", ["min", "max"])
@given(columns())
def test_extremes_of_any_intervals(name: str, column: tuple[Floats, np.random.Generator]) -> None:
    values, rng = column
    low = rng.integers(0, len(values) + 1, 200)
    high = np.minimum(low + rng.integers(0, 400, 200), len(values))
    np.testing.assert_array_equal(aggregate_intervals(name, values, low, high), one_by_one(name, values, low, high))


@pytest.mark.parametrize("name", ["min", "max"])
def test_long_windows_have_few_cuts(name: str) -> None:
    # Two groups; the second has fewer rows than a window.
    high = np.arange(1, 3501)
    low = np.where(high <= 3000, np.maximum(high - 1000, 0), 3000)
    cuts = _cuts(low, high)
    assert cuts is not None and len(cuts) <= 5
    values = np.random.default_rng(1).normal(size=len(high))
    values[::7] = np.nan
    np.testing.assert_array_equal(aggregate_intervals(name, values, low, high), one_by_one(name, values, low, high))


@pytest.mark.parametrize(
    ("low", "high"),
    [
        (np.arange(1000), np.arange(1000) + 100),  # short
        (np.tile([0, 500], 500), np.full(1000, 1000)),  # starts go back and forth
        (np.arange(1000), np.maximum(np.arange(1000), 900)),  # some are empty
    ],
)
def test_intervals_without_cuts(low: Ints, high: Ints) -> None:
    assert _cuts(low, high) is None
