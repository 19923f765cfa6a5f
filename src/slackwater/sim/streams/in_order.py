"""System timestamps: the windowing attribute is the arrival, so there is no disorder."""

from __future__ import annotations

import numpy as np

from slackwater.sim.streams.arrange import in_arrival_order, poisson_times_ms
from slackwater.sim.streams.registry import stream
from slackwater.sim.trace import Trace


@stream("in-order")
def in_order(seed: int, rows: int = 100_000, *, rate_per_s: float = 1_000.0) -> Trace:
    """Rows that get their timestamp at arrival. No method may drop one, and no method should wait."""
    random = np.random.default_rng([9, seed])
    generated = poisson_times_ms(random, rows, rate_per_s)
    return in_arrival_order(f"in-order:{seed}", generated, np.zeros(rows))
