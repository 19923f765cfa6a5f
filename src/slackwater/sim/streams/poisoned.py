"""Wrong clocks: some rows have timestamps years ahead or years behind."""

from __future__ import annotations

import numpy as np

from slackwater.sim.streams.arrange import poisson_times_ms
from slackwater.sim.streams.registry import stream
from slackwater.sim.trace import Trace
from slackwater.units import DAY_MS

YEAR_MS = 365.25 * DAY_MS


@stream("poisoned")
def poisoned(
    seed: int,
    rows: int = 100_000,
    *,
    rate_per_s: float = 1_000.0,
    mean_ms: float = 200.0,
    future_ratio: float = 0.0005,
    past_ratio: float = 0.0002,
) -> Trace:
    """Gamma delays, with a few rows whose clock is years ahead or years behind.

    Rows from the past are late under every reasonable wait, so ``past_ratio`` has to be below the promised drop ratio.
    """
    random = np.random.default_rng([8, seed])
    generated = poisson_times_ms(random, rows, rate_per_s) + 50.0 * YEAR_MS
    arrivals = generated + random.gamma(2.0, mean_ms / 2.0, rows)
    draw = random.random(rows)
    years = random.uniform(1.0, 40.0, rows) * YEAR_MS
    stamped = np.where(draw < future_ratio, generated + years, generated)
    stamped = np.where(draw > 1.0 - past_ratio, generated - years, stamped)
    order = np.argsort(arrivals, kind="stable")
    return Trace(f"poisoned:{seed}", stamped[order], arrivals[order])
