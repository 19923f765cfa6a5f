"""AFTER WHERE on real Spark: rows that the filter removes are neither shed nor counted, and results are unbiased."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import slackwater as sw
from tests.helpers.harness import FileStream, collected, rows, settle, start

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("known_controllers")]

EACH, BATCHES = 3000, 6


def batch_of(number: int) -> list[dict[str, Any]]:
    """Rows of three sensors in order, one value in seven missing."""
    at_s = number + np.arange(EACH) / EACH
    made = rows(at_s, np.zeros(EACH), first_id=number * EACH)
    for i, row in enumerate(made):
        row["sensor"] = "abc"[i % 3]
        row["value"] = None if i % 7 == 0 else float(i % 50)
    return made


def run(spark: SparkSession, folder: Path, text: str, ratios: tuple[float, ...]) -> tuple[sw.Report, DataFrame, Any]:
    """The report, the rows as a batch, and the windows as pandas."""
    stream = FileStream(spark, folder / "in")
    sw.stream("Filtered", stream.read_stream(), event_time="ts")
    law, method = sw.Law("test-scripted", ratios=ratios), sw.Method("test-trailing", wait_ms=100.0)
    query = start(sw.sql(spark, text, law=law, method=method), folder)
    for number in range(BATCHES):
        stream.put(batch_of(number))
        settle(query)
    report = sw.report(query)
    query.stop()
    return report, stream.read_batch(), collected(spark, folder).toPandas()


TEXT = (
    "SELECT COUNT(*) AS n, SUM(value) AS s FROM Filtered "
    "[RANGE 1 second SLIDE 1 second DRATIO 1% DELAY 1 hour {place}] "
    "WHERE sensor = 'b' AND value IS NOT NULL AND LENGTH(sensor) < value WITH ERROR"
)


def truth_of(batch: DataFrame) -> Any:
    window = F.window("ts", "1 second").start.alias("window_start")
    kept = batch.where("sensor = 'b' AND value IS NOT NULL AND LENGTH(sensor) < value")
    return kept.groupBy(window).agg(F.count("*").alias("n"), F.sum("value").alias("s")).toPandas()


def test_only_rows_that_pass_the_cheap_conditions_are_shed_and_counted(spark: SparkSession, tmp_path: Path) -> None:
    report, batch, windows = run(spark, tmp_path, TEXT.format(place="AFTER WHERE"), (0.6,))
    (delay,), (promise,) = report.timeliness, report.completeness
    passing = batch.where("sensor = 'b' AND value IS NOT NULL").count()
    assert passing < batch.count() / 3
    assert delay.ledger.input == delay.ledger.on_time + delay.ledger.shed == passing
    assert delay.ledger.shed > 0
    assert promise.ledger.input == delay.ledger.on_time
    ledger = report.ledger
    assert passing == ledger.on_time + ledger.late + ledger.shed + ledger.invalid
    joined = windows.set_index("window_start").join(truth_of(batch).set_index("window_start"), rsuffix="_true")
    shed = joined[joined["shed_ratio"] > 0]
    assert len(shed) >= 2, "windows after the first decision"
    for name in ("n", "s"):
        assert ((shed[name] - shed[f"{name}_true"]).abs() <= 5 * shed[f"{name}_error"]).all(), joined


@pytest.mark.parametrize("place", ["AFTER WHERE", ""])
def test_where_nothing_is_shed_both_places_give_the_result_of_the_batch(
    spark: SparkSession, tmp_path: Path, place: str
) -> None:
    report, batch, windows = run(spark, tmp_path, TEXT.format(place=place), (0.0,))
    joined = windows.set_index("window_start").join(truth_of(batch).set_index("window_start"), rsuffix="_true")
    assert len(joined) >= BATCHES - 2
    assert (joined["n"] == joined["n_true"]).all() and (joined["s"] == joined["s_true"]).all()
    assert report.ledger.shed == 0
    read = batch.where("sensor = 'b' AND value IS NOT NULL") if place else batch
    assert report.ledger.input == read.count()


def test_rows_without_a_window_are_shed_after_where_too(spark: SparkSession, tmp_path: Path) -> None:
    text = "SELECT id, shed_weight FROM Filtered [DRATIO 1% DELAY 1 hour AFTER WHERE] WHERE sensor <> 'a'"
    report, batch, out = run(spark, tmp_path, text, (0.5,))
    passing = {row["id"] for row in batch.where("sensor <> 'a'").collect()}
    assert report.ledger.input == len(passing)
    assert set(out["id"]) < passing and out["id"].is_unique
    assert report.ledger.on_time == len(out) and report.ledger.shed == len(passing) - len(out)


def test_a_promise_after_a_filter_of_the_user_counts_what_passes(spark: SparkSession, tmp_path: Path) -> None:
    """The same place in Python: the filter stands before with_max_delay."""
    stream = FileStream(spark, tmp_path / "in")
    law = sw.Law("test-scripted", ratios=(0.5,))
    events = sw.with_max_delay(stream.read_stream().where("sensor = 'c'"), "1 hour", arrival="arrived", law=law)
    query = start(events.where("LENGTH(sensor) = 1"), tmp_path)
    for number in range(4):
        stream.put(batch_of(number))
        settle(query)
    (delay,) = sw.report(query).timeliness
    query.stop()
    out = collected(spark, tmp_path).toPandas()
    passing = stream.read_batch().where("sensor = 'c'").count()
    assert delay.ledger.input == passing == 4 * EACH // 3
    assert delay.ledger.on_time == len(out) and delay.ledger.shed == passing - len(out)
    assert (
        abs(out["shed_weight"].sum() - passing)
        <= 5 * float((out["shed_weight"] * (out["shed_weight"] - 1)).sum()) ** 0.5
    )
