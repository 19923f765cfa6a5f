"""What the paper leaves open or proves: μ and σ in seconds, and the distribution of arrivals of its appendix."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from scipy import stats

from slackwater.papers.kim2012.figures import DROP_RATIOS, NORMAL, PERIODS_S, ROWS, SDS_MS, SEED
from slackwater.papers.reproduction import Claim, Report
from slackwater.papers.runs import outcome_of
from slackwater.sim.streams.arrange import poisson_times_ms
from slackwater.sim.streams.kim2012 import MAX_MEAN_MS, MAX_SD_MS, RATE_PER_S, kim2012_changing, kim2012_constant
from slackwater.units import SECOND_MS, percent

_SAMPLE = 20_000


def in_seconds(folder: Path, report: Report, rows: int = ROWS) -> list[Claim]:
    """Figures 6 and 7 with μ and σ in seconds: delays a thousand times as long at the same rate."""
    constant = [kim2012_constant(SEED, rows, mean_ms=3.0 * SECOND_MS, sd_ms=sd * SECOND_MS) for sd in SDS_MS]
    most = {"max_mean_ms": MAX_MEAN_MS * SECOND_MS, "max_sd_ms": MAX_SD_MS * SECOND_MS}
    changing = [kim2012_changing(SEED, rows, every_s=period, **most) for period in PERIODS_S]
    traces = [*constant, *changing]
    drops: dict[float, list[float]] = {}
    for number, ratio in enumerate(DROP_RATIOS):
        report(number / (len(DROP_RATIOS) + 1), f"D = {percent(ratio)}, in seconds")
        normal = [outcome_of(trace, "normal", ratio, **NORMAL) for trace in traces]
        drops[ratio] = [run.drop_ratio for run in normal]
    report(len(DROP_RATIOS) / (len(DROP_RATIOS) + 1), "the adaptive method, in seconds")
    interval = int(RATE_PER_S)
    adaptive = [outcome_of(trace, "adaptive-max-delay", 0.001, interval_rows=interval) for trace in traces]
    count = len(constant)
    excess = [
        ours.mean_buffer_rows / other.mean_buffer_rows - 1.0 for ours, other in zip(normal, adaptive, strict=True)
    ]
    worst = ", ".join(f"{percent(ratio)}: at most {percent(max(drops[ratio][:count]))}" for ratio in DROP_RATIOS)
    each = "; ".join(
        f"{percent(ratio)}: {', '.join(percent(x) for x in drops[ratio][count:])}" for ratio in DROP_RATIOS
    )
    return [
        Claim(
            "6a, seconds",
            "constant streams: no case violates a given drop ratio",
            worst,
            all(max(drops[ratio][:count]) <= ratio for ratio in DROP_RATIOS),
        ),
        Claim(
            "6b, seconds",
            "changing streams: 1% and 0.5% are kept",
            f"every 1, 3, 5 s: {each}",
            all(max(drops[ratio][count:]) <= ratio for ratio in (0.01, 0.005)),
        ),
        Claim(
            "7b, seconds",
            "changing streams: the adaptive method's buffer is smaller, by up to 15 %",
            "the normal model's against the adaptive one's, every 1, 3, 5 s, W = λ: "
            + ", ".join(f"{100 * change:+.0f} %" for change in excess[count:]),
            min(excess[count:]) > 0.0,
            f"drops of the adaptive one: {', '.join(percent(run.drop_ratio) for run in adaptive[count:])}",
        ),
    ]


def appendix(folder: Path, report: Report, rows: int = ROWS) -> list[Claim]:
    """Arrivals of a Poisson stream after independent delays of any distribution are a Poisson stream."""
    random = np.random.default_rng([2012, 3, SEED])
    generated = poisson_times_ms(random, rows, RATE_PER_S)
    delays = {
        "normal": random.normal(3.0, 3.0, rows),
        "exponential": random.exponential(5.0, rows),
        "uniform": random.uniform(0.0, 50.0, rows),
        "constant": np.full(rows, 3.0),
    }
    found, lowest = [], 1.0
    for number, (name, delay) in enumerate(delays.items()):
        report(number / len(delays), f"{name} delays")
        gaps = np.diff(np.sort(generated + delay))
        gaps = gaps[gaps > 0.0]
        chosen = random.choice(gaps, min(_SAMPLE, len(gaps)), replace=False)
        p_value = float(stats.kstest(chosen, "expon", args=(0.0, SECOND_MS / RATE_PER_S)).pvalue)
        following = float(np.corrcoef(gaps[:-1], gaps[1:])[0, 1])
        lowest = min(lowest, p_value)
        found.append(f"{name}: θ = {gaps.mean():.5f} ms, p = {p_value:.2f}, correlation {following:+.4f}")
    return [
        Claim(
            "appendix",
            "interarrival times are exponential with mean θ = 0.1 ms and memoryless, whatever the delays",
            "; ".join(found),
            lowest > 0.01,
            "p: Kolmogorov–Smirnov test; correlation: of an interarrival time with the next",
        )
    ]
