"""The slack buffer of Aurora and Kim 2007, §2: it decides row by row which rows are late."""

from __future__ import annotations

import heapq
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from slackwater.kernel.windows.rows import Ints

_NO_HEARTBEAT = int(np.iinfo(np.int64).min)


class SlackBuffer:
    """A row is late if more than ``slack`` rows with higher attributes came before it; ties are on time.

    The state is the ``slack`` + 1 highest attributes. Costs a comparison per row, and a heap operation per row that is
    among the highest.

    >>> slack = SlackBuffer(2)
    >>> slack.judge([4, 1, 3, 2, 1]).tolist()
    [True, True, True, True, False]
    >>> slack.heartbeat, slack.held(slack.heartbeat)
    (2, 2)
    """

    def __init__(self, slack: int, highest: Sequence[int] = ()) -> None:
        self._full = slack + 1
        self._heap = list(highest)
        heapq.heapify(self._heap)

    @property
    def heartbeat(self) -> int:
        """The (slack + 1)-th highest attribute, below which rows are late; the lowest number before there is one."""
        return self._heap[0] if len(self._heap) == self._full else _NO_HEARTBEAT

    @property
    def highest(self) -> list[int]:
        """The state."""
        return sorted(self._heap)

    def judge(self, attributes: Sequence[int] | Ints) -> NDArray[np.bool_]:
        """Take rows in the order of their arrival; returns which of them are on time."""
        heap, full = self._heap, self._full
        values = np.asarray(attributes, dtype=np.int64)
        on_time = np.ones(len(values), dtype=bool)
        for position, value in enumerate(values.tolist()):
            if len(heap) < full:
                heapq.heappush(heap, value)
            elif value > heap[0]:
                heapq.heapreplace(heap, value)
            elif value < heap[0]:
                on_time[position] = False
        return on_time

    def held(self, heartbeat: int) -> int:
        """How many rows are above the heartbeat; never more than ``slack``."""
        return sum(value > max(heartbeat, self.heartbeat) for value in self._heap)
