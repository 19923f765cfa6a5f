"""From generation times and delays to a trace in arrival order."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from slackwater.sim.trace import Trace

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


def poisson_times_ms(random: np.random.Generator, rows: int, rate_per_s: float) -> Floats:
    """When so many rows of a Poisson process are generated, from time 0 on."""
    return np.cumsum(random.exponential(1e3 / rate_per_s, rows))


def in_arrival_order(name: str, generated_ms: Floats, delays_ms: Floats, sources: Ints | None = None) -> Trace:
    """The trace that a processor sees: each row arrives its delay after it was generated; ties keep their order."""
    arrivals = generated_ms + delays_ms
    order = np.argsort(arrivals, kind="stable")
    return Trace(name, generated_ms[order], arrivals[order], None if sources is None else sources[order])
