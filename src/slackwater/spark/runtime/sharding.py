"""Shard keys that Spark's hash partitioning spreads evenly over tasks.

With arbitrary keys, a few shards often collide: of four shards on two partitions, three may land on one, and the
micro-batch waits for that task. The keys chosen here go to partitions 0, 1, 2, … in turn, for every number of
partitions that divides ``PERIOD`` (all up to 10, and 12, 14, 15, 16, 20, 24 …). With other numbers they spread at
random.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

PERIOD = 5040
MOST_SHARDS = 1024
_SEED = 42


def shard_keys(shards: int) -> list[int]:
    """One key per shard. The keys never change, because checkpoints refer to them.

    >>> shard_keys(3) == shard_keys(5)[:3]
    True
    """
    candidates = np.arange(64 * PERIOD, dtype=np.int32)
    remainder = np.mod(murmur3(candidates).astype(np.int64), PERIOD)
    first = np.full(PERIOD, -1, dtype=np.int64)  # the first candidate with each remainder
    first[remainder[::-1]] = candidates[::-1]
    return [int(key) for key in first[:shards]]


def murmur3(values: NDArray[np.int32]) -> NDArray[np.int32]:
    """Spark's ``hash`` of 32-bit integers."""
    with np.errstate(over="ignore"):
        k = values.view(np.uint32) * np.uint32(0xCC9E2D51)
        k = _rotated(k, 15) * np.uint32(0x1B873593)
        h = _rotated(np.uint32(_SEED) ^ k, 13) * np.uint32(5) + np.uint32(0xE6546B64)
        h = h ^ np.uint32(4)
        h = (h ^ (h >> np.uint32(16))) * np.uint32(0x85EBCA6B)
        h = (h ^ (h >> np.uint32(13))) * np.uint32(0xC2B2AE35)
        return np.asarray(h ^ (h >> np.uint32(16)), dtype=np.uint32).view(np.int32)


def _rotated(words: NDArray[np.uint32], by: int) -> NDArray[np.uint32]:
    return np.asarray((words << np.uint32(by)) | (words >> np.uint32(32 - by)), dtype=np.uint32)
