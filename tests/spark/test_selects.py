"""CTEs, subqueries and odd names around a window: each streaming result equals what a batch job computes."""

from __future__ import annotations

from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

import slackwater as sw
from slackwater.plan.functions import AGGREGATES
from tests.helpers.controllers import Trailing
from tests.helpers.harness import FileStream, batches, values
from tests.helpers.side_by_side import Case, Outcome, run_side_by_side

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("known_controllers")]
EVEN = "IF(id % 2 = 0, value, NULL)"


def trailing(wait_ms: float = 20_000.0) -> dict[str, Any]:
    """The option of a query whose heartbeat trails the highest value by a constant."""
    return {"method": sw.Method(Trailing.name, wait_ms=wait_ms)}


NOT_YARD = "WITH n AS (SELECT sensor, place FROM names WHERE place <> 'yard')"
NOT_YARD_HAVING = "HAVING COUNT(*) > (SELECT COUNT(*) FROM n) AND place > 'A'"
ALL_PLACES = "WITH n AS (SELECT sensor, place FROM names)"
ALL_PLACES_HAVING = "HAVING COUNT(*) > (SELECT COUNT(*) FROM n)"
PLAIN = "n.place, MAX_BY(value, ts) AS latest, CORR(value, id) AS slope, MODE() WITHIN GROUP (ORDER BY 1) AS one"
KEY = "NAMED_STRUCT('a`b, (', sensor, 'odd', id % 2)"
CASES = {
    "panes": Case(
        f"{NOT_YARD} SELECT window_end AS t, UPPER(n.place) AS place, COUNT(value, {EVEN}) AS pairs, "
        f"FIRST({EVEN}, true) AS first_even, LAST({EVEN}) IGNORE NULLS AS last_even, ANY(value > 90) AS high, "
        "APPROX_COUNT_DISTINCT(value) AS kinds, APPROX_COUNT_DISTINCT(ts, 0.05) AS times, "
        "(SELECT MAX(place) FROM names) AS last_place, pairs * 2 AS twice "
        "FROM `the stream` [RANGE 10 seconds SLIDE 5 seconds ARRIVAL Arrived] AS `s``, reflect(` "
        f"JOIN n ON n.sensor = `s``, reflect(`.sensor GROUP BY place {NOT_YARD_HAVING}",
        trailing(),
    ),
    "late-panes": Case(
        f"SELECT sensor, window_start AS since, COUNT(value, {EVEN}) AS pairs, FIRST({EVEN}, true) AS first_even, "
        "ANY_VALUE(sensor) FILTER (WHERE value > 90) AS high "
        "FROM `the stream` [RANGE 10 seconds SLIDE 5 seconds ARRIVAL arrived LATE PANES] GROUP BY sensor",
        trailing(2000.0),
    ),
    "plain": Case(
        f"{ALL_PLACES}, w AS (SELECT window_end AS t, {PLAIN} "
        "FROM `the stream` [RANGE 10 seconds SLIDE 5 seconds] AS s "
        f"JOIN n ON n.sensor = s.sensor GROUP BY n.place {ALL_PLACES_HAVING}) "
        "SELECT w.*, n.sensor FROM w JOIN n ON n.place = w.place",
        trailing(),
    ),
    "per-row": Case(
        "WITH n AS (SELECT sensor AS name FROM names WHERE place <> 'yard') "
        f"SELECT window_end AS t, {KEY} AS k, COUNT(value, {EVEN}) AS pairs, MAX(value) AS value "
        "FROM `the stream` [RANGE 6 seconds WATTR TS ARRIVAL ARRIVED] AS `a``b` JOIN n ON n.name = `a``b`.sensor "
        "GROUP BY k HAVING MAX(value) > (SELECT COUNT(*) FROM n)",
        trailing(),
    ),
}


@pytest.fixture(scope="module")
def ran(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory, known_controllers: None) -> dict[str, Outcome]:
    """All queries of ``CASES`` over one stream; ``all_rows`` are its rows with their windows of ten seconds."""
    places = [("s0", "hall"), ("s1", "hall"), ("s2", "yard"), ("s3", "shed")]
    spark.createDataFrame(places, "sensor string, place string").createOrReplaceTempView("names")
    folder = tmp_path_factory.mktemp("selects")
    source = FileStream(spark, folder / "in")
    outcomes = run_side_by_side(source, folder, batches(7), CASES, stream="`the stream`")
    source.read_batch().withColumn("w", F.window("ts", "10 seconds", "5 seconds")).createOrReplaceTempView("all_rows")
    source.read_batch().createOrReplaceTempView("single_rows")
    return outcomes


def test_ctes_subqueries_and_names_in_panes(spark: SparkSession, ran: dict[str, Outcome]) -> None:
    published, promise = ran["panes"].published, ran["panes"].promise
    assert promise.ledger.late == 0
    exact = spark.sql(
        f"{NOT_YARD} SELECT w.start AS window_start, w.end AS window_end, w.end AS t, UPPER(n.place) AS place, "
        f"COUNT(value, {EVEN}) AS pairs, MIN_BY(value, ts) FILTER (WHERE id % 2 = 0) AS first_even, "
        "MAX_BY(value, ts) FILTER (WHERE id % 2 = 0) AS last_even, ANY(value > 90) AS high, "
        "COUNT(DISTINCT value) AS kinds, COUNT(DISTINCT ts) AS times, (SELECT MAX(place) FROM names) AS last_place, "
        f"2 * COUNT(value, {EVEN}) AS twice FROM all_rows AS s JOIN n ON n.sensor = s.sensor "
        f"GROUP BY w, place {NOT_YARD_HAVING}"
    ).where(F.col("window_end") <= F.lit(promise.heartbeat))
    assert published.columns == exact.columns
    assert values(published) == values(exact) and exact.count() > 5


def test_late_panes(spark: SparkSession, ran: dict[str, Outcome]) -> None:
    published, promise = ran["late-panes"].published, ran["late-panes"].promise
    assert promise.ledger.late > 0
    exact = spark.sql(
        "SELECT w.start AS window_start, w.end AS window_end, sensor, w.start AS since, "
        f"COUNT(value, {EVEN}) AS pairs, MIN_BY(value, ts) FILTER (WHERE id % 2 = 0) AS first_even, "
        "ANY_VALUE(sensor) FILTER (WHERE value > 90) AS high FROM all_rows GROUP BY w, sensor"
    ).where(F.col("window_end") <= F.lit(promise.heartbeat))
    found = sw.reconcile(published).where(F.col("window_end") <= F.lit(promise.heartbeat))
    assert values(found) == values(exact) and exact.count() > 10


def test_aggregates_without_panes(spark: SparkSession, ran: dict[str, Outcome]) -> None:
    published, promise = ran["plain"].published, ran["plain"].promise
    exact = spark.sql(
        f"{ALL_PLACES}, w AS (SELECT w.start AS window_start, w.end AS window_end, w.end AS t, {PLAIN} "
        f"FROM all_rows AS s JOIN n ON n.sensor = s.sensor GROUP BY w, n.place {ALL_PLACES_HAVING}) "
        "SELECT w.*, n.sensor FROM w JOIN n ON n.place = w.place"
    ).where(F.col("window_end") <= F.lit(promise.heartbeat))
    assert promise.ledger.late == 0
    assert values(published) == values(exact) and exact.count() > 5


def test_one_result_per_row(spark: SparkSession, ran: dict[str, Outcome]) -> None:
    published, promise = ran["per-row"].published, ran["per-row"].promise
    assert promise.ledger.late == 0
    over = "OVER (PARTITION BY sensor, id % 2 ORDER BY unix_micros(ts) RANGE BETWEEN 5999999 PRECEDING AND CURRENT ROW)"
    exact = spark.sql(
        f"SELECT ts - INTERVAL 6 SECONDS AS window_start, ts AS window_end, ts AS t, {KEY} AS k, "
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
