"""Rows written as bytes come back unchanged, and take few bytes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from slackwater.kernel.windows import Rows
from slackwater.kernel.windows.order import by_group, in_order

DOUBLES = st.floats(width=64, allow_nan=True) | st.integers(-3, 70_000).map(float) | st.just(-0.0)


@given(
    st.lists(st.tuples(st.integers(-(2**62), 2**62) | st.integers(0, 99), st.integers(0, 300), DOUBLES)),
    st.sampled_from([lambda row: 0, lambda row: row[0], lambda row: (row[1] // 99, row[0])]),
)
def test_rows_come_back_bit_for_bit(rows: list[tuple[int, int, float]], order: Callable[..., Any]) -> None:
    """Unsorted, sorted by time, and sorted by group."""
    rows = [(at, key // 99, value) for at, key, value in sorted(rows, key=order)]
    at, keys, values = [row[0] for row in rows], [row[1] for row in rows], [row[2] for row in rows]
    written = Rows.of(at, keys, [values])
    read = Rows.from_bytes(written.to_bytes())
    assert read.attribute.tolist() == at and read.keys.tolist() == keys
    assert np.array_equal(read.values[0], written.values[0], equal_nan=True)
    assert np.array_equal(np.signbit(read.values[0]), np.signbit(written.values[0]))


@pytest.mark.parametrize(
    ("value", "bytes_each"), [([1.0, 999.0], 2), ([0.5, np.nan], 4), ([0.1, 0.2], 8), ([-0.0, 1.0], 4)]
)
def test_a_value_takes_the_fewest_bytes_that_hold_it_exactly(value: list[float], bytes_each: int) -> None:
    (few, many) = (len(Rows.of(range(10), [0] * 10, [value * 5] * n).to_bytes().partition(b"\n")[2]) for n in (1, 2))
    assert many - few == 10 * bytes_each


@given(
    st.lists(st.tuples(st.integers(0, 20) | st.integers(-(2**62), 2**62), st.integers(0, 3) | st.integers(0, 2**40)))
)
def test_by_group_is_a_stable_sort(rows: list[tuple[int, int]]) -> None:
    """Both where group, attribute and index fit one integer, and where they do not."""
    given_rows = Rows.of([at for at, _ in rows], [key for _, key in rows], [range(len(rows))])
    found, index = by_group(given_rows)
    order = sorted(range(len(rows)), key=lambda i: (rows[i][1], rows[i][0]))
    assert index.tolist() == found.values[0].tolist() == order
    assert [*zip(found.attribute.tolist(), found.keys.tolist(), strict=True)] == [rows[i] for i in order]


def test_the_key_of_a_group_is_stored_once() -> None:
    (few, many) = (len(Rows.of(range(n), np.arange(n) // 1_000).to_bytes()) for n in (10_000, 11_000))
    assert many - few < 1_100, "one byte per row, and a few for the group"


@given(st.lists(st.integers(0, 20) | st.integers(-(2**62), 2**62)), st.sampled_from([0, 10, 1000]))
def test_in_order_is_a_stable_sort(at: list[int], shuffled: int) -> None:
    """Few and many descents, in a narrow and a wide range."""
    at = at + np.random.default_rng(shuffled).integers(0, 70_000, shuffled).tolist()
    found = in_order(Rows.of(at, None, [range(len(at))]))
    order = sorted(range(len(at)), key=lambda i: at[i])
    assert found.values[0].tolist() == order and found.attribute.tolist() == [at[i] for i in order]
