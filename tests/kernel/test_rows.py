"""Rows as bytes and back: in few bytes, and the very same numbers."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from slackwater.kernel import Rows

DOUBLES = st.floats(width=64, allow_nan=True) | st.integers(-3, 70_000).map(float) | st.just(-0.0)


@given(st.lists(st.tuples(st.integers(-(2**62), 2**62), st.integers(0, 300), DOUBLES)))
def test_rows_come_back_bit_for_bit(rows: list[tuple[int, int, float]]) -> None:
    at, keys, values = [row[0] for row in rows], [row[1] for row in rows], [row[2] for row in rows]
    written = Rows.of(at, keys, [values])
    read = Rows.from_bytes(written.to_bytes())
    assert read.attribute.tolist() == at and read.keys.tolist() == keys
    assert np.array_equal(read.values[0], written.values[0], equal_nan=True)
    assert np.array_equal(np.signbit(read.values[0]), np.signbit(written.values[0]))


@pytest.mark.parametrize(
    ("value", "bytes_each"), [([1.0, 999.0], 2), ([0.5, np.nan], 4), ([0.1, 0.2], 8), ([-0.0, 1.0], 4)]
)
def test_a_number_takes_as_few_bytes_as_hold_it(value: list[float], bytes_each: int) -> None:
    (few, many) = (len(Rows.of(range(10), [0] * 10, [value * 5] * n).to_bytes().partition(b"\n")[2]) for n in (1, 2))
    assert many - few == 10 * bytes_each
