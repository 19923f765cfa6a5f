"""Processing costs of a row, one value per second."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def constant_cost(seconds: int, cost_s: float) -> Floats:
    """A constant cost."""
    return np.full(seconds, float(cost_s))


def eventful_cost(rng: np.random.Generator, seconds: int = 400, cost_s: float = 0.00526) -> Floats:
    """A cost with the events of Tu 2006, Fig. 14, and small Pareto noise.

    There is a small peak at 50 s, a large peak that jumps up at 125 s and decays, and a plateau that rises slowly from
    230 s to 250 s and drops at once at 350 s. The paper does not give the heights; 2, 4 and 2.5 times the base cost are
    our choice.
    """
    time = np.arange(seconds, dtype=np.float64)
    factor = 1.0 + 0.05 * np.minimum(rng.pareto(2.0, seconds), 4.0)
    factor += 1.0 * np.exp(-(((time - 50.0) / 4.0) ** 2))
    factor += np.where(time >= 125, 3.0 * np.exp(-(time - 125.0) / 10.0), 0.0)
    factor += np.where(time < 350, 1.5 * np.clip((time - 230.0) / 20.0, 0.0, 1.0), 0.0)
    return np.asarray(cost_s * factor / factor[0], dtype=np.float64)
