"""A pipeline that stalls and then delivers its backlog. Its silence does not mean that it is idle."""

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
    """No row arrives during a stall. Afterwards the backlog arrives in order at ``drained_per_s``, with jitter."""
    random = np.random.default_rng([7, seed])
    generated = poisson_times_ms(random, rows, rate_per_s)
    begins = (np.arange(stalls) + random.uniform(0.2, 0.5, stalls)) / stalls * generated[-1]
    resumes = begins + stall_ms
    passed = generated.copy()
    for begin, resume in zip(begins, resumes, strict=True):
        stalled_rows = (passed >= begin) & (passed < resume)
        passed[stalled_rows] = resume
    service = np.full(rows, 1e3 / drained_per_s)
    departures = np.cumsum(service) + np.maximum.accumulate(passed - np.cumsum(service) + service)
    delays = departures - generated + random.exponential(jitter_ms, rows)
    return in_arrival_order(f"stalled:{seed}", generated, delays)
