"""Generated inputs: arrival rates per second, and arrival times from rates."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq

Floats = NDArray[np.float64]


def step_rates(seconds: int, low_per_s: float, high_per_s: float, at_s: int = 10) -> Floats:
    """A low rate that jumps to a high rate at ``at_s`` (Tu 2006, Fig. 5A)."""
    rates = np.full(seconds, float(low_per_s))
    rates[at_s:] = high_per_s
    return rates


def sinusoid_rates(seconds: int, low_per_s: float = 0.0, high_per_s: float = 400.0, wave_s: float = 50.0) -> Floats:
    """A sinusoidal rate between two values (Tu 2006, Fig. 7)."""
    middle, swing = (high_per_s + low_per_s) / 2, (high_per_s - low_per_s) / 2
    return np.asarray(middle + swing * np.sin(2 * np.pi * np.arange(seconds) / wave_s), dtype=np.float64)


def pareto_rates(
    rng: np.random.Generator,
    seconds: int,
    mean_per_s: float,
    beta: float = 1.0,
    peak_per_s: float = 800.0,
    burst_s: int = 4,
) -> Floats:
    """Rates from a bounded Pareto distribution of shape ``beta``, redrawn every ``burst_s`` seconds.

    A smaller ``beta`` means stronger bursts. The lower bound is chosen so that all shapes have the same peak and mean.
    The paper draws one rate per period and states that bursts last four to five seconds.
    """
    if not 0 < mean_per_s < peak_per_s:
        raise ValueError(f"the mean {mean_per_s} must lie between 0 and the peak {peak_per_s}")
    # the mean depends on the lower bound over many orders of magnitude, so the root is searched in logarithms
    low = np.exp(
        brentq(
            lambda log_low: _bounded_pareto_mean(float(np.exp(log_low)), peak_per_s, beta) - mean_per_s,
            np.log(peak_per_s) - 60.0,
            np.log(peak_per_s) - 1e-9,
        )
    )
    uniform = rng.random(-(-seconds // burst_s))
    share = 1.0 - uniform * (1.0 - (low / peak_per_s) ** beta)
    draws = low * share ** (-1.0 / beta)
    draws *= mean_per_s / draws.mean()
    return np.asarray(np.repeat(draws, burst_s)[:seconds], dtype=np.float64)


def _bounded_pareto_mean(low: float, high: float, beta: float) -> float:
    ratio = low / high
    if abs(beta - 1.0) < 1e-9:
        return float(low * np.log(high / low) / (1.0 - ratio))
    return float(beta / (beta - 1.0) * low * (1.0 - ratio ** (beta - 1.0)) / (1.0 - ratio**beta))


def web_rates(
    rng: np.random.Generator, seconds: int, mean_per_s: float, sources: int = 12, shape: float = 1.4
) -> Floats:
    """Web-like traffic: the sum of sources that are on and off for Pareto-distributed times.

    It replaces the packet trace of the paper. It has bursts on every time scale, milder than the Pareto input.
    """
    total = np.zeros(seconds)
    for _ in range(sources):
        now = -float(rng.uniform(0, 60))
        on = bool(rng.random() < 0.5)
        while now < seconds:
            length = (1.0 + rng.pareto(shape)) * 3.0
            if on:
                edges = np.clip(np.array([now, now + length]), 0, seconds)
                first, last = int(edges[0]), int(np.ceil(edges[1]))
                for second in range(first, last):
                    total[second] += max(min(second + 1, edges[1]) - max(second, edges[0]), 0.0)
            on = not on
            now += length
    return np.asarray(total * (mean_per_s / total.mean()), dtype=np.float64)


def rows_from_rates(rates: Floats, rng: np.random.Generator | None = None) -> Floats:
    """Arrival times in seconds. The rows of a second are evenly spread, or random if ``rng`` is given.

    >>> rows_from_rates(np.array([2.0, 0.5, 0.5]))
    array([0. , 0.5, 2. ])
    """
    if rng is None:
        # the fraction of a row that remains after a second is carried over to the next
        edges = np.floor(np.concatenate([[0.0], np.cumsum(rates)]) + 1e-9)
        counts = np.diff(edges).astype(np.int64)
        starts = np.repeat(np.arange(len(rates), dtype=np.float64), counts)
        within = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
        return np.asarray(starts + within / np.repeat(counts, counts), dtype=np.float64)
    counts = rng.poisson(rates)
    return np.sort(np.repeat(np.arange(len(rates), dtype=np.float64), counts) + rng.random(int(counts.sum())))
