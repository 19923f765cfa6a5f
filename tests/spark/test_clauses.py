"""Clauses at run time: late rows, heartbeats of the stream, shedding with errors, percentiles in panes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

import slackwater as sw
from tests.helpers.controllers import Scripted, Trailing
from tests.helpers.harness import (
    SCHEMA,
    FileStream,
    batches,
    exact_timestamp,
    rows,
    timestamp,
    values,
)
from tests.helpers.side_by_side import Case, Outcome, run_side_by_side

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("known_controllers")]


TRAILING: dict[str, Any] = {"method": sw.Method(Trailing.name, wait_ms=2000.0)}
HALF: dict[str, Any] = {"law": sw.Law(Scripted.name, ratios=(0.5,))}
PERCENTILES = "sensor, PERCENTILE_APPROX(value, 0.5) AS middle, APPROX_PERCENTILE(value, ARRAY(0.1, 0.9), 100) AS edges"
CASES = {
    "late-rows": Case(
        "SELECT sensor, COUNT(*) AS n, SUM(value) AS total FROM Sensors "
        "[RANGE 6 seconds SLIDE 2 seconds ARRIVAL arrived LATE ROWS] GROUP BY sensor",
        TRAILING,
    ),
    "late-per-row": Case(
        "SELECT sensor, COUNT(*) AS n FROM Sensors [RANGE 6 seconds ARRIVAL arrived LATE ROWS] GROUP BY sensor",
        TRAILING,
    ),
    "delay-only": Case("SELECT id, value FROM Sensors [DELAY 1 hour] WHERE value >= 0", HALF),
    "percentiles": Case(
        f"SELECT {PERCENTILES} FROM Sensors [RANGE 6 seconds SLIDE 2 seconds ARRIVAL arrived LATE PANES] "
        "GROUP BY sensor",
        TRAILING,
    ),
}
ESTIMATES = (
    "SELECT sensor, COUNT(*) AS n, SUM(value) AS total, AVG(value) AS mean, MAX(value) AS most FROM Sensors "
    "[RANGE 4 seconds {} ARRIVAL arrived {} DELAY 1 hour] GROUP BY sensor WITH ERROR"
)
SHED = {
    "native": Case(ESTIMATES.format("SLIDE 2 seconds", "DRATIO 1%"), {**TRAILING, **HALF}),
    "per-row": Case(ESTIMATES.format("", ""), {**TRAILING, **HALF}),
}


@pytest.fixture(scope="module")
def ran(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory, known_controllers: None) -> dict[str, Outcome]:
    """All queries of ``CASES`` over one stream."""
    folder = tmp_path_factory.mktemp("clauses")
    return run_side_by_side(FileStream(spark, folder / "in"), folder, batches(3), CASES)


@pytest.fixture(scope="module")
def shed(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory, known_controllers: None) -> dict[str, Outcome]:
    """All queries of ``SHED`` over one stream of larger micro-batches, in which one row has no time."""
    folder = tmp_path_factory.mktemp("shed")
    made = batches(5, count=5, each=100)
    made[3][0]["ts"] = None
    return run_side_by_side(FileStream(spark, folder / "in"), folder, made, SHED)


def test_late_rows_with_the_windows_that_they_missed(ran: dict[str, Outcome]) -> None:
    source, report = ran["late-rows"].source, ran["late-rows"].report
    published = ran["late-rows"].published
    late = sw.late_rows(published)
    assert late.columns == ["id", "ts", "arrived", "sensor", "value", "late_by_ms", "missed"]
    assert 0 < late.count() <= report.ledger.late
    # what was published and what the late rows missed is the exact answer
    lost = (
        late.selectExpr("explode(missed) AS w", "*")
        .groupBy("w", "sensor")
        .agg(F.count("*").alias("n"), F.sum("value").alias("total"))
        .selectExpr("w.window_start", "w.window_end", "sensor", "n", "total")
    )
    both = sw.on_time(published).union(lost).groupBy("window_start", "window_end", "sensor")
    found = both.agg(F.sum("n").alias("n"), F.sum("total").alias("total"))
    exact = (
        source.read_batch()
        .groupBy(F.window("ts", "6 seconds", "2 seconds").alias("w"), "sensor")
        .agg(F.count("*").alias("n"), F.sum("value").alias("total"))
        .selectExpr("w.start AS window_start", "w.end AS window_end", "sensor", "n", "total")
        .where(F.col("window_end") <= F.lit(report.completeness[0].heartbeat))
    )
    assert values(found) == values(exact)
    # each is late by its distance from the heartbeat of its micro-batch, which all of them share
    judged = late.selectExpr("id DIV 60 AS batch", "unix_micros(ts) + late_by_ms * 1000 AS heartbeat")
    assert judged.distinct().count() == judged.select("batch").distinct().count()


def test_late_rows_of_windows_per_row(ran: dict[str, Outcome]) -> None:
    source, report = ran["late-per-row"].source, ran["late-per-row"].report
    published = ran["late-per-row"].published
    late = sw.late_rows(published)
    assert late.count() == report.ledger.late > 0
    assert late.where(
        "missed != array(named_struct('window_start', ts - INTERVAL 6 SECONDS, 'window_end', ts))"
    ).isEmpty()
    # on-time rows below the heartbeat have their result, late ones have none, and there are no others
    done = source.read_batch().where(F.col("ts") < F.lit(report.completeness[0].heartbeat)).count()
    assert sw.on_time(published).count() + late.count() == done


def test_a_slack_in_rows_leaves_no_row_out_uncounted(spark: SparkSession, tmp_path: Path) -> None:
    """Micro-batches run back to back, so the heartbeat that caps the buffer comes one or two of them later."""
    source = FileStream(spark, tmp_path / "in")
    for batch in batches(4, count=8):
        source.put(batch)
    window = "[RANGE 6 seconds ARRIVAL arrived SLACK 5 LATE ROWS]"
    case = Case(f"SELECT sensor, COUNT(*) AS n FROM Sensors {window} GROUP BY sensor")
    outcome = run_side_by_side(source, tmp_path, [[]], {"slack": case})["slack"]
    published, report = outcome.published, outcome.report
    late = sw.late_rows(published).count()
    assert report.ledger.input == 480 and late == report.ledger.late
    done = source.read_batch().where(F.col("ts") < F.lit(report.completeness[0].heartbeat)).count()
    assert sw.on_time(published).count() + late == done


def test_heartbeats_of_the_stream_itself(spark: SparkSession, tmp_path: Path) -> None:
    rng = np.random.default_rng(6)
    made = []
    for number in range(4):
        batch = rows(np.sort(rng.uniform(10 * number, 10 * number + 10, 50)), rng.uniform(0, 3, 50), 50 * number)
        # the last row of a batch says that nothing below will come; one of them only says so
        beat = {"ts": None, "sensor": "s0"} if number == 2 else batch.pop()
        made.append([*batch, {**beat, "beat": timestamp(10 * number + 7)}])
    text = "SELECT COUNT(*) AS n FROM Sensors [RANGE 5 seconds SLIDE 5 seconds HEARTBEAT beat LATE PANES]"
    source = FileStream(spark, tmp_path / "in", schema=SCHEMA + ", beat timestamp")
    outcome = run_side_by_side(source, tmp_path, made, {"beats": Case(text)})["beats"]
    promise, report = outcome.promise, outcome.report
    assert promise.method == "source-heartbeat"
    assert promise.heartbeat is not None and exact_timestamp(round(promise.heartbeat.timestamp() * 1e6)) == timestamp(
        37
    )
    # a row that is only a heartbeat is in no count
    assert report.ledger.input == 200 and report.ledger.invalid == 0 and report.ledger.late == 0
    exact = source.read_batch().where("ts IS NOT NULL").groupBy(F.window("ts", "5 seconds").alias("w"))
    counted = exact.agg(F.count("*").alias("n")).selectExpr("w.start AS window_start", "w.end AS window_end", "n")
    closed = counted.where(F.col("window_end") <= F.lit(promise.heartbeat))
    assert values(sw.reconcile(outcome.published)) == values(closed) and closed.count() >= 7


def test_lowest_heartbeat_of_the_sources_counts(spark: SparkSession, tmp_path: Path) -> None:
    """A source that is five seconds behind another loses nothing: its own heartbeats say so."""
    rng = np.random.default_rng(7)
    made: list[list[dict[str, Any]]] = []
    for number in range(4):
        made.append([])
        for sensor, behind in (("s0", 0), ("s1", 5)):
            seconds = np.sort(rng.uniform(10 * number - behind, 10 * number + 10 - behind, 25)) + 10
            batch = rows(seconds, np.zeros(25), 100 * number + 50 * (behind > 0))
            said = {"ts": None, "beat": timestamp(10 * number + 20 - behind)}
            made[-1] += [{**row, "sensor": sensor} for row in [*batch, said]]
    text = "SELECT COUNT(*) AS n FROM Sensors [RANGE 5 seconds SLIDE 5 seconds HEARTBEAT beat SOURCE sensor LATE PANES]"
    source = FileStream(spark, tmp_path / "in", schema=SCHEMA + ", beat timestamp")
    outcome = run_side_by_side(source, tmp_path, made, {"beats": Case(text)})["beats"]
    promise, report = outcome.promise, outcome.report
    assert promise.heartbeat is not None
    assert exact_timestamp(round(promise.heartbeat.timestamp() * 1e6)) == timestamp(45), "that of s1"
    assert (report.ledger.input, report.ledger.late, report.ledger.invalid) == (200, 0, 0)
    exact = source.read_batch().where("ts IS NOT NULL").groupBy(F.window("ts", "5 seconds").alias("w"))
    counted = exact.agg(F.count("*").alias("n")).selectExpr("w.start AS window_start", "w.end AS window_end", "n")
    closed = counted.where(F.col("window_end") <= F.lit(promise.heartbeat))
    assert values(sw.reconcile(outcome.published)) == values(closed)
    assert closed.count() >= 7


@pytest.mark.full
@pytest.mark.parametrize("path", SHED)
def test_delay_with_errors_with_a_drop_ratio_and_alone(path: str, shed: dict[str, Outcome]) -> None:
    report = shed[path].report
    ledger, (promise,), (delay,) = report.ledger, report.completeness, report.timeliness
    assert ledger.input == 500 == ledger.on_time + ledger.late + ledger.shed + ledger.invalid
    assert ledger.shed == delay.ledger.shed > 0 and ledger.late > 0
    assert promise.ledger.input == delay.ledger.on_time
    found = shed[path].published.toPandas()
    assert list(found.columns[2:]) == [
        *("sensor", "n", "total", "mean", "most", "n_error", "total_error", "mean_error", "shed_ratio")
    ]
    # before anything is shed (the first two micro-batches) answers are exact, and after it n is a sum of ones and twos
    whole = found[found["shed_ratio"] == 0]
    assert len(whole) and (whole[["n_error", "total_error", "mean_error"]] == 0).all(axis=None)
    some = found[found["shed_ratio"] > 0]
    kept = some["n"] * (1 - some["shed_ratio"])
    assert len(some) and np.allclose(kept, kept.round()) and (some["n_error"] > 0).all()
    # of n rows kept, the doubled ones spread by √(w(w − 1)) = √2 each
    assert np.allclose(some["n_error"] ** 2, 2 * (some["n"] - kept))
    assert np.allclose(some["total"], some["mean"] * some["n"])


def test_delay_and_nothing_else(ran: dict[str, Outcome]) -> None:
    ledger, found = ran["delay-only"].report.ledger, ran["delay-only"].published
    assert ledger.input == 240 and ledger.shed > 0
    assert found.columns == ["id", "value"]
    assert found.count() == found.distinct().count() == 240 - ledger.shed


def test_percentiles_in_panes(spark: SparkSession, ran: dict[str, Outcome]) -> None:
    source, promise = ran["percentiles"].source, ran["percentiles"].promise
    assert promise.ledger.late > 0
    source.read_batch().createOrReplaceTempView("all_rows")
    exact = spark.sql(
        f"SELECT w.start AS window_start, w.end AS window_end, {PERCENTILES} "
        "FROM (SELECT *, window(ts, '6 seconds', '2 seconds') AS w FROM all_rows) GROUP BY w, sensor"
    ).where(F.col("window_end") <= F.lit(promise.heartbeat))
    # a sketch holds this few rows whole: it is then exact, as Spark's own is
    found = sw.reconcile(ran["percentiles"].published).where(F.col("window_end") <= F.lit(promise.heartbeat))
    assert values(found) == values(exact)
