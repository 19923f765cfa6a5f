"""From which event time on a large micro-batch may count a sample of its rows."""

from __future__ import annotations

import math

from slackwater.units import DAY_US

CELLS_PER_UNIT = 128
"""Histogram cells per unit of the eighth root of a margin in microseconds."""
_FAR_CELL = 720
"""A second ahead of the heartbeat."""
FAR_US = math.ceil((_FAR_CELL / CELLS_PER_UNIT) ** 8)


def sampling_start_us(heartbeat_us: int | None) -> int:
    """The event time from which rows may be sampled; never within a day of 1970, where unset clocks are."""
    return DAY_US if heartbeat_us is None else max(heartbeat_us + FAR_US, DAY_US)
