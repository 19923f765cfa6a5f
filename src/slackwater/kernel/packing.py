"""Arrays by name as bytes and back, without copying on the way back."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
from numpy.typing import NDArray

_MAGIC = b"SWQ1"
_ALIGN = 16


def pack(header: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> bytes:
    """A header (JSON) and arrays as one piece of bytes."""
    whole = {name: np.ascontiguousarray(array) for name, array in arrays.items()}
    listed = [[name, array.dtype.str, array.shape] for name, array in whole.items()]
    text = json.dumps({"header": header, "arrays": listed}).encode()
    parts = [_MAGIC, len(text).to_bytes(8, "little"), text]
    at = 12 + len(text)
    for array in whole.values():
        gap = -at % _ALIGN
        parts += [b"\0" * gap, array.tobytes()]
        at += gap + array.nbytes
    return b"".join(parts)


def unpack(data: bytes) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """What was packed; the arrays are views of the bytes, and must not be written to.

    >>> header, arrays = unpack(pack({"n": 1}, {"a": np.arange(3), "b": np.zeros((0, 2))}))
    >>> header, arrays["a"].tolist(), arrays["b"].shape
    ({'n': 1}, [0, 1, 2], (0, 2))
    """
    if data[:4] != _MAGIC:
        raise ValueError("not the packed state of standing queries")
    size = int.from_bytes(data[4:12], "little")
    said = json.loads(data[12 : 12 + size])
    at = 12 + size
    arrays = {}
    for name, kind, shape in said["arrays"]:
        at += -at % _ALIGN
        dtype, count = np.dtype(kind), int(np.prod(shape, dtype=np.int64))
        arrays[name] = np.frombuffer(data, dtype, count, at).reshape(shape)
        at += count * dtype.itemsize
    return said["header"], arrays
