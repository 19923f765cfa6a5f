"""Bursts that form a queue, so that lateness grows with the load."""

from __future__ import annotations

import numpy as np

from slackwater.sim.streams.arrange import in_arrival_order
from slackwater.sim.streams.registry import stream
from slackwater.sim.trace import Trace


@stream("bursty")
def bursty(
    seed: int,
    rows: int = 100_000,
    *,
    quiet_per_s: float = 300.0,
    burst_per_s: float = 3_000.0,
    served_per_s: float = 1_500.0,
    burst_share: float = 0.5,
    phase_rows: int = 2_000,
    jitter_ms: float = 100.0,
) -> Trace:
    """Quiet and burst phases feed a first-come first-served queue; an exponential jitter is added behind it.

    A burst exceeds the capacity of the server, so lateness climbs to one or two seconds and falls back afterwards.
    """
    random = np.random.default_rng([5, seed])
    phases = -(-rows // phase_rows)
    burst = np.repeat(random.random(phases) < burst_share, phase_rows)[:rows]
    generated = np.cumsum(random.exponential(1e3 / np.where(burst, burst_per_s, quiet_per_s)))
    service = random.exponential(1e3 / served_per_s, rows)
    # Lindley: the departure times of a first-come first-served queue, without a loop.
    work_before = np.cumsum(service) - service
    departures = np.cumsum(service) + np.maximum.accumulate(generated - work_before)
    delays = departures - generated + random.exponential(jitter_ms, rows)
    return in_arrival_order(f"bursty:{seed}", generated, delays)
