"""Arrivals made to order: rates second by second, and rows from rates."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq

Floats = NDArray[np.float64]


def step_rates(seconds: int, low_per_s: float, high_per_s: float, at_s: int = 10) -> Floats:
    """A low rate that jumps to a high one (Tu 2006, Fig. 5A)."""
    rates = np.full(seconds, float(low_per_s))
    rates[at_s:] = high_per_s
    return rates


def sinusoid_rates(seconds: int, low_per_s: float = 0.0, high_per_s: float = 400.0, wave_s: float = 50.0) -> Floats:
    """A rate that swings between two values (Tu 2006, Fig. 7)."""
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
    """Rates of a bounded Pareto distribution of shape ``beta``, a new one every ``burst_s`` seconds.

    All shapes have the same peak and the same mean: the lower bound is solved for. The smaller ``beta``, the more
    bursty. The paper draws a rate a period and says that its bursts last four to five seconds.
    """
    if not 0 < mean_per_s < peak_per_s:
        raise ValueError(f"the mean {mean_per_s} must lie between 0 and the peak {peak_per_s}")
    # towards a lower bound of zero the mean tends to beta/(1 - beta)·peak·… or to zero: bracket wide, in logarithms
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
    """Web-like traffic: many sources that are on and off for Pareto-distributed times, summed.

    Stands in for the paper's packet trace: bursts on every scale of time, milder than the Pareto input.
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
    """Arrival times in seconds: each second's rows evenly spread, or at random with a generator.

    >>> rows_from_rates(np.array([2.0, 0.5, 0.5]))
    array([0. , 0.5, 2. ])
    """
    if rng is None:
        # what a second leaves over goes to the next, so that the total is right
        edges = np.floor(np.concatenate([[0.0], np.cumsum(rates)]) + 1e-9)
        counts = np.diff(edges).astype(np.int64)
        starts = np.repeat(np.arange(len(rates), dtype=np.float64), counts)
        within = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
        return np.asarray(starts + within / np.repeat(counts, counts), dtype=np.float64)
    counts = rng.poisson(rates)
    return np.sort(np.repeat(np.arange(len(rates), dtype=np.float64), counts) + rng.random(int(counts.sum())))
