"""Bursts that queue: when many rows come at once, they wait for one another."""

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
    """Quiet and burst phases into a first-come first-served queue; what leaves it then suffers an exponential jitter.

    A burst outruns the server, so lateness climbs to a second or two in its course and falls back in the quiet.
    """
    random = np.random.default_rng([5, seed])
    phases = -(-rows // phase_rows)
    burst = np.repeat(random.random(phases) < burst_share, phase_rows)[:rows]
    generated = np.cumsum(random.exponential(1e3 / np.where(burst, burst_per_s, quiet_per_s)))
    service = random.exponential(1e3 / served_per_s, rows)
    # Lindley: the queue is empty again wherever the work done has caught up with the work brought.
    brought = np.cumsum(service) - service
    left = np.cumsum(service) + np.maximum.accumulate(generated - brought)
    delays = left - generated + random.exponential(jitter_ms, rows)
    return in_arrival_order(f"bursty:{seed}", generated, delays)
