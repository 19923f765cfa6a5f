"""Builds a trace from generation times and delays."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from slackwater.sim.trace import Trace

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


def poisson_times_ms(random: np.random.Generator, rows: int, rate_per_s: float) -> Floats:
    """The generation times of ``rows`` rows of a Poisson process that starts at time 0."""
    return np.cumsum(random.exponential(1e3 / rate_per_s, rows))


def in_arrival_order(name: str, generated_ms: Floats, delays_ms: Floats, sources: Ints | None = None) -> Trace:
    """The trace in which each row arrives its delay after its generation. Ties keep their order."""
    arrivals = generated_ms + delays_ms
    order = np.argsort(arrivals, kind="stable")
    return Trace(name, generated_ms[order], arrivals[order], None if sources is None else sources[order])
