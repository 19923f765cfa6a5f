"""The papers' methods against slow, literal implementations, row by row."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import norm

from slackwater.control.disorder import Batch, make_method
from slackwater.control.disorder.support.normal_model import rows_to_hold
from slackwater.control.disorder.support.row_method import RowMethod
from slackwater.promises import Completeness
from slackwater.sim.per_row import run_per_row
from slackwater.sim.streams.kim2012 import kim2012_changing
from slackwater.sim.trace import Trace


def trail(name: str, trace: Trace, drop_ratio: float, **options: object) -> list[float]:
    method = make_method(name, Completeness(drop_ratio), **options)
    assert isinstance(method, RowMethod)
    return [float(heartbeat) for heartbeat in method.trail(trace.values, trace.arrivals)]


TRACE = kim2012_changing(5, 3_000, rate_per_s=2_000.0)
assert TRACE.arrivals is not None
ARRIVALS = TRACE.arrivals


@pytest.mark.parametrize("interval", [1, 10, 100])
def test_adaptive_max_delay_matches_the_paper(interval: int) -> None:
    m, expected = -math.inf, []
    after: list[float] = []
    for value, arrival in zip(TRACE.values, ARRIVALS, strict=True):
        delay = arrival - value
        if delay > m:
            m, after = delay, []
        else:
            after.append(delay)
            if len(after) == interval:
                m, after = (m + max(after)) / 2, []
        expected.append(arrival - m)
    assert trail("adaptive-max-delay", TRACE, 0.01, interval_rows=interval) == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("slack_rows", [0, 1, 50])
def test_fixed_slack_is_the_nth_largest_value(slack_rows: int) -> None:
    expected = []
    for k in range(1, 401):
        seen = np.sort(TRACE.values[:k])[::-1]
        expected.append(seen[slack_rows] if k > slack_rows else -math.inf)
    assert trail("fixed-slack", TRACE, 0.01, slack_rows=slack_rows)[:400] == expected


@pytest.mark.parametrize("drop_ratio", [0.15, 0.01])
def test_vseq_matches_the_paper(drop_ratio: float) -> None:
    c = norm.isf(drop_ratio) ** 2
    vseq: list[tuple[float, float]] = []
    size, punctuation, expected = 30, -math.inf, []
    for value, arrival in zip(TRACE.values, ARRIVALS, strict=True):
        vseq = [*vseq, (arrival, arrival - value)][-size:]
        if len(vseq) == size:
            delays = np.array([delay for _, delay in vseq])
            theta = (vseq[-1][0] - vseq[0][0]) / size
            n = 30
            while (n + 1) ** 2 - c * (n + 1) - 2 * c * delays.var() / theta**2 < 0:  # Kim 2007, Eq. (7)
                n += 1
            punctuation = arrival - delays.mean() - n * theta
            size = n
            vseq = vseq[-size:]
        expected.append(punctuation)
    assert trail("vseq", TRACE, drop_ratio) == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("theta", ["times", "over"])
def test_ad_hoc_matches_the_paper(theta: str) -> None:
    z = norm.isf(0.05)
    vseq: list[tuple[float, float]] = []
    size, punctuation, expected = 30, -math.inf, []
    for value, arrival in zip(TRACE.values, ARRIVALS, strict=True):
        vseq = [*vseq, (arrival, value)][-size:]
        if len(vseq) == size:
            stamps = np.array([stamp for _, stamp in vseq])
            step = (vseq[-1][0] - vseq[0][0]) / size
            sd = stamps.std()
            punctuation = stamps.mean() - sd + sd * 0.05 * 2
            size = int(30 + (sd / 1e3 * z * step / 1e3 if theta == "times" else sd * z / step))
            vseq = vseq[-size:]
        expected.append(punctuation)
    assert trail("ad-hoc", TRACE, 0.05, theta=theta) == pytest.approx(expected, abs=1e-6)


def test_normal_matches_the_paper() -> None:
    """Algorithm 1 with a list as buffer; P_e = 200, P_s = 4, M = 50, first estimate after 30 samples."""
    z = norm.isf(0.01)
    buffer: list[float] = []
    sample: list[tuple[float, float, int]] = []
    size, earliest, expected, estimated = math.inf, -math.inf, [], False
    for c, (t, u) in enumerate(zip(TRACE.values.tolist(), ARRIVALS.tolist(), strict=True)):
        if c % 4 == 0:
            sample = [*sample, (u - t, u, c)][-50:]
        if (c and c % 200 == 0) or (len(sample) == 30 and not estimated):
            sd = np.std([delay for delay, _, _ in sample])
            theta = (u - sample[0][1]) / (c - sample[0][2])
            size = max(math.ceil(rows_to_hold(z, float(sd), theta)), 30)
            estimated = True
            buffer = sorted(buffer)[-size:]
            earliest = buffer[0]
        if t > earliest:
            buffer = sorted([*buffer, t])
            if len(buffer) > size:
                buffer = buffer[1:]
                earliest = buffer[0]
        expected.append(earliest)
    options = {"estimate_every": 200, "sample_every": 4, "samples": 50, "equation": 11}
    assert trail("normal", TRACE, 0.01, **options) == expected


def test_mean_distance_matches_the_paper() -> None:
    expected, distance = [], 0.0
    for k in range(1, 501):
        mean = TRACE.values[max(0, k - 20) : k].mean()
        distance = max(distance, abs(TRACE.values[k - 1] - mean))
        expected.append(mean - distance)
    assert trail("mean-distance", TRACE, 0.0, window_rows=20)[:500] == pytest.approx(expected, abs=1e-6)


def test_mean_distance_offset_shortens_the_wait() -> None:
    trace = kim2012_changing(5, 60_000, rate_per_s=2_000.0)
    without_offset = make_method("mean-distance", Completeness(0.0))
    with_offset = make_method("mean-distance", Completeness(0.05))
    assert isinstance(without_offset, RowMethod)
    assert isinstance(with_offset, RowMethod)
    assert run_per_row(trace, with_offset).mean_wait < run_per_row(trace, without_offset).mean_wait


def test_normal_falls_back_to_adaptive_max_delay_at_small_ratios() -> None:
    fallen = trail("normal", TRACE, 0.001)
    assert fallen == trail("adaptive-max-delay", TRACE, 0.001)
    assert fallen != trail("normal", TRACE, 0.001, fallback=False)
    assert trail("normal", TRACE, 0.005) == trail("normal", TRACE, 0.005, fallback=False)


def test_normal_with_a_reservoir_is_reproducible() -> None:
    options = {"estimate_every": 200, "sample_every": 4, "samples": 50}
    trace = kim2012_changing(5, 5_000)
    one = trail("normal", trace, 0.01, reservoir=True, seed=1, **options)
    assert one == trail("normal", trace, 0.01, reservoir=True, seed=1, **options)
    assert one != trail("normal", trace, 0.01, **options)


def test_source_heartbeat_delays_punctuations() -> None:
    method = make_method("source-heartbeat", Completeness(0.01), hold_ms=50.0)
    method.observe(Batch(np.array([90.0]), punctuations=np.array([80.0]), clock=100.0))
    assert method.heartbeat(149.0) == -math.inf
    assert method.heartbeat(150.0) == 80.0
    method.observe(Batch(np.array([95.0]), punctuations=np.array([70.0, 9e15]), clock=160.0))
    assert method.heartbeat(300.0) == 160.0  # a punctuation from the future counts up to its arrival
