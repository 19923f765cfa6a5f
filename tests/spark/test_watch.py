"""The series on real Spark: it is written beside the checkpoint, survives a restart, and agrees with the ledger."""

from __future__ import annotations

import urllib.request
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pyspark.sql import SparkSession

import slackwater as sw
from slackwater.watching.folders import SeriesFinder
from tests.helpers.browser import new_browser
from tests.helpers.harness import FileStream, collected, promise_of, rows, settle, start
from tests.helpers.standing import SCHEMA as STANDING_SCHEMA
from tests.helpers.standing import micro_batches, put_weights
from tests.helpers.standing import updates as standing_updates

pytestmark = pytest.mark.spark


def batches(count: int, first: int = 0) -> list[list[dict[str, Any]]]:
    rng = np.random.default_rng(first)
    arrivals = np.sort(rng.uniform(10 * first, 10 * (first + count), 60 * count))
    made = rows(arrivals, rng.exponential(1.0, 60 * count), first_id=60 * first)
    return [made[i * 60 : (i + 1) * 60] for i in range(count)]


@pytest.mark.full
def test_a_series_survives_a_restart_and_agrees_with_report_and_output(spark: SparkSession, tmp_path: Path) -> None:
    stream = FileStream(spark, tmp_path / "in")

    def started() -> Any:
        windows = sw.window(
            stream.read_stream(),
            range="5 seconds",
            slide="5 seconds",
            event_time="ts",
            drop_ratio="20%",
            arrival="arrived",
            source="sensor",
            late="panes",
            name="kept-beside",
            location=str(tmp_path / "promises"),
        )
        return start(windows.groupBy("sensor").agg("COUNT(*) AS n"), tmp_path)

    for first in (0, 4):
        for batch in batches(4, first):
            stream.put(batch)
        query = started()
        settle(query)
        report, promise = sw.report(query), promise_of(query)
        query.stop()

    (series,) = SeriesFinder(lambda: [tmp_path / "promises"]).find()
    assert promise.series is not None
    assert series.batches == promise.series.batches
    assert series.ledger == promise.ledger
    assert series.ledger.input == 8 * 60
    assert series.points[0].batch == 0, "the first run is still there"
    written = collected(spark, tmp_path)
    last = series.last
    assert last is not None
    assert last.results == written.count()
    assert last.late_panes == written.where("late").count()
    newest = max(closed.end_ms for closed in series.closed)
    assert newest == written.where("NOT late").agg({"window_end": "max"}).collect()[0][0].timestamp() * 1e3
    assert {"s0", "s1", "s2", "s3"} & set(series.sources), "sources are called by their names"
    assert series.decisions and series.latest("lateness") is not None
    assert "last 5 min" in str(report) and "<svg" in report._repr_html_()


def test_a_delay_has_its_series_and_a_failure_its_reason(spark: SparkSession, tmp_path: Path) -> None:
    stream = FileStream(spark, tmp_path / "in")
    for batch in batches(4):
        stream.put(batch)
    kept = sw.with_max_delay(
        stream.read_stream(), "10 minutes", name="soon", location=str(tmp_path / "promises")
    ).selectExpr("assert_true(value >= 0, 'negative value') AS ok", "value")
    query = start(kept, tmp_path)
    query.processAllAvailable()
    sw.report(query)
    bad = rows([41.0], [0.0], first_id=999)
    bad[0]["value"] = -1.0
    stream.put(bad)
    with pytest.raises(Exception, match="negative value"):
        query.processAllAvailable()
    look = SeriesFinder(lambda: [tmp_path / "promises"]).find
    spark.sparkContext._jsc.sc().listenerBus().waitUntilEmpty()  # a query's end is reported in the background
    (series,) = look()
    assert series.ledger.input == 240
    assert series.latest("mean_delay_s") is not None
    assert series.ended is not None and series.ended.startswith("failed: ")


def test_standing_queries_report_their_evaluations(spark: SparkSession, tmp_path: Path) -> None:
    put_weights(tmp_path / "weights")
    (tmp_path / "clock").write_text("0")
    made = micro_batches(40, warm_up=30)
    stream = FileStream(spark, tmp_path / "in", STANDING_SCHEMA)
    for half in (made[:6], made[6:]):
        for batch in half:
            stream.put(batch)
        answers = standing_updates(spark, tmp_path, name="portfolios", location=str(tmp_path / "promises"))
        assert "__sw_shard_counts" not in answers.columns
        query = start(answers, tmp_path)
        query.processAllAvailable()
        report = sw.report(query)
        assert query.lastProgress is not None
        observed = query.lastProgress["observedMetrics"]["slackwater-standing:portfolios"]
        query.stop()

    (promise,) = report.precision
    written, counts = collected(spark, tmp_path).where("value IS NOT NULL"), promise.counts
    assert counts.queries == 6 and counts.withheld == 0
    assert counts.evaluated == written.count()
    reached = promise.series.batches
    assert counts.evaluated + counts.deferred == 6 * reached, "each query is evaluated or let stand"
    assert 0 < counts.evaluated < 6 * reached
    assert 0 <= counts.hits <= counts.judged and 0 <= counts.within <= counts.audited
    assert counts.expected == pytest.approx(0.9 * counts.judged)
    assert len(observed["shards"]) == 2
    (series,) = SeriesFinder(lambda: [tmp_path / "promises"]).find()
    assert series.latest("precision") == counts
    assert f"evaluated   {counts.evaluated:,}" in str(report) and report.as_json()["precision"][0]["queries"] == 6
    assert "evaluated" in report._repr_html_() and "CONFIDENCE 90%" in report._repr_html_()


@pytest.mark.full
def test_the_page_and_the_metrics_follow_a_running_query(spark: SparkSession, tmp_path: Path) -> None:
    stream = FileStream(spark, tmp_path / "in")
    stream.put(batches(1)[0])
    events = sw.with_drop_ratio(
        stream.read_stream(), "ts", "20%", arrival="arrived", name="seen", location=str(tmp_path / "promises")
    )
    query = start(events.groupBy("sensor").count(), tmp_path, mode="complete", name="by_sensor")
    page, metrics = sw.watch(spark, port=0), sw.serve_metrics(0)
    try:
        settle(query)
        with urllib.request.urlopen(metrics.url) as answer:
            text = answer.read().decode()
        assert 'slackwater_rows_total{fate="on_time",promise="seen",query="by_sensor"} 60.0' in text
        with new_browser() as browser:
            browser.open(f"{page.url}?query={query.id}")
            browser.until(lambda: browser.texts(".fates dd")[0] == "60", "the first micro-batch")
            stream.put(batches(1, first=1)[0])
            browser.until(lambda: browser.texts(".fates dd")[0] == "120", "the second, as it is committed")
            assert browser.texts(".headline .word") == ["✓ KEPT"]
            assert browser.complaints() == []
    finally:
        query.stop()
        page.close()
        metrics.close()
