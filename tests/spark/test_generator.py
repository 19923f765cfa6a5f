"""The generated readings: the same rows in every cut, phases that cover the course, and a steady tail."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from slackwater.spark.command.demo import demo_readings, spans_of
from slackwater.spark.worker.generator_source import SHAPES, Readings


@pytest.mark.parametrize("shape", SHAPES)
def test_a_row_is_the_same_in_every_cut(shape: str) -> None:
    readings = Readings(1_000, 20_000, 0, shape, seed=5, tail_rows=2_000)
    cuts = (0, 1, 4_095, 4_096, 9_999, 18_000, 20_000)
    pieces = [readings.lateness_us(first, last) for first, last in pairwise(cuts)]
    assert np.array_equal(np.concatenate(pieces), readings.lateness_us(0, 20_000))


def test_phases_cover_the_course_and_differ_by_an_order_of_magnitude() -> None:
    readings = demo_readings(1_000, 90.0, 20.0, seed=0)
    phases = readings.phases()
    assert [phase.name for phase in phases] == ["steady", "drift", "bursts"]
    assert phases[0].first == 0 and phases[-1].last == readings.rows - readings.tail_rows == 90_000
    assert all(before.last == after.first for before, after in pairwise(phases))
    spans = spans_of(readings)
    assert [(span.start, span.end) for span in spans] == [(0, 30), (30, 60), (60, 90)]
    steady, drift = spans[0], phases[1]
    at_the_end = np.quantile(readings.lateness_us(drift.last - 2_000, drift.last), 0.99) / 1e3
    assert at_the_end > 5 * steady.lateness_ms


def test_the_tail_is_as_late_as_a_steady_stream() -> None:
    readings = demo_readings(1_000, 90.0, 20.0, seed=0)
    steady = Readings(1_000, readings.rows, 0, "steady", seed=0)
    first = readings.rows - readings.tail_rows
    assert readings.tail_rows == 22_000
    assert np.array_equal(readings.lateness_us(first, readings.rows), steady.lateness_us(first, readings.rows))
    assert demo_readings(10, 90.0, 3_600.0, seed=0).tail_rows == 600
