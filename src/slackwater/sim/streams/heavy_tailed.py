"""Delays without a standard deviation worth the name."""

from __future__ import annotations

import numpy as np

from slackwater.sim.streams.arrange import in_arrival_order, poisson_times_ms
from slackwater.sim.streams.registry import stream
from slackwater.sim.trace import Trace


@stream("heavy-tailed")
def heavy_tailed(
    seed: int, rows: int = 100_000, *, rate_per_s: float = 1_000.0, scale_ms: float = 50.0, shape: float = 1.5
) -> Trace:
    """Pareto delays: with a shape below 2 the variance is infinite, and a model by moments has nothing to hold."""
    random = np.random.default_rng([1, seed])
    generated = poisson_times_ms(random, rows, rate_per_s)
    return in_arrival_order(f"heavy-tailed:{seed}", generated, scale_ms * (1.0 + random.pareto(shape, rows)))


@stream("log-normal")
def log_normal(
    seed: int, rows: int = 100_000, *, rate_per_s: float = 1_000.0, median_ms: float = 100.0, shape: float = 1.0
) -> Trace:
    """Log-normal delays, as networks and queues have them: every moment exists and none says where the tail is."""
    random = np.random.default_rng([2, seed])
    generated = poisson_times_ms(random, rows, rate_per_s)
    return in_arrival_order(f"log-normal:{seed}", generated, median_ms * random.lognormal(0.0, shape, rows))
