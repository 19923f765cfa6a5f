"""A shard's state on its way to Spark's state store and back: compressed, as text.

Spark hands a group's state to Python and back in every micro-batch. A text goes as it is; of bytes Spark makes a text
of its own, byte by byte, which costs more than all else that is done with them. A character is seven bits, so that it
is one byte everywhere: a seventh more than the bytes themselves, where base64 takes a third more, and three times as
quick to read.
"""

from __future__ import annotations

import struct
from typing import Any, Literal

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

_HEAD = struct.Struct("<QQ")  # how long the state is, and how long it is compressed
_WORD = np.dtype("<u8")
_Words = NDArray[Any]
# From seven bytes in a word to eight characters: halves, quarters and eighths of it move apart, by so many bits.
_APART = (
    (0x000000000FFFFFFF, 0x00FFFFFFF0000000, 4),
    (0x00003FFF00003FFF, 0x0FFFC0000FFFC000, 2),
    (0x007F007F007F007F, 0x3F803F803F803F80, 1),
)
Codec = Literal["lz4_raw", "zstd"]


def as_text(state: bytes, codec: Codec = "lz4_raw") -> str:
    """The text to keep. What is read less often than it is handed on is worth ``zstd``, which makes it shorter.

    >>> from_text(as_text(b"a" * 1000)) == b"a" * 1000
    True
    """
    small: bytes = pa.compress(state, codec=codec, asbytes=True)
    return _characters(_HEAD.pack(len(state), len(small)) + small)


def from_text(kept: str, codec: Codec = "lz4_raw") -> bytes:
    """What was kept."""
    data = _bytes(kept)
    size, compressed = _HEAD.unpack_from(data)
    small = memoryview(data)[_HEAD.size : _HEAD.size + compressed]
    state: bytes = pa.decompress(small, decompressed_size=size, codec=codec, asbytes=True)
    return state


def _characters(data: bytes) -> str:
    """As text: eight characters for seven bytes, the last of them filled up with zeros.

    >>> [ord(character) for character in _characters(bytes([255, 1]))]
    [127, 3, 0, 0, 0, 0, 0, 0]
    """
    words = np.zeros((-(-len(data) // 7), 8), dtype=np.uint8)
    whole = len(data) // 7
    words[:whole, :7] = np.frombuffer(data, np.uint8, whole * 7).reshape(-1, 7)
    words[whole:, : len(data) % 7] = np.frombuffer(data, np.uint8, offset=whole * 7) if len(data) % 7 else 0
    bits: _Words = words.view(_WORD).ravel()
    for low, high, by in _APART:
        bits = (bits & low) | ((bits & high) << by)
    return bits.tobytes().decode("ascii")


def _bytes(text: str) -> bytes:
    """The bytes, and the zeros behind them."""
    bits: _Words = np.frombuffer(text.encode("ascii"), _WORD)
    for low, high, by in reversed(_APART):
        bits = (bits & low) | ((bits >> by) & high)
    return bits.view(np.uint8).reshape(-1, 8)[:, :7].tobytes()
