"""Queries with WITHIN … CONFIDENCE … give exact answers at the times they are evaluated."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

import slackwater as sw
from slackwater.errors import InvalidOption, InvalidStream, UnknownName
from slackwater.language import parse
from slackwater.spark.standing.sql import standing_query
from tests.helpers.harness import ORIGIN_S, FileStream
from tests.helpers.standing import SCHEMA, TICK_MS, iso, micro_batches, put_weights, run_batches, truth

pytestmark = pytest.mark.spark


QUERIES: dict[Path, StreamingQuery] = {}


def spark_query(root: Path) -> StreamingQuery:
    """The query that ``run_text`` ran last in this folder."""
    return QUERIES[root]


def run_text(
    spark: SparkSession, root: Path, text: str, batches: list[list[dict[str, Any]]], **options: Any
) -> list[dict[str, Any]]:
    root.mkdir(exist_ok=True)
    (root / "clock").write_text("0")
    stream = FileStream(spark, root / "in", SCHEMA)
    for batch in batches:
        stream.put(batch)
    sw.stream("Prices", stream.read_stream(), key="symbol", event_time="ts", value="price")
    QUERIES[root] = run_batches(spark, root, answers(spark, root, text, **options))
    found = spark.read.parquet(str(root / "out")).selectExpr("*", "unix_millis(at) AS ms")
    return [row.asDict() for row in found.collect()]


def answers(spark: SparkSession, root: Path, text: str, **options: Any) -> DataFrame:
    return standing_query(spark, parse(text), location=str(root / "sw"), _clock_file=str(root / "clock"), **options)


def averages(batches: list[list[dict[str, Any]]], names: set[str]) -> dict[int, float]:
    """The average after every tick."""
    last: dict[str, float] = {}
    found = {}
    for batch in batches:
        for row in batch:
            last[row["symbol"]] = row["price"]
            mine = [price for name, price in last.items() if name in names]
            found[ORIGIN_S * 1000 + tick_of(row) * TICK_MS] = float(np.mean(mine)) if mine else np.nan
    return found


def tick_of(row: dict[str, Any]) -> int:
    return round((pd.Timestamp(row["ts"]).timestamp() - ORIGIN_S) * 1000 / TICK_MS)


@pytest.mark.parametrize("kind", ["folder", "view"])
def test_a_sum_with_weights_from_a_table(kind: str, spark: SparkSession, tmp_path: Path) -> None:
    put_weights(tmp_path / "weights")
    name = f"holdings_{kind}"
    if kind == "folder":
        spark.sql(f"CREATE TABLE {name} USING parquet LOCATION '{tmp_path / 'weights'}'")
    else:
        spark.read.parquet(str(tmp_path / "weights")).createOrReplaceTempView(name)
    batches = micro_batches(23, warm_up=20)
    text = (
        f"SELECT portfolio, SUM(weight * price) AS worth FROM Prices JOIN {name} USING (symbol) GROUP BY portfolio "
        "WITHIN 5 CONFIDENCE 90%"
    )
    found = run_text(spark, tmp_path, text, batches)
    exact = truth(tmp_path, batches)
    assert {row["portfolio"] for row in found} == {f"p{number}" for number in range(6)}
    assert len(found) < 4 * 6
    for row in found:
        assert row["worth"] == pytest.approx(exact[row["portfolio"], row["ms"]], rel=1e-12)
    if kind == "folder":
        spark.sql(f"DROP TABLE {name}")


def test_averages_of_filtered_streams_and_their_extremes(spark: SparkSession, tmp_path: Path) -> None:
    batches = micro_batches(23, warm_up=20)
    text = "SELECT AVG(price) FROM Prices WHERE symbol IN ('s1', 's2', 's3') WITHIN 2 CONFIDENCE 95%"
    found = run_text(spark, tmp_path / "average", text, batches)
    exact = averages(batches, {"s1", "s2", "s3"})
    assert found
    for row in found:
        assert row["value"] == pytest.approx(exact[row["ms"]], rel=1e-12)
    text = "SELECT substr(symbol, 1, 1) AS kind, MAX(AVG(price)) AS top FROM Prices [RANGE 7 minutes] GROUP BY kind"
    found = run_text(spark, tmp_path / "top", f"{text} WITHIN 2% CONFIDENCE 95%", batches)
    exact = averages(batches, {f"s{number}" for number in range(8)})
    assert {row["kind"] for row in found} == {"s"}
    for row in found:
        seen = [value for at, value in exact.items() if row["ms"] - 7 * TICK_MS <= at <= row["ms"]]
        assert row["top"] == pytest.approx(max(seen), rel=1e-12)


def test_counts_and_extremes_since_a_landmark(spark: SparkSession, tmp_path: Path) -> None:
    batches = micro_batches(22, warm_up=20)
    text = "SELECT COUNT(price) AS n FROM Prices WHERE symbol IN ('s1', 's2', 's3') WITHIN 0.5 CONFIDENCE 95%"
    assert {row["n"] for row in run_text(spark, tmp_path / "count", text, batches)} == {3.0}
    since_ms = ORIGIN_S * 1000 + 5 * TICK_MS
    landmark = pd.Timestamp(since_ms, unit="ms", tz="UTC").isoformat()
    text = f"SELECT MIN(AVG(price)) AS low FROM Prices [LANDMARK '{landmark}'] WITHIN 0.1 CONFIDENCE 90%"
    found = run_text(spark, tmp_path / "low", text, batches)
    exact = averages(batches, {f"s{number}" for number in range(8)})
    assert found
    for row in found:
        seen = [value for at, value in exact.items() if since_ms <= at <= row["ms"]]
        assert row["low"] == pytest.approx(min(seen), rel=1e-12)


def test_the_options_in_the_text_are_those_of_python(spark: SparkSession, tmp_path: Path) -> None:
    """With a capacity of one, another order gives other answers; the text and Python must agree on each."""
    batches = micro_batches(40, warm_up=20)
    text = "SELECT symbol, SUM(price) AS value FROM Prices GROUP BY symbol WITHIN 0.5 CONFIDENCE 90%"
    found: dict[str, list[tuple[Any, ...]]] = {}
    for order in ("edf", "fifo"):
        rows = run_text(spark, tmp_path / order, f"{text} USING (method brownian, capacity 1, order {order})", batches)
        found[order] = sorted((row["symbol"], row["ms"], row["value"]) for row in rows)
        root = tmp_path / f"python-{order}"
        deferral = sw.Deferral("brownian", capacity=1, order=order)
        rows = run_text(spark, root, text, batches, deferral=deferral)
        assert sorted((row["symbol"], row["ms"], row["value"]) for row in rows) == found[order]
    assert found["edf"] != found["fifo"]
    exact = {(row["symbol"], ORIGIN_S * 1000 + tick_of(row) * TICK_MS): row["price"] for b in batches for row in b}
    assert all(exact[symbol, ms] == value for symbol, ms, value in found["edf"])


def test_the_report_names_the_streams_whose_increments_are_not_normal(spark: SparkSession, tmp_path: Path) -> None:
    """Every sixteenth micro-batch tests one stream; a stream that jumps has no normal increments."""
    draw, size = np.random.default_rng(4), 40
    values = np.cumsum(np.where(np.arange(size) % 10 == 0, 50.0, 0.01) * draw.standard_normal(size))
    rows = [{"symbol": "jumps", "ts": iso(ORIGIN_S * 1000 + at), "price": value} for at, value in enumerate(values)]
    root = tmp_path
    run_text(
        spark, root, "SELECT AVG(price) FROM Prices WITHIN 1 CONFIDENCE 90%", [rows[:23], *([row] for row in rows[23:])]
    )
    (report,) = sw.report(spark_query(root)).precision
    assert list(report.as_json()["normality"]) == ["jumps"]
    assert report.as_json()["normality"]["jumps"] < 0.05
    assert "normal in 0 of 1 streams tested, not in jumps (p " in str(report)


def test_sql_accepts_within_and_refuses_what_it_cannot_honour(spark: SparkSession, tmp_path: Path) -> None:
    stream = FileStream(spark, tmp_path / "in", SCHEMA)
    sw.stream("Prices", stream.read_stream(), key="symbol", event_time="ts", value="price")
    text = "SELECT AVG(price) FROM Prices WITHIN 2 CONFIDENCE 95%"
    found = sw.sql(spark, text, deferral=sw.Deferral("economical", k=50))
    assert found.isStreaming
    assert found.columns == ["at", "value", "drift", "error_bound", "interrupted_streams", "next_evaluation_at"]
    with pytest.raises(InvalidStream, match="not-standing"):
        sw.sql(spark, "SELECT MAX(price) FROM Prices [RANGE 1 hour] WITHIN 2 CONFIDENCE 95%")
    with pytest.raises(sw.QueryTextError, match="unknown-table"):
        sw.sql(spark, "SELECT AVG(price) FROM Nothing WITHIN 2 CONFIDENCE 95%")
    with pytest.raises(UnknownName, match="unknown-deferral-method"):
        sw.sql(spark, text, deferral="guess")
    with pytest.raises(InvalidOption, match="two-deferrals"):
        sw.sql(spark, f"{text} USING (k 50)", deferral="economical")
    with pytest.raises(InvalidOption, match="order-without-limit"):
        standing_query(spark, parse(f"{text} USING (order edf)"), _limited=False)
    with pytest.raises(InvalidOption, match="option-not-used"):
        sw.sql(spark, "SELECT MAX(price) FROM Prices [RANGE 1 hour DRATIO 1%]", deferral="economical")
