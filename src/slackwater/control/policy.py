"""A decision that stays fresh: how the heartbeat follows the arrival clock until the next decision."""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

REMEMBERED_BATCHES = 8
"""The steps of the arrival clock are remembered over this many batches with rows."""
MOST_STEPS_AHEAD = 2.0
"""After its batch has ended, a decision holds for at most this many of the longest recent steps. Back to back, it is
used when the next batch has ended too."""


@dataclass(frozen=True, slots=True)
class Room:
    """How far the heartbeat stays behind the rows that raise it. All times are milliseconds.

    A row raises it to ``behind`` below its value, but never above ``wait`` before its arrival or above ``ceiling``.
    A value from the future counts as that of the row's arrival.
    """

    wait: float
    behind: float
    ceiling: float = math.inf


@dataclass(frozen=True, slots=True)
class Policy:
    """Gives the heartbeat for any moment after the decision. All times are milliseconds.

    A decision is made from a batch that has ended, and is used when a later one is planned. Until then the arrival
    clock has moved on. ``clock`` is the arrival clock of the decision and ``wall`` the time at which its batch was
    planned. The clock is assumed to run with the time since then. If more than ``reach`` has passed, it is assumed to
    stand: the stream may have stalled, or the query was stopped, and the backlog must not be lost. ``heartbeat`` is the
    one decided at ``clock``; it rises with the clock up to ``ceiling``, which stands: it comes from the values that the
    stream has shown, not from its clock. ``room`` lets the rows of the next micro-batch raise the heartbeat; None if
    they must not.

    >>> policy = Policy(clock=100.0, wall=5000.0, heartbeat=80.0, reach=30.0)
    >>> policy.clock_at(5010.0), policy.heartbeat_at(5010.0)
    (110.0, 90.0)
    >>> policy.clock_at(9000.0)
    100.0
    """

    clock: float
    wall: float
    heartbeat: float
    reach: float = 0.0
    ceiling: float = math.inf
    room: Room | None = None

    def clock_at(self, wall: float) -> float:
        """The arrival clock expected at the time ``wall``."""
        passed = wall - self.wall
        return self.clock + passed if 0.0 <= passed <= self.reach else self.clock

    def heartbeat_at(self, wall: float) -> float:
        """The heartbeat for a batch that is planned at the time ``wall``."""
        return min(self.heartbeat + self.clock_at(wall) - self.clock, self.ceiling)

    def as_json(self) -> dict[str, Any]:
        """The policy as JSON values."""
        return {
            "clock": self.clock,
            "wall": self.wall,
            "heartbeat": _finite(self.heartbeat),
            "reach": self.reach,
            "ceiling": _finite(self.ceiling),
            "room": None if self.room is None else [self.room.wait, self.room.behind, _finite(self.room.ceiling)],
        }

    @classmethod
    def from_json(cls, values: dict[str, Any]) -> Policy:
        """The inverse of ``as_json``."""
        heartbeat = -math.inf if values["heartbeat"] is None else values["heartbeat"]
        ceiling = math.inf if values.get("ceiling") is None else values["ceiling"]
        room = values.get("room")
        if room is not None:
            room = Room(room[0], room[1], math.inf if room[2] is None else room[2])
        return cls(values["clock"], values["wall"], heartbeat, values["reach"], ceiling, room)


def _finite(time: float) -> float | None:
    return time if math.isfinite(time) else None


class LiveClock:
    """Tells whether the arrival clock runs with real time, and how far it may be extrapolated.

    The clock is live if the last row of a batch arrived shortly before the batch was planned. The clock of a replay
    or of a backlog is not live: its next step is unknown, so it is not extrapolated at all.

    >>> live = LiveClock()
    >>> live.observe(clock=1000.0, wall=1010.0, took=400.0)
    >>> live.observe(clock=1500.0, wall=1510.0, took=400.0)
    >>> live.reach
    1400.0
    >>> live.observe(clock=1600.0, wall=9000.0, took=400.0)
    >>> live.reach
    0.0
    """

    def __init__(self) -> None:
        self._clocks: deque[float] = deque(maxlen=REMEMBERED_BATCHES + 1)
        self._behind = math.inf
        self._took = 0.0

    def observe(self, clock: float, wall: float, took: float) -> None:
        """Note the arrival clock after a batch with rows, when the batch was planned and how long it took."""
        self._clocks.append(clock)
        self._behind = abs(wall - clock)
        self._took = max(took, 0.0)

    @property
    def reach(self) -> float:
        """How long after its last batch was planned the clock is assumed to run on; 0 if it is not live.

        The time that the batch took is no silence of the stream: until its end nobody asked for rows.
        """
        longest = max((after - before for before, after in pairwise(self._clocks)), default=0.0)
        return self._took + MOST_STEPS_AHEAD * longest if self._behind <= longest else 0.0
