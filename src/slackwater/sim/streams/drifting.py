"""A pipeline that falls behind and catches up: lateness grows and shrinks while the order is nearly kept."""

from __future__ import annotations

import numpy as np

from slackwater.sim.streams.arrange import in_arrival_order, poisson_times_ms
from slackwater.sim.streams.registry import stream
from slackwater.sim.trace import Trace


@stream("drifting")
def drifting(
    seed: int,
    rows: int = 100_000,
    *,
    rate_per_s: float = 1_000.0,
    from_ms: float = 200.0,
    to_ms: float = 10_000.0,
    jitter_ms: float = 50.0,
) -> Trace:
    """The common delay of all rows climbs to ``to_ms`` at mid-stream and falls back; each row has a gamma jitter."""
    random = np.random.default_rng([3, seed])
    generated = poisson_times_ms(random, rows, rate_per_s)
    position = generated / generated[-1]
    common = from_ms + (to_ms - from_ms) * (1.0 - np.abs(2.0 * position - 1.0))
    return in_arrival_order(f"drifting:{seed}", generated, common + random.gamma(2.0, jitter_ms / 2.0, rows))
