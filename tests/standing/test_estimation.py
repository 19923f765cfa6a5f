"""Estimates equal the paper's formulas, and bad rows change nothing."""

from __future__ import annotations

import numpy as np
import pytest

from slackwater.control.deferral.estimation import StreamEstimator
from slackwater.control.deferral.interruptions import best_guess, interrupted, unknown_spread
from slackwater.control.deferral.normality import NormalityWatch
from slackwater.errors import InvalidOption

NONE = np.zeros(1, dtype=np.bool_)


def feed(estimator: StreamEstimator, stream: int, times: list[float], values: list[float]) -> None:
    estimator.observe(np.full(len(times), stream), np.array(times), np.array(values))


def test_equations_15_and_16_with_uneven_gaps() -> None:
    draw = np.random.default_rng(1)
    times = np.cumsum(draw.uniform(0.5, 2.0, 300))
    values = np.cumsum(draw.standard_normal(300))
    estimator = StreamEstimator(1, k=100)
    feed(estimator, 0, times.tolist(), values.tolist())
    estimator.estimate(float(times[-1]), 1.0, NONE)
    last_times, last_values = times[-100:], values[-100:]
    gaps, steps = np.diff(last_times), np.diff(last_values)
    drift = (last_values[-1] - last_values[0]) / (last_times[-1] - last_times[0])
    assert estimator.drift[0] == pytest.approx(drift)
    assert estimator.diffusion[0] ** 2 == pytest.approx(np.sum((steps - gaps * drift) ** 2 / gaps) / 98)


def test_a_short_buffer_is_estimated_from_its_rows() -> None:
    estimator = StreamEstimator(1, k=100)
    values = [0.0, 1.0, 0.0, 2.0, 1.0, 3.0, 2.0, 4.0, 3.0]
    feed(estimator, 0, list(range(9)), values)
    estimator.estimate(8.0, 1.0, NONE)
    steps = np.diff(values)
    assert estimator.diffusion[0] ** 2 == pytest.approx(np.sum((steps - steps.mean()) ** 2) / 7)
    assert estimator.usual_gap[0] == 1.0


@pytest.mark.parametrize("rows", [8, 19, 20, 21, 47])
def test_the_usual_gap_is_the_90_percent_quantile(rows: int) -> None:
    draw = np.random.default_rng(rows)
    times = np.cumsum(draw.exponential(1.0, (2, rows)), axis=1)
    times[1] = np.arange(rows)  # even beside uneven
    estimator = StreamEstimator(2, k=20)
    for stream in range(2):
        feed(estimator, stream, times[stream].tolist(), draw.standard_normal(rows).tolist())
    estimator.estimate(float(times.max()), 1.0, np.zeros(2, dtype=np.bool_))
    gaps = np.sort(np.diff(times[0, -20:]))
    assert estimator.usual_gap.tolist() == [gaps[int(np.ceil(0.9 * len(gaps))) - 1], 1.0]


def test_a_changed_diffusion_is_estimated_more_often() -> None:
    estimator = StreamEstimator(1, k=10, t_max=8.0)
    draw = np.random.default_rng(2)
    value = 0.0
    estimated = []
    for tick in range(60):
        value += draw.standard_normal() * (1.0 if tick < 30 else 20.0)
        feed(estimator, 0, [float(tick)], [value])
        if len(estimator.estimate(float(tick), 1.0, NONE)):
            estimated.append(tick)
    gaps = np.diff(estimated)
    assert estimated[0] == 7  # the eighth row
    assert gaps.max() <= 8  # t_max
    assert gaps[-1] == 1  # twenty times the diffusion: as often as there are ticks


def test_bad_rows_are_counted_and_left_out() -> None:
    estimator = StreamEstimator(2, k=10)
    feed(estimator, 0, [1.0, 2.0], [10.0, 11.0])
    feed(estimator, 0, [2.0, 1.5, 3.0, float("nan")], [99.0, 99.0, float("nan"), 1.0])
    assert (estimator.intake.taken, estimator.intake.repeated, estimator.intake.backwards) == (2, 1, 1)
    assert estimator.intake.invalid == 2
    assert estimator.last_value[0] == 11.0
    assert not estimator.seen[1]


def test_a_stream_is_silent_by_its_own_usual_gap() -> None:
    estimator = StreamEstimator(2, k=20)
    feed(estimator, 0, [float(t) for t in range(20)], [float(t) for t in range(20)])
    feed(estimator, 1, [10.0 * t for t in range(-8, 2)], [0.0] * 10)
    estimator.estimate(19.0, 1.0, np.zeros(2, dtype=np.bool_))
    assert interrupted(estimator, 22.0).tolist() == [False, False]
    assert interrupted(estimator, 22.5).tolist() == [True, False]
    assert interrupted(estimator, 41.0).tolist() == [True, True]
    silent = interrupted(estimator, 23.0)
    assert best_guess(estimator, 23.0, silent, estimator.drift).tolist() == [23.0, 0.0]
    assert unknown_spread(estimator, 23.0, silent)[1] == 0.0


def test_normality_is_tested_per_stream() -> None:
    draw = np.random.default_rng(5)
    estimator = StreamEstimator(2, k=100)
    feed(estimator, 0, [float(t) for t in range(100)], np.cumsum(draw.standard_normal(100)).tolist())
    feed(estimator, 1, [float(t) for t in range(100)], np.cumsum(draw.standard_cauchy(100)).tolist())
    watch = NormalityWatch(2)
    watch.step(estimator, tests=2)
    assert watch.normal().tolist() == [True, False]


def test_an_estimator_continues_from_its_snapshot() -> None:
    draw = np.random.default_rng(6)
    values = np.cumsum(draw.standard_normal((60, 3)), axis=0)
    whole, first = StreamEstimator(3, k=20), StreamEstimator(3, k=20)
    streams, none = np.arange(3), np.zeros(3, dtype=np.bool_)
    for tick in range(60):
        if tick == 30:
            second = StreamEstimator(3, k=20)
            second.resume(first.snapshot())
            first = second
        for estimator in (whole, first):
            estimator.observe(streams, np.full(3, float(tick)), values[tick])
            estimator.estimate(float(tick), 1.0, none)
    assert whole.diffusion.tolist() == first.diffusion.tolist()
    assert whole.intake == first.intake


@pytest.mark.parametrize("options", [{"k": 3}, {"t_max": 0.0}])
def test_invalid_options_are_refused(options: dict[str, float]) -> None:
    with pytest.raises(InvalidOption):
        StreamEstimator(1, **options)  # type: ignore[arg-type]
