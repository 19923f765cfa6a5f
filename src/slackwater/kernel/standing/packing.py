"""Arrays by name as bytes and back, laid out so that they compress well.

Numbers of one kind differ in their low bytes and agree in their high ones: an array is written as all first bytes, then
all second ones, and so on. It costs a pass over the bytes each way.
"""

from __future__ import annotations

import json
from typing import Any

import numpy as np
from numpy.typing import NDArray

_MAGIC = b"SWQ2"


def pack(header: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> bytes:
    """A header (JSON) and arrays as one piece of bytes."""
    whole = {name: np.ascontiguousarray(array) for name, array in arrays.items()}
    listed = [[name, array.dtype.str, array.shape] for name, array in whole.items()]
    text = json.dumps({"header": header, "arrays": listed}).encode()
    planes = [_planes(array).tobytes() for array in whole.values()]
    return b"".join([_MAGIC, len(text).to_bytes(8, "little"), text, *planes])


def _planes(array: NDArray[Any]) -> NDArray[np.uint8]:
    """A row for the first byte of every number, one for the second …"""
    return array.reshape(-1).view(np.uint8).reshape(array.size, array.itemsize).T


def unpack(data: bytes) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """What was packed.

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
        dtype, count = np.dtype(kind), int(np.prod(shape, dtype=np.int64))
        planes = np.frombuffer(data, np.uint8, count * dtype.itemsize, at).reshape(dtype.itemsize, count)
        arrays[name] = np.ascontiguousarray(planes.T).view(dtype).reshape(shape)
        at += count * dtype.itemsize
    return said["header"], arrays


def header_of(data: bytes) -> dict[str, Any]:
    """The header alone."""
    size = int.from_bytes(data[4:12], "little")
    header: dict[str, Any] = json.loads(data[12 : 12 + size])["header"]
    return header
