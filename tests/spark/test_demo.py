"""The demo on real Spark: every query reads the same rows, and what it lost is what a batch job finds missing."""

from __future__ import annotations

import dataclasses
import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from slackwater.spark.command.comparison import PROMISED
from slackwater.spark.command.demo import SideBySide, demo_readings
from slackwater.spark.command.feed import Feed
from slackwater.spark.worker.generator_source import Readings, read_batch

pytestmark = pytest.mark.spark
START_US = 1_700_000_000_000_000
ARGUMENTS = ("--seconds", "12", "--rate", "500", "--guess", "1 second")
GUESSES = ("1 second", "20 seconds")


@pytest.mark.full
def test_every_query_loses_exactly_what_a_batch_job_finds_missing(spark: SparkSession) -> None:
    readings = demo_readings(200, 30.0, 20.0, seed=1)
    queries = SideBySide(spark, readings, 0.01, GUESSES, "max-delay")
    try:
        queries.feed.begin_at(START_US)
        for seconds in range(0, 56, 2):
            queries.feed.write_until(START_US + seconds * 1_000_000)
            for query in queries.queries.values():
                query.processAllAvailable()
        assert queries.feed.done
        counts = queries.batch_counts()
        assert queries.feed.counts == counts
        courses, published = queries.courses(counts), {name: queries.published(name) for name in queries.queries}
        promise = queries.promise()
    finally:
        queries.stop()

    assert list(courses) == [PROMISED, *GUESSES]
    for name, course in courses.items():
        closed = [end for end in range(1, 31) if end <= max(published[name])]
        assert course.total.rows == sum(counts[end] for end in closed)
        assert course.total.rows - course.total.lost == sum(published[name][end].rows for end in closed)
        assert course.total.lost == sum(outcome.lost for outcome in course.phases.values())
    assert promise is not None and promise.ledger.input == readings.rows == queries.feed.written
    # Windows of one second lose nothing under a watermark behind every row.
    assert readings.lateness_us(0, readings.rows).max() < 20e6
    assert courses["20 seconds"].total == dataclasses.replace(courses["20 seconds"].total, windows=30, lost=0)
    assert courses["1 second"].phases["drift"].lost_ratio > courses["1 second"].phases["steady"].lost_ratio


def test_the_feed_writes_the_rows_of_the_generator(spark: SparkSession, tmp_path: Path) -> None:
    readings = Readings(100, 1_000, START_US, seed=3)
    feed = Feed(readings, tmp_path / "rows", 1_000_000)
    feed.begin_at(START_US)
    for now_us in (START_US - 1, START_US, START_US + 4_000_000, START_US + 4_000_000, START_US + 10**9):
        feed.write_until(now_us)
    columns = ["arrived", "ts", "sensor", "value"]
    wanted = read_batch(spark, readings).select(columns).collect()
    assert Counter(feed.batch(spark).select(columns).collect()) == Counter(wanted)
    assert feed.written == 1_000 and sum(feed.counts.values()) == 1_000


@pytest.mark.full
def test_the_command_prints_the_outcome_as_json() -> None:
    ran = subprocess.run(
        [sys.executable, "-m", "slackwater.cli.main", "demo", "--json", *ARGUMENTS],
        capture_output=True,
        text=True,
        check=False,
        env=dict(os.environ),
    )
    outcome = json.loads(ran.stdout)
    assert ran.returncode == (0 if outcome["kept"] else 1)
    assert [query["query"] for query in outcome["queries"]] == ["DRATIO 1%", "withWatermark('ts', '1 second')"]
    for query in outcome["queries"]:
        total = query["whole_run"]
        assert total["lost"] == sum(phase["lost"] for phase in query["phases"].values())
        assert total["rows"] <= outcome["promise"]["ledger"]["input"]
    assert [phase["name"] for phase in outcome["phases"]] == ["steady", "drift", "bursts"]
