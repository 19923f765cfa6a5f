"""The stream of Kim, Kim and Kim (2007), §6: twenty sensors with one row per second each."""

from __future__ import annotations

import numpy as np

from slackwater.sim.streams.arrange import in_arrival_order
from slackwater.sim.streams.registry import stream
from slackwater.sim.trace import Trace

SENSORS = 20
PERIOD_MS = 1_000.0


@stream("kim2007")
def kim2007(seed: int, rows: int = 20_000, *, mean_ms: float = 500.0, sd_ms: float = 200.0) -> Trace:
    """Twenty sensors that report once per second, each at its own phase, with normal delays (Kim 2007, Eq. (3)).

    The paper took its delays from TinyDB and does not give their parameters. Negative delays are set to 0, because a
    radio cannot deliver a row before it is sent.
    """
    random = np.random.default_rng([2007, seed])
    turns = -(-rows // SENSORS)
    phases = random.uniform(0.0, PERIOD_MS, SENSORS)
    generated = (np.arange(turns)[:, None] * PERIOD_MS + phases[None, :]).ravel()[:rows]
    sensors = np.tile(np.arange(SENSORS, dtype=np.int64), turns)[:rows]
    delays = np.maximum(random.normal(mean_ms, sd_ms, rows), 0.0)
    return in_arrival_order(f"kim2007:{seed}", generated, delays, sensors)
