"""Synthetic streams: drifting Brownian motion, the model behind the precision promise."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from slackwater.sim.ticks import TickTable


def brownian_streams(
    streams: int,
    ticks: int,
    *,
    drift: float = 0.0,
    diffusion: float = 1.0,
    start: float = 1000.0,
    correlation: float = 0.0,
    degrees_of_freedom: float = np.inf,
    period_ms: float = 60_000.0,
    seed: int = 0,
) -> TickTable:
    """Streams whose increments per tick have mean ``drift`` and standard deviation ``diffusion``.

    Two options go beyond the model: ``correlation`` between any two streams, and finite ``degrees_of_freedom``, which
    give the increments the heavy tails of Student's t with the same variance.

    >>> brownian_streams(3, 5).values.shape
    (5, 3)
    """
    draw = np.random.default_rng(seed)
    noise = _noise(draw, (ticks, streams), degrees_of_freedom)
    if correlation > 0.0:
        shared = _noise(draw, (ticks, 1), degrees_of_freedom)
        noise = np.sqrt(correlation) * shared + np.sqrt(1.0 - correlation) * noise
    values = np.asarray(start + np.cumsum(drift + diffusion * noise, axis=0), dtype=np.float64)
    return TickTable(
        np.arange(ticks, dtype=np.float64) * period_ms, values, [f"s{number}" for number in range(streams)]
    )


def _noise(draw: np.random.Generator, shape: tuple[int, int], degrees_of_freedom: float) -> NDArray[np.float64]:
    if np.isinf(degrees_of_freedom):
        return draw.standard_normal(shape)
    spread = np.sqrt(degrees_of_freedom / (degrees_of_freedom - 2.0))
    return np.asarray(draw.standard_t(degrees_of_freedom, shape) / spread, dtype=np.float64)
