"""Generated streams depend only on their seed and have the properties that their parameters give."""

import numpy as np
import pytest

from slackwater.sim.streams import make_stream, stream_names
from slackwater.sim.streams.kim2007 import SENSORS, kim2007
from slackwater.sim.streams.kim2010 import kim2010
from slackwater.sim.streams.kim2012 import kim2012_changing, kim2012_constant
from slackwater.sim.streams.stalled import stalled


@pytest.mark.parametrize("name", stream_names())
def test_seed_determines_the_stream(name: str) -> None:
    one, same, other = make_stream(name, 1), make_stream(name, 1), make_stream(name, 2)
    assert one.rows > 0
    assert one.arrivals is not None
    assert same.arrivals is not None
    assert np.array_equal(one.values, same.values)
    assert np.array_equal(one.arrivals, same.arrivals)
    assert not np.array_equal(one.values, other.values)
    assert one.sources is None or len(one.sources) == one.rows


def test_kim2012_delays_have_the_given_moments() -> None:
    trace = kim2012_constant(3, 200_000, mean_ms=3.0, sd_ms=2.0)
    assert trace.arrivals is not None
    delays = trace.arrivals - trace.values
    # Within six standard errors of the mean and of the standard deviation.
    assert abs(delays.mean() - 3.0) < 6 * 2.0 / np.sqrt(200_000)
    assert abs(delays.std() - 2.0) < 6 * 2.0 / np.sqrt(2 * 200_000)
    assert delays.min() < 0  # negative normal delays are kept


def test_kim2012_changes_every_period() -> None:
    trace = kim2012_changing(3, 50_000, every_s=1.0)
    assert trace.arrivals is not None
    regime = (trace.values / 1e3).astype(int)
    means = [float((trace.arrivals - trace.values)[regime == k].mean()) for k in range(4)]
    assert np.ptp(means) > 0.5


def test_kim2010_disorder_is_clipped() -> None:
    trace = kim2010(0, 20_000, sd_ms=50.0, max_ms=100.0)
    assert trace.arrivals is not None
    disorder = trace.arrivals - trace.values
    assert disorder.min() >= 0
    assert np.isclose(disorder.max(), 100.0)


def test_kim2007_has_one_row_per_second_and_sensor() -> None:
    trace = kim2007(0, 2_000)
    assert trace.sources is not None
    for sensor in range(SENSORS):
        assert np.allclose(np.diff(np.sort(trace.values[trace.sources == sensor])), 1_000.0)


def test_no_row_arrives_during_a_stall() -> None:
    trace = stalled(0, 50_000)
    assert trace.arrivals is not None
    gaps = np.sort(np.diff(trace.arrivals))[::-1]
    assert gaps[3] > 3_000.0 > gaps[4]
