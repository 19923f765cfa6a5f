"""State written as text comes back unchanged; the text is ASCII and little longer than the bytes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slackwater.spark.worker.state_text import Codec, as_text, from_text


@given(st.binary(max_size=200), st.sampled_from(["lz4_raw", "zstd"]))
def test_the_same_bytes_come_back(state: bytes, codec: Codec) -> None:
    text = as_text(state, codec)
    assert from_text(text, codec) == state
    assert text.isascii() and len(text) % 8 == 0


@pytest.mark.parametrize("size", [0, 1, 6, 7, 8, 100_000])
def test_the_text_is_at_most_a_seventh_longer_than_the_bytes(size: int) -> None:
    state = bytes(hash((place, size)) % 251 for place in range(size))
    longest = (16 + size + size / 255 + 16 + 7) / 7 * 8  # lz4 makes incompressible data slightly longer
    assert from_text(as_text(state)) == state and len(as_text(state)) <= longest
