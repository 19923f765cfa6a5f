"""Sudden changes of the delay, up and down again."""

from __future__ import annotations

import numpy as np

from slackwater.sim.streams.arrange import in_arrival_order, poisson_times_ms
from slackwater.sim.streams.registry import stream
from slackwater.sim.trace import Trace


@stream("step")
def step(
    seed: int,
    rows: int = 100_000,
    *,
    rate_per_s: float = 1_000.0,
    mean_ms: float = 100.0,
    factor: float = 10.0,
    regimes: int = 5,
) -> Trace:
    """Gamma delays whose scale jumps up by ``factor`` and back again at equal intervals."""
    random = np.random.default_rng([4, seed])
    generated = poisson_times_ms(random, rows, rate_per_s)
    high = (np.arange(rows) * regimes // rows) % 2 == 1
    delays = random.gamma(2.0, mean_ms / 2.0, rows) * np.where(high, factor, 1.0)
    return in_arrival_order(f"step:{seed}", generated, delays)
