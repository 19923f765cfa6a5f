"""A shard's state on its way to Spark's state store and back, made small.

Spark hands a group's state to Python and back in every micro-batch, and what that costs grows with its bytes: half
the bytes, half the time. Compressing them costs a few milliseconds a megabyte.
"""

from __future__ import annotations

import pyarrow as pa


def compressed(state: bytes) -> bytes:
    """The bytes to keep.

    >>> restored(compressed(b"a" * 1000)) == b"a" * 1000
    True
    """
    small: bytes = pa.compress(state, codec="lz4_raw", asbytes=True)
    return len(state).to_bytes(8, "little") + small


def restored(kept: bytes) -> bytes:
    """What was kept."""
    size = int.from_bytes(kept[:8], "little")
    state: bytes = pa.decompress(memoryview(kept)[8:], decompressed_size=size, codec="lz4_raw", asbytes=True)
    return state
