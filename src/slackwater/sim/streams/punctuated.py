"""A source that sends punctuations over a network that reorders rows."""

from __future__ import annotations

import numpy as np

from slackwater.sim.streams.arrange import poisson_times_ms
from slackwater.sim.streams.registry import stream
from slackwater.sim.trace import Trace


@stream("punctuated")
def punctuated(
    seed: int,
    rows: int = 100_000,
    *,
    rate_per_s: float = 1_000.0,
    mean_ms: float = 100.0,
    behind_ms: float = 500.0,
    one_in: int = 50,
) -> Trace:
    """Gamma delays; one row in ``one_in`` carries a punctuation that is ``behind_ms`` below its own time.

    A punctuation covers the rows that the source has sent, including those still in the network. So a few rows arrive
    after a punctuation that is above them.
    """
    random = np.random.default_rng([10, seed])
    generated = poisson_times_ms(random, rows, rate_per_s)
    arrivals = generated + random.gamma(2.0, mean_ms / 2.0, rows)
    punctuations = np.where(np.arange(rows) % one_in == 0, generated - behind_ms, np.nan)
    order = np.argsort(arrivals, kind="stable")
    return Trace(f"punctuated:{seed}", generated[order], arrivals[order], None, punctuations[order])
