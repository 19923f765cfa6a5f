"""Named arrays as bytes and back, in a layout that compresses well.

Numbers of one kind share their high bytes and differ in their low ones. So an array is written as all first bytes, then
all second bytes, and so on. This costs one pass over the bytes in each direction.
"""

from __future__ import annotations

import json
from typing import Any

import numpy as np
from numpy.typing import NDArray

_MAGIC = b"SWQ4"


def pack(header: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> bytes:
    """A JSON header and arrays as one byte string."""
    contiguous = {name: np.ascontiguousarray(array) for name, array in arrays.items()}
    listed = [[name, array.dtype.str, array.shape] for name, array in contiguous.items()]
    text = json.dumps({"header": header, "arrays": listed}).encode()
    planes = [_planes(array).tobytes() for array in contiguous.values()]
    return b"".join([_MAGIC, len(text).to_bytes(8, "little"), text, *planes])


def _planes(array: NDArray[Any]) -> NDArray[np.uint8]:
    """One row per byte position: all first bytes, all second bytes, and so on."""
    return array.reshape(-1).view(np.uint8).reshape(array.size, array.itemsize).T


def unpack(data: bytes) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """The inverse of ``pack``.

    >>> header, arrays = unpack(pack({"n": 1}, {"a": np.arange(3), "b": np.zeros((0, 2))}))
    >>> header, arrays["a"].tolist(), arrays["b"].shape
    ({'n': 1}, [0, 1, 2], (0, 2))
    """
    if data[:4] != _MAGIC:
        raise ValueError("these bytes are not the state of a standing-query shard")
    size = int.from_bytes(data[4:12], "little")
    contents = json.loads(data[12 : 12 + size])
    at = 12 + size
    arrays = {}
    for name, type_code, shape in contents["arrays"]:
        dtype, count = np.dtype(type_code), int(np.prod(shape, dtype=np.int64))
        planes = np.frombuffer(data, np.uint8, count * dtype.itemsize, at).reshape(dtype.itemsize, count)
        arrays[name] = np.ascontiguousarray(planes.T).view(dtype).reshape(shape)
        at += count * dtype.itemsize
    return contents["header"], arrays


def read_header(data: bytes) -> dict[str, Any]:
    """Only the header."""
    size = int.from_bytes(data[4:12], "little")
    header: dict[str, Any] = json.loads(data[12 : 12 + size])["header"]
    return header


def with_prefix(prefix: str, arrays: dict[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    """The arrays under names that begin with ``prefix``, so that several parts fit into one snapshot."""
    return {prefix + name: array for name, array in arrays.items()}


def without_prefix(prefix: str, arrays: dict[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    """The arrays whose names begin with ``prefix``, under the rest of the name.

    >>> without_prefix("a.", with_prefix("a.", {"x": np.ones(1)}) | {"b.y": np.zeros(1)})
    {'x': array([1.])}
    """
    return {name.removeprefix(prefix): array for name, array in arrays.items() if name.startswith(prefix)}
