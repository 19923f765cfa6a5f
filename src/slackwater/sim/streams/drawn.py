"""Streams whose properties are drawn from the seed, for choosing constants apart from the streams of the figures."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from slackwater.sim.streams.arrange import in_arrival_order, poisson_times_ms
from slackwater.sim.streams.registry import stream
from slackwater.sim.trace import Trace

Floats = NDArray[np.float64]


@stream("drawn")
def drawn(seed: int, rows: int = 40_000) -> Trace:
    """Draws the rate, the distribution of delays, its course over time and a common delay that keeps the order.

    Typical delays are 20 ms to 20 s, and the stream lasts 200 to 5 000 of them. Some streams have sources, some have
    pauses.
    """
    random = np.random.default_rng([11, seed])
    scale_ms = _log_uniform(random, 20.0, 20_000.0)
    generated = poisson_times_ms(random, rows, 1e3 * rows / (scale_ms * _log_uniform(random, 200.0, 5_000.0)))
    if random.random() < 0.3:
        generated = _with_pauses(random, generated)
    position = (generated - generated[0]) / (generated[-1] - generated[0])
    delays = scale_ms * _shape(random, rows) * _course(random, position)
    sources = None
    if random.random() < 0.25:
        count = int(random.integers(3, 60))
        sources = random.choice(count, rows, p=random.dirichlet(np.full(count, 2.0))).astype(np.int64)
        delays = delays * random.lognormal(0.0, random.uniform(0.2, 1.0), count)[sources]
    delays = delays + _common(random, generated, position, scale_ms)
    return in_arrival_order(f"drawn:{seed}", generated, delays, sources)


def _log_uniform(random: np.random.Generator, low: float, high: float) -> float:
    return float(np.exp(random.uniform(np.log(low), np.log(high))))


def _with_pauses(random: np.random.Generator, generated: Floats) -> Floats:
    """The same rows with one to five pauses of up to a twentieth of the stream each."""
    paused = generated.copy()
    for _ in range(int(random.integers(1, 6))):
        begin = random.uniform(0.05, 0.95) * generated[-1]
        paused[generated > begin] += random.uniform(0.002, 0.05) * generated[-1]
    return paused


def _shape(random: np.random.Generator, rows: int) -> Floats:
    """Delays of about 1 from one of five distributions."""
    kind = int(random.integers(5))
    if kind == 0:
        return random.lognormal(0.0, random.uniform(0.3, 1.5), rows)
    if kind == 1:
        shape = random.uniform(0.5, 5.0)
        return random.gamma(shape, 1.0 / shape, rows)
    if kind == 2:
        return 0.5 * (1.0 + random.pareto(random.uniform(1.2, 3.0), rows))
    if kind == 3:
        return random.weibull(random.uniform(0.5, 2.0), rows)
    slow = random.random(rows) < _log_uniform(random, 0.002, 0.2)
    return random.lognormal(0.0, 0.4, rows) * np.where(slow, random.uniform(3.0, 30.0), 1.0)


def _course(random: np.random.Generator, position: Floats) -> Floats:
    """The factor on the delays over the stream: constant, in steps, in waves, or in short bursts."""
    kind, factor = int(random.integers(4)), random.uniform(1.5, 10.0)
    if kind == 0:
        return np.ones(len(position))
    if kind == 1:
        levels = np.exp(random.uniform(0.0, np.log(factor), int(random.integers(2, 9))))
        return np.asarray(levels[np.minimum((position * len(levels)).astype(int), len(levels) - 1)])
    if kind == 2:
        return np.asarray(factor ** (0.5 - 0.5 * np.cos(2.0 * np.pi * position * random.uniform(0.5, 6.0))))
    course = np.ones(len(position))
    for begin in random.uniform(0.0, 1.0, int(random.integers(2, 12))):
        course[(position >= begin) & (position < begin + random.uniform(0.005, 0.03))] = factor
    return course


def _common(random: np.random.Generator, generated: Floats, position: Floats, scale_ms: float) -> Floats:
    """A delay that all rows share, so that they keep their order: none, a drift, a queue, or stalls."""
    kind = int(random.integers(4))
    if kind == 0:
        return np.zeros(len(generated))
    if kind == 1:
        ends = random.uniform(0.0, 10.0 * scale_ms, int(random.integers(2, 6)))
        return np.interp(position, np.linspace(0.0, 1.0, len(ends)), ends)
    if kind == 2:  # Lindley: a first-come first-served queue at 90 % load
        service = random.exponential(0.9 * generated[-1] / len(generated), len(generated))
        work_before = np.cumsum(service) - service
        return np.asarray(np.cumsum(service) + np.maximum.accumulate(generated - work_before) - generated)
    passed = generated.copy()
    for begin in random.uniform(0.05, 0.9, int(random.integers(1, 5))) * generated[-1]:
        resume = begin + random.uniform(0.5, 5.0) * scale_ms
        passed[(passed >= begin) & (passed < resume)] = resume
    return passed - generated
