"""The streams of Kim, Kim and Kim (2012), §3.1 and §4: Poisson generation and normal delays in milliseconds."""

from __future__ import annotations

import numpy as np

from slackwater.sim.streams.arrange import in_arrival_order, poisson_times_ms
from slackwater.sim.streams.registry import stream
from slackwater.sim.trace import Trace

RATE_PER_S = 10_000.0  # Kim 2012, §4
MAX_MEAN_MS = 6.0
MAX_SD_MS = 5.0


@stream("kim2012-constant")
def kim2012_constant(
    seed: int, rows: int = 100_000, *, rate_per_s: float = RATE_PER_S, mean_ms: float = 3.0, sd_ms: float = 3.0
) -> Trace:
    """A stream with constant parameters (Kim 2012, Eq. (1), (2)).

    Normal delays can be negative and are kept. Rows are in the order of their arrivals.

    >>> kim2012_constant(0, 1000).rows
    1000
    """
    random = np.random.default_rng([2012, 1, seed])
    generated = poisson_times_ms(random, rows, rate_per_s)  # Kim 2012, Eq. (1)
    delays = random.normal(mean_ms, sd_ms, rows)  # Kim 2012, Eq. (2)
    return in_arrival_order(f"kim2012-constant:{seed}", generated, delays)


@stream("kim2012-changing")
def kim2012_changing(
    seed: int,
    rows: int = 100_000,
    *,
    rate_per_s: float = RATE_PER_S,
    every_s: float = 1.0,
    max_mean_ms: float = MAX_MEAN_MS,
    max_sd_ms: float = MAX_SD_MS,
) -> Trace:
    """A stream whose μ and σ are redrawn uniformly every ``every_s`` of generation time (Kim 2012, §4: 1, 3 or 5)."""
    random = np.random.default_rng([2012, 2, seed])
    generated = poisson_times_ms(random, rows, rate_per_s)
    regime = (generated / (every_s * 1e3)).astype(np.int64)
    means = random.uniform(0.0, max_mean_ms, int(regime[-1]) + 1)
    sds = random.uniform(0.0, max_sd_ms, int(regime[-1]) + 1)
    delays = means[regime] + sds[regime] * random.standard_normal(rows)
    return in_arrival_order(f"kim2012-changing:{seed}", generated, delays)
