"""A pipeline that stands still and then delivers its backlog: silence that is not idleness."""

from __future__ import annotations

import numpy as np

from slackwater.sim.streams.arrange import in_arrival_order, poisson_times_ms
from slackwater.sim.streams.registry import stream
from slackwater.sim.trace import Trace


@stream("stalled")
def stalled(
    seed: int,
    rows: int = 100_000,
    *,
    rate_per_s: float = 1_000.0,
    jitter_ms: float = 50.0,
    stalls: int = 4,
    stall_ms: float = 5_000.0,
    drained_per_s: float = 5_000.0,
) -> Trace:
    """Nothing arrives during a stall; afterwards the backlog comes in order, as fast as it drains, still jittered."""
    random = np.random.default_rng([7, seed])
    generated = poisson_times_ms(random, rows, rate_per_s)
    begins = (np.arange(stalls) + random.uniform(0.2, 0.5, stalls)) / stalls * generated[-1]
    resumes = begins + stall_ms
    passed = generated.copy()
    for begin, resume in zip(begins, resumes, strict=True):
        held = (passed >= begin) & (passed < resume)
        passed[held] = resume
    service = np.full(rows, 1e3 / drained_per_s)
    left = np.cumsum(service) + np.maximum.accumulate(passed - np.cumsum(service) + service)
    delays = left - generated + random.exponential(jitter_ms, rows)
    return in_arrival_order(f"stalled:{seed}", generated, delays)
