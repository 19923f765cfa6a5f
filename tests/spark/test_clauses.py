"""Clauses at run time: late rows, heartbeats of the stream, shedding with errors, percentiles in panes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

import slackwater as sw
from slackwater.spark.report import Report, report
from tests.helpers.harness import (
    SCHEMA,
    FileStream,
    batches,
    collected,
    exact_timestamp,
    rows,
    settle,
    start,
    timestamp,
    values,
)

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("known_controllers")]


def run(
    spark: SparkSession,
    folder: Path,
    text: str,
    made: list[list[dict[str, Any]]],
    schema: str = SCHEMA,
    source: FileStream | None = None,
    **options: Any,
) -> tuple[FileStream, Report]:
    """Stream the batches through a query, each with the decisions of the one before in force."""
    source = source or FileStream(spark, folder / "in", schema=schema)
    sw.stream("Sensors", source.read_stream(), event_time="ts")
    query = start(sw.sql(spark, text, location=str(folder / "promise"), shards=2, **options), folder)
    try:
        for batch in made:
            source.put(batch)
            settle(query)
        return source, report(query)
    finally:
        query.stop()


TRAILING: dict[str, Any] = {"method": sw.Method("test-trailing", wait_ms=2000.0)}


def test_late_rows_with_the_windows_that_they_missed(spark: SparkSession, tmp_path: Path) -> None:
    text = (
        "SELECT sensor, COUNT(*) AS n, SUM(value) AS total FROM Sensors "
        "[RANGE 6 seconds SLIDE 2 seconds ARRIVAL arrived LATE ROWS] GROUP BY sensor"
    )
    source, said = run(spark, tmp_path, text, batches(3), **TRAILING)
    published = collected(spark, tmp_path)
    late = sw.late_rows(published)
    assert late.columns == ["id", "ts", "arrived", "sensor", "value", "late_by_ms", "missed"]
    assert 0 < late.count() <= said.ledger.late
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
        .where(F.col("window_end") <= F.lit(said.completeness[0].heartbeat))
    )
    assert values(found) == values(exact)
    # each is late by its distance from the heartbeat of its micro-batch, which all of them share
    judged = late.selectExpr("id DIV 60 AS batch", "unix_micros(ts) + late_by_ms * 1000 AS heartbeat")
    assert judged.distinct().count() == judged.select("batch").distinct().count()


def test_late_rows_of_windows_per_row(spark: SparkSession, tmp_path: Path) -> None:
    text = "SELECT sensor, COUNT(*) AS n FROM Sensors [RANGE 6 seconds ARRIVAL arrived LATE ROWS] GROUP BY sensor"
    source, said = run(spark, tmp_path, text, batches(4), **TRAILING)
    published = collected(spark, tmp_path)
    late = sw.late_rows(published)
    assert late.count() == said.ledger.late > 0
    assert late.where(
        "missed != array(named_struct('window_start', ts - INTERVAL 6 SECONDS, 'window_end', ts))"
    ).isEmpty()
    # on-time rows below the heartbeat have their result, late ones have none, and there are no others
    done = source.read_batch().where(F.col("ts") < F.lit(said.completeness[0].heartbeat)).count()
    assert sw.on_time(published).count() + late.count() == done


def test_a_slack_in_rows_leaves_no_row_out_uncounted(spark: SparkSession, tmp_path: Path) -> None:
    """Per row, in micro-batches back to back: the heartbeat that caps the buffer comes one or two of them later."""
    source = FileStream(spark, tmp_path / "in")
    for batch in batches(4, count=8):
        source.put(batch)
    window = "[RANGE 6 seconds ARRIVAL arrived SLACK 5 LATE ROWS]"
    source, said = run(
        spark, tmp_path, f"SELECT sensor, COUNT(*) AS n FROM Sensors {window} GROUP BY sensor", [[]], source=source
    )
    published = collected(spark, tmp_path)
    late = sw.late_rows(published).count()
    assert said.ledger.input == 480 and late == said.ledger.late
    done = source.read_batch().where(F.col("ts") < F.lit(said.completeness[0].heartbeat)).count()
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
    source, said = run(spark, tmp_path, text, made, schema=SCHEMA + ", beat timestamp")
    (promise,) = said.completeness
    assert promise.method == "source-heartbeat"
    assert promise.heartbeat is not None and exact_timestamp(round(promise.heartbeat.timestamp() * 1e6)) == timestamp(
        37
    )
    # a row that is only a heartbeat is in no count
    assert said.ledger.input == 200 and said.ledger.invalid == 0 and said.ledger.late == 0
    exact = source.read_batch().where("ts IS NOT NULL").groupBy(F.window("ts", "5 seconds").alias("w"))
    counted = exact.agg(F.count("*").alias("n")).selectExpr("w.start AS window_start", "w.end AS window_end", "n")
    closed = counted.where(F.col("window_end") <= F.lit(promise.heartbeat))
    assert values(sw.reconcile(collected(spark, tmp_path))) == values(closed) and closed.count() >= 7


@pytest.mark.parametrize(("slide", "ratio"), [("SLIDE 2 seconds", "DRATIO 1%"), ("", "")])
def test_delay_with_errors_with_a_drop_ratio_and_alone(
    slide: str, ratio: str, spark: SparkSession, tmp_path: Path
) -> None:
    text = (
        "SELECT sensor, COUNT(*) AS n, SUM(value) AS total, AVG(value) AS mean, MAX(value) AS most FROM Sensors "
        f"[RANGE 4 seconds {slide} ARRIVAL arrived {ratio} DELAY 1 hour] GROUP BY sensor WITH ERROR"
    )
    law: dict[str, Any] = {"law": sw.Law("test-scripted", ratios=(0.5,))}
    made = batches(5, count=5, each=100)
    made[3][0]["ts"] = None
    _, said = run(spark, tmp_path, text, made, **TRAILING, **law)
    ledger, (promise,), (delay,) = said.ledger, said.completeness, said.timeliness
    assert ledger.input == 500 == ledger.on_time + ledger.late + ledger.shed + ledger.invalid
    assert ledger.shed == delay.ledger.shed > 0 and ledger.late > 0
    assert promise.ledger.input == delay.ledger.on_time
    found = collected(spark, tmp_path).toPandas()
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


def test_delay_and_nothing_else(spark: SparkSession, tmp_path: Path) -> None:
    law: dict[str, Any] = {"law": sw.Law("test-scripted", ratios=(0.5,))}
    text = "SELECT id, value FROM Sensors [DELAY 1 hour] WHERE value >= 0"
    _, said = run(spark, tmp_path, text, batches(3, count=4), **law)
    assert said.ledger.input == 240 and said.ledger.shed > 0
    found = collected(spark, tmp_path)
    assert found.columns == ["id", "value"]
    assert found.count() == found.distinct().count() == 240 - said.ledger.shed


def test_percentiles_in_panes(spark: SparkSession, tmp_path: Path) -> None:
    body = "sensor, PERCENTILE_APPROX(value, 0.5) AS middle, APPROX_PERCENTILE(value, ARRAY(0.1, 0.9), 100) AS edges"
    text = f"SELECT {body} FROM Sensors [RANGE 6 seconds SLIDE 2 seconds ARRIVAL arrived LATE PANES] GROUP BY sensor"
    source, said = run(spark, tmp_path, text, batches(6), **TRAILING)
    assert said.ledger.late > 0
    source.read_batch().createOrReplaceTempView("all_rows")
    exact = spark.sql(
        f"SELECT w.start AS window_start, w.end AS window_end, {body} "
        "FROM (SELECT *, window(ts, '6 seconds', '2 seconds') AS w FROM all_rows) GROUP BY w, sensor"
    ).where(F.col("window_end") <= F.lit(said.completeness[0].heartbeat))
    # so few rows fit a sketch whole: it is then exact, as Spark's own is
    found = sw.reconcile(collected(spark, tmp_path)).where(F.col("window_end") <= F.lit(said.completeness[0].heartbeat))
    assert values(found) == values(exact)
