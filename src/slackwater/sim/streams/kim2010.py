"""The stream of Kim, Kang and Kim (2010), §4, given by a rate, a standard deviation and a maximum of disorder."""

from __future__ import annotations

import numpy as np

from slackwater.sim.streams.arrange import in_arrival_order, poisson_times_ms
from slackwater.sim.streams.registry import stream
from slackwater.sim.trace import Trace


@stream("kim2010")
def kim2010(
    seed: int, rows: int = 100_000, *, rate_per_s: float = 1_000.0, sd_ms: float = 50.0, max_ms: float = 250.0
) -> Trace:
    """Half-normal delays that are clipped at a maximum.

    The paper names the three parameters but gives no values. The disorder is modelled as a delay, so it is not
    negative.
    """
    random = np.random.default_rng([2010, seed])
    generated = poisson_times_ms(random, rows, rate_per_s)
    disorder = np.minimum(np.abs(random.normal(0.0, sd_ms, rows)), max_ms)
    return in_arrival_order(f"kim2010:{seed}", generated, disorder)
