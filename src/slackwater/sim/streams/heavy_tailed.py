"""Delays with heavy tails: Pareto and log-normal."""

from __future__ import annotations

import numpy as np

from slackwater.sim.streams.arrange import in_arrival_order, poisson_times_ms
from slackwater.sim.streams.registry import stream
from slackwater.sim.trace import Trace


@stream("heavy-tailed")
def heavy_tailed(
    seed: int, rows: int = 100_000, *, rate_per_s: float = 1_000.0, scale_ms: float = 50.0, shape: float = 1.5
) -> Trace:
    """Pareto delays. With a shape below 2 the variance is infinite, so models based on moments fail."""
    random = np.random.default_rng([1, seed])
    generated = poisson_times_ms(random, rows, rate_per_s)
    return in_arrival_order(f"heavy-tailed:{seed}", generated, scale_ms * (1.0 + random.pareto(shape, rows)))


@stream("log-normal")
def log_normal(
    seed: int, rows: int = 100_000, *, rate_per_s: float = 1_000.0, median_ms: float = 100.0, shape: float = 1.0
) -> Trace:
    """Log-normal delays, as in networks and queues. All moments exist, but they do not determine the tail."""
    random = np.random.default_rng([2, seed])
    generated = poisson_times_ms(random, rows, rate_per_s)
    return in_arrival_order(f"log-normal:{seed}", generated, median_ms * random.lognormal(0.0, shape, rows))
