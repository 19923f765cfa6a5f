"""The state of a shard, compressed, as ASCII text for Spark's state store.

Spark passes a group's state to Python and back in every micro-batch. It passes texts as they are, but converts binary
state byte by byte, which would cost more than all other work on the state. Each character here carries seven bits, so
the text is a seventh longer than the bytes (base64: a third), and it is decoded three times faster than base64.
"""

from __future__ import annotations

import struct
from typing import Any, Literal

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

_HEAD = struct.Struct("<QQ")  # the length of the state, and its compressed length
_WORD = np.dtype("<u8")
_Words = NDArray[Any]
# Spread seven bytes of a 64-bit word over eight characters: (low mask, high mask, shift of the high part in bits).
_SPREAD = (
    (0x000000000FFFFFFF, 0x00FFFFFFF0000000, 4),
    (0x00003FFF00003FFF, 0x0FFFC0000FFFC000, 2),
    (0x007F007F007F007F, 0x3F803F803F803F80, 1),
)
Codec = Literal["lz4_raw", "zstd"]


def as_text(state: bytes, codec: Codec = "lz4_raw") -> str:
    """Compress state and encode it as text. Use ``zstd``, which is smaller but slower, for state that is rarely read.

    >>> from_text(as_text(b"a" * 1000)) == b"a" * 1000
    True
    """
    small: bytes = pa.compress(state, codec=codec, asbytes=True)
    return _characters(_HEAD.pack(len(state), len(small)) + small)


def from_text(text: str, codec: Codec = "lz4_raw") -> bytes:
    """Read what ``as_text`` wrote with the same codec."""
    data = _bytes(text)
    size, compressed = _HEAD.unpack_from(data)
    small = memoryview(data)[_HEAD.size : _HEAD.size + compressed]
    state: bytes = pa.decompress(small, decompressed_size=size, codec=codec, asbytes=True)
    return state


def _characters(data: bytes) -> str:
    """Eight characters for every seven bytes; the last seven are padded with zeros.

    >>> [ord(character) for character in _characters(bytes([255, 1]))]
    [127, 3, 0, 0, 0, 0, 0, 0]
    """
    words = np.zeros((-(-len(data) // 7), 8), dtype=np.uint8)
    whole = len(data) // 7
    words[:whole, :7] = np.frombuffer(data, np.uint8, whole * 7).reshape(-1, 7)
    words[whole:, : len(data) % 7] = np.frombuffer(data, np.uint8, offset=whole * 7) if len(data) % 7 else 0
    bits: _Words = words.view(_WORD).ravel()
    for low, high, by in _SPREAD:
        bits = (bits & low) | ((bits & high) << by)
    return bits.tobytes().decode("ascii")


def _bytes(text: str) -> bytes:
    """The bytes, and the zeros that pad them."""
    bits: _Words = np.frombuffer(text.encode("ascii"), _WORD)
    for low, high, by in reversed(_SPREAD):
        bits = (bits & low) | ((bits >> by) & high)
    return bits.view(np.uint8).reshape(-1, 8)[:, :7].tobytes()
