"""A shard's state on its way to Spark's state store and back: compressed, as text.

Spark hands a group's state to Python and back in every micro-batch. A text goes as it is; of bytes Spark makes a text
of its own, byte by byte, which costs more than all else that is done with them.
"""

from __future__ import annotations

from binascii import a2b_base64, b2a_base64

import pyarrow as pa

_SIZE = 8


def as_text(state: bytes) -> str:
    """The text to keep.

    >>> from_text(as_text(b"a" * 1000)) == b"a" * 1000
    True
    """
    small: bytes = pa.compress(state, codec="lz4_raw", asbytes=True)
    return b2a_base64(len(state).to_bytes(_SIZE, "little") + small, newline=False).decode("ascii")


def from_text(kept: str) -> bytes:
    """What was kept."""
    data = a2b_base64(kept)
    size = int.from_bytes(data[:_SIZE], "little")
    state: bytes = pa.decompress(memoryview(data)[_SIZE:], decompressed_size=size, codec="lz4_raw", asbytes=True)
    return state
