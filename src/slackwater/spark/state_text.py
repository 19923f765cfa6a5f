"""A shard's state on its way to Spark's state store and back: compressed, as text.

Spark hands a group's state to Python and back in every micro-batch. A text goes as it is; of bytes Spark makes a text
of its own, byte by byte, which costs more than all else that is done with them.
"""

from __future__ import annotations

from binascii import a2b_base64, b2a_base64
from typing import Literal

import pyarrow as pa

_SIZE = 8
Codec = Literal["lz4_raw", "zstd"]


def as_text(state: bytes, codec: Codec = "lz4_raw") -> str:
    """The text to keep. What is read less often than it is handed on is worth ``zstd``, which makes it shorter.

    >>> from_text(as_text(b"a" * 1000)) == b"a" * 1000
    True
    """
    small: bytes = pa.compress(state, codec=codec, asbytes=True)
    return b2a_base64(len(state).to_bytes(_SIZE, "little") + small, newline=False).decode("ascii")


def from_text(kept: str, codec: Codec = "lz4_raw") -> bytes:
    """What was kept."""
    data = a2b_base64(kept)
    size = int.from_bytes(data[:_SIZE], "little")
    state: bytes = pa.decompress(memoryview(data)[_SIZE:], decompressed_size=size, codec=codec, asbytes=True)
    return state
