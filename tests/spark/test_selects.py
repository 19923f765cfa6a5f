"""SELECTs around a window, in many words: each streaming result equals what a batch job computes from the same rows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import slackwater as sw
from slackwater.plan.functions import AGGREGATES
from tests.helpers.harness import FileStream, batches, collected, promise_of, settle, start, values

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("known_controllers")]
EVEN = "IF(id % 2 = 0, value, NULL)"


@pytest.fixture(autouse=True)
def _names(spark: SparkSession) -> None:
    places = [("s0", "hall"), ("s1", "hall"), ("s2", "yard"), ("s3", "shed")]
    spark.createDataFrame(places, "sensor string, place string").createOrReplaceTempView("names")


def run(spark: SparkSession, folder: Path, text: str, wait_ms: float = 20_000.0) -> tuple[DataFrame, Any]:
    """What the query publishes, and its promise; ``all_rows`` are the rows with their windows of ten seconds."""
    source = FileStream(spark, folder / "in")
    sw.stream("`the stream`", source.read_stream(), event_time="ts")
    options: dict[str, Any] = {"method": sw.Method("test-trailing", wait_ms=wait_ms), "shards": 2}
    query = start(sw.sql(spark, text, location=str(folder / "promise"), **options), folder)
    for batch in batches(7):
        source.put(batch)
        settle(query)
    promise = promise_of(query)
    query.stop()
    rows = source.read_batch().withColumn("w", F.window("ts", "10 seconds", "5 seconds"))
    rows.createOrReplaceTempView("all_rows")
    source.read_batch().createOrReplaceTempView("single_rows")
    return collected(spark, folder), promise


def test_ctes_subqueries_and_names_in_panes(spark: SparkSession, tmp_path: Path) -> None:
    cte = "WITH n AS (SELECT sensor, place FROM names WHERE place <> 'yard')"
    having = "HAVING COUNT(*) > (SELECT COUNT(*) FROM n) AND place > 'A'"
    published, promise = run(
        spark,
        tmp_path,
        f"{cte} SELECT window_end AS t, UPPER(n.place) AS place, COUNT(value, {EVEN}) AS pairs, "
        f"FIRST({EVEN}, true) AS first_even, LAST({EVEN}) IGNORE NULLS AS last_even, ANY(value > 90) AS high, "
        "APPROX_COUNT_DISTINCT(value) AS kinds, APPROX_COUNT_DISTINCT(ts, 0.05) AS times, "
        "(SELECT MAX(place) FROM names) AS last_place, pairs * 2 AS twice "
        "FROM `the stream` [RANGE 10 seconds SLIDE 5 seconds ARRIVAL Arrived] AS `s``, reflect(` "
        f"JOIN n ON n.sensor = `s``, reflect(`.sensor GROUP BY place {having}",
    )
    assert promise.ledger.late == 0
    exact = spark.sql(
        f"{cte} SELECT w.start AS window_start, w.end AS window_end, w.end AS t, UPPER(n.place) AS place, "
        f"COUNT(value, {EVEN}) AS pairs, MIN_BY(value, ts) FILTER (WHERE id % 2 = 0) AS first_even, "
        "MAX_BY(value, ts) FILTER (WHERE id % 2 = 0) AS last_even, ANY(value > 90) AS high, "
        "COUNT(DISTINCT value) AS kinds, COUNT(DISTINCT ts) AS times, (SELECT MAX(place) FROM names) AS last_place, "
        f"2 * COUNT(value, {EVEN}) AS twice FROM all_rows AS s JOIN n ON n.sensor = s.sensor GROUP BY w, place {having}"
    ).where(F.col("window_end") <= F.lit(promise.heartbeat))
    assert published.columns == exact.columns
    assert values(published) == values(exact) and exact.count() > 5


def test_late_panes_of_the_same(spark: SparkSession, tmp_path: Path) -> None:
    published, promise = run(
        spark,
        tmp_path,
        f"SELECT sensor, window_start AS since, COUNT(value, {EVEN}) AS pairs, FIRST({EVEN}, true) AS first_even, "
        "ANY_VALUE(sensor) FILTER (WHERE value > 90) AS high "
        "FROM `the stream` [RANGE 10 seconds SLIDE 5 seconds ARRIVAL arrived LATE PANES] GROUP BY sensor",
        wait_ms=2000.0,
    )
    assert promise.ledger.late > 0
    exact = spark.sql(
        "SELECT w.start AS window_start, w.end AS window_end, sensor, w.start AS since, "
        f"COUNT(value, {EVEN}) AS pairs, MIN_BY(value, ts) FILTER (WHERE id % 2 = 0) AS first_even, "
        "ANY_VALUE(sensor) FILTER (WHERE value > 90) AS high FROM all_rows GROUP BY w, sensor"
    ).where(F.col("window_end") <= F.lit(promise.heartbeat))
    found = sw.reconcile(published).where(F.col("window_end") <= F.lit(promise.heartbeat))
    assert values(found) == values(exact) and exact.count() > 10


def test_the_same_by_the_plain_route(spark: SparkSession, tmp_path: Path) -> None:
    cte = "WITH n AS (SELECT sensor, place FROM names)"
    body = "n.place, MAX_BY(value, ts) AS latest, CORR(value, id) AS slope, MODE() WITHIN GROUP (ORDER BY 1) AS one"
    having = "HAVING COUNT(*) > (SELECT COUNT(*) FROM n)"
    published, promise = run(
        spark,
        tmp_path,
        f"{cte}, w AS (SELECT window_end AS t, {body} FROM `the stream` [RANGE 10 seconds SLIDE 5 seconds] AS s "
        f"JOIN n ON n.sensor = s.sensor GROUP BY n.place {having}) "
        "SELECT w.*, n.sensor FROM w JOIN n ON n.place = w.place",
    )
    exact = spark.sql(
        f"{cte}, w AS (SELECT w.start AS window_start, w.end AS window_end, w.end AS t, {body} FROM all_rows AS s "
        f"JOIN n ON n.sensor = s.sensor GROUP BY w, n.place {having}) "
        "SELECT w.*, n.sensor FROM w JOIN n ON n.place = w.place"
    ).where(F.col("window_end") <= F.lit(promise.heartbeat))
    assert promise.ledger.late == 0
    assert values(published) == values(exact) and exact.count() > 5


def test_the_same_per_row(spark: SparkSession, tmp_path: Path) -> None:
    key = "NAMED_STRUCT('a`b, (', sensor, 'odd', id % 2)"
    published, promise = run(
        spark,
        tmp_path,
        "WITH n AS (SELECT sensor AS name FROM names WHERE place <> 'yard') "
        f"SELECT window_end AS t, {key} AS k, COUNT(value, {EVEN}) AS pairs, MAX(value) AS value "
        "FROM `the stream` [RANGE 6 seconds WATTR TS ARRIVAL ARRIVED] AS `a``b` JOIN n ON n.name = `a``b`.sensor "
        "GROUP BY k HAVING MAX(value) > (SELECT COUNT(*) FROM n)",
    )
    assert promise.ledger.late == 0
    over = "OVER (PARTITION BY sensor, id % 2 ORDER BY unix_micros(ts) RANGE BETWEEN 5999999 PRECEDING AND CURRENT ROW)"
    exact = spark.sql(
        f"SELECT ts - INTERVAL 6 SECONDS AS window_start, ts AS window_end, ts AS t, {key} AS k, "
        f"COUNT(value, {EVEN}) {over} AS pairs, MAX(value) {over} AS value FROM single_rows WHERE sensor <> 's2'"
    ).where((F.col("window_end") < F.lit(promise.heartbeat)) & (F.col("value") > 3))
    assert values(published) == values(exact) and exact.count() > 50


def test_the_aggregates_known_are_those_of_spark(spark: SparkSession) -> None:
    session: Any = spark
    functions = session._jsparkSession.sessionState().functionRegistry()
    names = functions.listFunction().iterator()
    found = set()
    while names.hasNext():
        name = names.next()
        if functions.lookupFunction(name).get().getGroup() == "agg_funcs":
            found.add(str(name.funcName()))
    assert found - AGGREGATES <= {"grouping", "grouping_id", "measure"}
