"""How far the sources have come: the value that each has reached, and when it was last heard."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from slackwater.control.disorder.protocol import Floats, Ints


class SourceFronts:
    """The highest value of each source, and the lowest of them over the sources that are not idle.

    Costs a few array passes a batch, whatever the number of sources; a source is two numbers.
    """

    def __init__(self) -> None:
        self._index: dict[int, int] = {}
        self._fronts: Floats = np.zeros(0)
        self._heard: Floats = np.zeros(0)

    def observe(self, values: Floats, sources: Ints, now: Floats | float) -> None:
        """Let rows in; ``now`` is when they came, in whatever measures silence."""
        slots = np.fromiter((self._slot(int(s)) for s in sources), dtype=np.int64, count=len(sources))
        np.maximum.at(self._fronts, slots, values)
        np.maximum.at(self._heard, slots, now)

    def _slot(self, source: int) -> int:
        slot = self._index.get(source)
        if slot is None:
            slot = self._index[source] = len(self._index)
            if slot >= len(self._fronts):
                grow = np.full(max(16, len(self._fronts)), -math.inf)
                self._fronts = np.concatenate((self._fronts, grow))
                self._heard = np.concatenate((self._heard, grow))
        return slot

    def lowest(self, heard_since: float) -> float:
        """The lowest front of the sources heard since then."""
        active = self._fronts[self._heard >= heard_since]
        return float(active.min()) if len(active) else -math.inf

    def snapshot(self) -> dict[str, Any]:
        """Three parallel lists."""
        used = len(self._index)
        return {
            "sources": list(self._index),
            "fronts": self._fronts[:used].tolist(),
            "heard": self._heard[:used].tolist(),
        }

    def resume(self, snapshot: dict[str, Any]) -> None:
        """Go on from a snapshot."""
        self._index = {int(s): i for i, s in enumerate(snapshot["sources"])}
        self._fronts = np.asarray(snapshot["fronts"], dtype=np.float64)
        self._heard = np.asarray(snapshot["heard"], dtype=np.float64)
