"""Sources with different delays and rates."""

from __future__ import annotations

import numpy as np

from slackwater.sim.streams.arrange import in_arrival_order, poisson_times_ms
from slackwater.sim.streams.registry import stream
from slackwater.sim.trace import Trace


@stream("multi-source")
def multi_source(
    seed: int,
    rows: int = 100_000,
    *,
    rate_per_s: float = 1_000.0,
    count: int = 40,
    typical_ms: float = 200.0,
    jitter_ms: float = 50.0,
) -> Trace:
    """Each source has its own delay (log-normal across sources) and rate; the jitter is exponential."""
    random = np.random.default_rng([6, seed])
    generated = poisson_times_ms(random, rows, rate_per_s)
    shares = random.dirichlet(np.full(count, 2.0))
    sources = random.choice(count, rows, p=shares).astype(np.int64)
    own = typical_ms * random.lognormal(0.0, 1.0, count)
    delays = own[sources] + random.exponential(jitter_ms, rows)
    return in_arrival_order(f"multi-source:{seed}", generated, delays, sources)
