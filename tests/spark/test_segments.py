"""Through segments each pane reaches each of its windows once, and before the window is due."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from slackwater.spark.windows.segments import Sliding, segments_of

pytestmark = pytest.mark.spark
MS_US = 1000


@settings(
    max_examples=12, derandomize=True, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)
@given(
    pane_ms=st.integers(1, 7),
    panes_a_slide=st.integers(1, 3),
    panes_a_window=st.integers(8, 60),
    windows=st.integers(2, 6),
    first=st.integers(-100, 100),
)
def test_each_pane_reaches_its_windows_once(
    spark: SparkSession, pane_ms: int, panes_a_slide: int, panes_a_window: int, windows: int, first: int
) -> None:
    pane = pane_ms * MS_US
    sliding = Sliding(panes_a_window * pane, panes_a_slide * pane, pane)
    # Panes on time, and panes that the heartbeat passed, by up to a whole window and more.
    given = [(number * pane, behind) for number in range(first, first + 9) for behind in (-MS_US, 0, 700, 5 * pane)]
    given.append((first * pane, sliding.length))
    rows = [(end, end + behind) for end, behind in given]
    panes = spark.createDataFrame(rows, "end long, close_us long").select(
        "end", F.timestamp_micros("close_us").alias("close"), F.col("end").alias("pane"), F.col("close_us").alias("was")
    )
    found = segments_of(panes, sliding, windows, ["pane", "was"], []).collect()
    reached: dict[tuple[int, int], list[int]] = {row: [] for row in rows}
    for close, first_end, last_end, end, lifted in found:
        reached[end, lifted] += range(first_end, last_end + 1, sliding.slide)
        if last_end <= lifted:
            assert close == lifted, "an emitted window keeps the time of its late pane"
        else:
            # Not before the pane itself, or Spark drops it; and before its first window is due.
            assert lifted - MS_US < close <= first_end - MS_US
    for (end, lifted), ends in reached.items():
        start = end - pane
        latest = start // sliding.slide * sliding.slide + sliding.length
        expected = [e for e in range(latest, end - 1, -sliding.slide) if e - sliding.length <= start]
        assert sorted(ends) == sorted(expected), (end, lifted)


def test_the_number_of_segments_per_pane(spark: SparkSession) -> None:
    sliding = Sliding(600_000_000, 1_000_000, 1_000_000)
    panes = spark.range(1000, 1100).selectExpr("id * 1000000 AS end", "timestamp_micros(id * 1000000 - 1000) AS close")
    assert segments_of(panes, sliding, 24, [], []).count() / 100 == pytest.approx(24 + 600 / 24, abs=2)
