"""Windows on real Spark: each streaming result equals what a batch job computes from the same rows."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

import slackwater as sw
from tests.helpers.controllers import Trailing
from tests.helpers.harness import FileStream, batches, collected, promise_of, settle, start, values
from tests.helpers.side_by_side import Case, Outcome, run_side_by_side

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("known_controllers")]


def trailing(wait_ms: float) -> dict[str, Any]:
    """The option of a query whose heartbeat trails the highest value by a constant."""
    return {"method": sw.Method(Trailing.name, wait_ms=wait_ms)}


@pytest.fixture(scope="module")
def ran(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory, known_controllers: None) -> dict[str, Outcome]:
    """All queries of ``CASES`` over one stream; ``all_rows`` are its rows."""
    places = [("s0", "hall"), ("s1", "hall"), ("s2", "yard")]
    spark.createDataFrame(places, "sensor string, place string").createOrReplaceTempView("names")
    folder = tmp_path_factory.mktemp("windows")
    source = FileStream(spark, folder / "in")
    outcomes = run_side_by_side(source, folder, batches(1), CASES)
    source.read_batch().createOrReplaceTempView("all_rows")
    return outcomes


AGGREGATES = (
    "sensor, COUNT(*) AS n, SUM(value) AS total, AVG(value) AS mean, MIN(value) AS least, MAX(value) AS most, "
    "STDDEV(value) AS spread, VAR_POP(value) AS variance, COUNT(DISTINCT id % 3) AS kinds, "
    "SUM(value) FILTER (WHERE value > 50) AS high, COUNT_IF(value > 90) AS top"
)
# Aggregates whose type is not simply that of the parts that panes keep for them.
TYPED = {
    "total": "SUM(CAST(value AS DECIMAL(10, 2)))",
    "mean": "AVG(CAST(value AS DECIMAL(10, 2)))",
    "mean_high": "AVG(CAST(value AS DECIMAL(24, 12))) FILTER (WHERE value > 50)",
    "mean_of_none": "AVG(CAST(value AS DECIMAL(10, 2))) FILTER (WHERE value < 0)",
    "mean_delay": "AVG(arrived - ts)",
    "mean_number": "AVG(id)",
    "spread": "STDDEV(CAST(value AS DECIMAL(10, 2)))",
    "most": "MAX(CAST(value AS DECIMAL(10, 2)))",
    "numbers": "COUNT(DISTINCT id)",
    "low": "PERCENTILE_APPROX(id, 0)",
    "edges": "PERCENTILE_APPROX(CAST(value AS DECIMAL(10, 2)), array(0, 1))",
}
TYPED_COLUMNS = ", ".join(f"{sql} AS {name}" for name, sql in TYPED.items())
PLACED = "n.place, PERCENTILE(value, 0.5) AS middle, COUNT(*) AS n, n.place || '!' AS shout"
JOINED = "JOIN names AS n ON n.sensor = s.sensor WHERE value > 3"
# Times to the microsecond, doubles that are not a number, nulls and structs; some keys differ by a microsecond.
KEYS = {
    "at": "timestamp_micros(1700000000000000 + id % 3)",
    "near": "IF(id % 5 = 0, double('NaN'), id % 2 / 3.0D)",
    "pair": "IF(id % 4 = 0, NULL, named_struct('a', CAST(id % 2 AS DECIMAL(20, 10)), 'b', DATE'0001-01-01'))",
}
KEY_COLUMNS = ", ".join(f"{key} AS {name}" for name, key in KEYS.items())
LANDMARK = "2023-11-14 22:13:25"
CASES = {
    "panes": Case(
        f"SELECT {AGGREGATES} FROM Sensors [RANGE 10 seconds SLIDE 4 seconds ARRIVAL arrived LATE PANES] "
        "GROUP BY sensor",
        trailing(2000.0),
        restart_after=1,
    ),
    **{
        f"typed-{length}": Case(
            f"SELECT sensor, {TYPED_COLUMNS} FROM Sensors "
            f"[RANGE {length} seconds SLIDE 4 seconds ARRIVAL arrived LATE PANES] GROUP BY sensor",
            trailing(2000.0),
        )
        for length in (4, 8)
    },
    "joined": Case(
        f"WITH w AS (SELECT {PLACED} FROM Sensors [RANGE 10 seconds SLIDE 5 seconds ARRIVAL arrived] AS s {JOINED} "
        "GROUP BY n.place HAVING COUNT(*) > 2) SELECT window_end, place, middle, n, shout FROM w",
        trailing(40_000.0),
    ),
    "per-row": Case(
        "SELECT sensor, MAX(value) AS most, AVG(value) AS mean, COUNT(*) AS n FROM Sensors "
        "[RANGE 6 seconds ARRIVAL arrived] WHERE value > 3 GROUP BY sensor",
        trailing(20_000.0),
        restart_after=1,
    ),
    "keys": Case(
        f"SELECT {KEY_COLUMNS}, COUNT(*) AS n FROM Sensors [RANGE 6 seconds ARRIVAL arrived] "
        f"GROUP BY {', '.join(KEYS.values())}",
        trailing(20_000.0),
    ),
    "landmark": Case(
        "SELECT sensor, MAX(value) AS most, AVG(value) AS mean, COUNT(*) AS n FROM Sensors "
        f"[LANDMARK '{LANDMARK}' SLIDE 2 seconds ARRIVAL arrived] GROUP BY sensor",
        trailing(15_000.0),
        restart_after=2,
    ),
    "tuples": Case(
        "SELECT AVG(value) AS mean, MIN(value) AS least FROM Sensors "
        "[RANGE 10 tuples SLIDE 5 tuples WATTR id DRATIO 1%]",
        trailing(30.0),
    ),
}


def test_published_windows_and_late_panes_make_the_exact_answer(spark: SparkSession, ran: dict[str, Outcome]) -> None:
    published, promise = ran["panes"].published, ran["panes"].promise
    on_time = published.where("not late")
    assert promise.ledger.late > 0 and promise.ledger.input == 240
    assert published.where("late").count() > 0, "some windows were missed"
    assert on_time.count() == on_time.select("window_end", "sensor").distinct().count(), "each window once"

    closed = promise.heartbeat
    exact = spark.sql(
        f"SELECT w.start AS window_start, w.end AS window_end, {AGGREGATES} "
        "FROM (SELECT *, window(ts, '10 seconds', '4 seconds') AS w FROM all_rows) GROUP BY w, sensor"
    ).where(F.col("window_end") <= F.lit(closed))
    found = sw.reconcile(on_time, published.where("late")).where(F.col("window_end") <= F.lit(closed))
    assert values(found) == values(exact.select(*found.columns))
    assert exact.count() > 10


@pytest.mark.parametrize("windows", [1, 5, 200])
def test_aggregates_have_the_types_that_spark_gives_them(spark: SparkSession, tmp_path: Path, windows: int) -> None:
    source = FileStream(spark, tmp_path / "in")
    sw.stream("Sensors", source.read_stream(), event_time="ts")
    clause = f"RANGE {windows} minutes SLIDE 1 minute LATE PANES"
    made = sw.sql(spark, f"SELECT {TYPED_COLUMNS} FROM Sensors [{clause}]", location=str(tmp_path / "promise"))
    empty = spark.createDataFrame([], source.read_stream().schema)
    plain = dict(empty.selectExpr(*(f"{sql} AS {name}" for name, sql in TYPED.items())).dtypes)
    assert {name: kind for name, kind in made.dtypes if name in plain} == plain
    exact = sw.reconcile(spark.createDataFrame([], made.schema))
    assert {name: kind for name, kind in exact.dtypes if name in plain} == plain


@pytest.mark.parametrize("length", [4, 8])
def test_decimals_and_intervals_are_what_spark_makes_of_them(
    spark: SparkSession, ran: dict[str, Outcome], length: int
) -> None:
    published, promise = ran[f"typed-{length}"].published, ran[f"typed-{length}"].promise
    exact = spark.sql(
        f"SELECT w.start AS window_start, w.end AS window_end, sensor, {TYPED_COLUMNS} "
        f"FROM (SELECT *, window(ts, '{length} seconds', '4 seconds') AS w FROM all_rows) GROUP BY w, sensor"
    ).where(F.col("window_end") <= F.lit(promise.heartbeat))
    found = sw.reconcile(published).where(F.col("window_end") <= F.lit(promise.heartbeat))
    assert values(found) == values(exact)
    assert exact.count() > 10


def test_tables_with_the_parts_of_older_versions_are_still_merged(spark: SparkSession) -> None:
    """Outputs were made of parts before aggregates had columns of their own."""
    recipe = {"keys": [], "parts": [["part_0_0", "SUM(part_0_0)"]], "outputs": [["n", "(part_0_0) + 1"]]}
    parts = F.struct("part_0_0").alias("parts", metadata={"slackwater": json.dumps(recipe)})
    counts = spark.createDataFrame([(0, 2, False), (0, 3, True)], "at long, part_0_0 long, late boolean")
    edges = [F.timestamp_seconds("at").alias(name) for name in ("window_start", "window_end")]
    assert [row["n"] for row in sw.reconcile(counts.select(*edges, "late", parts)).collect()] == [6]


def test_aggregates_that_cannot_be_merged_with_joins_and_having(spark: SparkSession, ran: dict[str, Outcome]) -> None:
    published, promise = ran["joined"].published, ran["joined"].promise
    assert promise.ledger.late == 0
    exact = spark.sql(
        f"SELECT w.end AS window_end, {PLACED} "
        f"FROM (SELECT *, window(ts, '10 seconds', '5 seconds') AS w FROM all_rows) AS s {JOINED} "
        "GROUP BY w, n.place HAVING COUNT(*) > 2"
    ).where(F.col("window_end") <= F.lit(promise.heartbeat))
    assert values(published) == values(exact)


def test_one_result_per_row(spark: SparkSession, ran: dict[str, Outcome]) -> None:
    published, promise = ran["per-row"].published, ran["per-row"].promise
    assert promise.ledger.late == 0
    over = "OVER (PARTITION BY sensor ORDER BY unix_micros(ts) RANGE BETWEEN 5999999 PRECEDING AND CURRENT ROW)"
    exact = spark.sql(
        "SELECT ts - INTERVAL 6 SECONDS AS window_start, ts AS window_end, sensor, MAX(value) "
        f"{over} AS most, AVG(value) {over} AS mean, COUNT(*) {over} AS n FROM all_rows WHERE value > 3"
    ).where(F.col("window_end") < F.lit(promise.heartbeat))
    assert exact.count() > 50
    assert values(published) == values(exact)


def test_keys_of_any_type_come_back_as_they_were(spark: SparkSession, ran: dict[str, Outcome]) -> None:
    published, promise = ran["keys"].published, ran["keys"].promise
    grouped = ", ".join(KEYS.values())
    over = f"PARTITION BY {grouped} ORDER BY unix_micros(ts) RANGE BETWEEN 5999999 PRECEDING AND CURRENT ROW"
    exact = spark.sql(
        f"SELECT ts - INTERVAL 6 SECONDS AS window_start, ts AS window_end, {KEY_COLUMNS}, "
        f"COUNT(*) OVER ({over}) AS n FROM all_rows"
    ).where(F.col("window_end") < F.lit(promise.heartbeat))
    assert exact.count() > 50
    assert repr(values(published)) == repr(values(exact)), "by their texts, since NaN is not equal to itself"


def test_a_landmark_window(spark: SparkSession, ran: dict[str, Outcome]) -> None:
    published, promise = ran["landmark"].published, ran["landmark"].promise
    assert promise.ledger.late == 0
    exact = spark.sql(
        f"WITH since AS (SELECT * FROM all_rows WHERE ts >= timestamp'{LANDMARK}') "
        f"SELECT timestamp'{LANDMARK}' AS window_start, e AS window_end, s.sensor, "
        "MAX(value) AS most, AVG(value) AS mean, COUNT(*) AS n FROM since AS s JOIN "
        "(SELECT DISTINCT sensor, window(ts, '2 seconds', '2 seconds', '1 second').end AS e FROM since) AS ends "
        "ON ends.sensor = s.sensor AND s.ts < e GROUP BY e, s.sensor"
    ).where(F.col("window_end") <= F.lit(promise.heartbeat))
    assert exact.count() > 10
    assert values(published) == values(exact)


def test_tuples_over_a_number(spark: SparkSession, ran: dict[str, Outcome]) -> None:
    published, promise = ran["tuples"].published, ran["tuples"].promise
    assert promise.ledger.input == 240 and promise.ledger.late == 0
    over = "OVER (ORDER BY id ROWS BETWEEN 9 PRECEDING AND CURRENT ROW)"
    exact = spark.sql(
        f"SELECT * FROM (SELECT MIN(id) {over} AS window_start, id AS window_end, AVG(value) {over} AS mean, "
        f"MIN(value) {over} AS least, ROW_NUMBER() OVER (ORDER BY id) AS i FROM all_rows) "
        "WHERE i % 5 = 0 AND window_end < 209"
    ).drop("i")
    assert values(published) == values(exact)


def test_windows_over_a_number_in_python(spark: SparkSession, tmp_path: Path) -> None:
    source = FileStream(spark, tmp_path / "in")
    for batch in batches(5):
        source.put([*batch, {**batch[0], "id": None}])  # a row without a number must not set the clock
    made = (
        sw.window(
            source.read_stream(),
            range=100,
            slide=25,
            event_time="id",
            method=sw.Method(Trailing.name, wait_ms=5.0),
            location=str(tmp_path / "promise"),
        )
        .groupBy("sensor")
        .agg(F.sum("value").alias("total"), "LAST(value) AS latest")
    )
    query = start(made, tmp_path)
    settle(query)
    query.stop()
    exact = (
        source.read_batch()
        .selectExpr("explode(sequence(id - id % 25 - 75, id - id % 25, 25)) AS window_start", "*")
        .groupBy("window_start", F.expr("window_start + 100 AS window_end"), "sensor")
        .agg(F.sum("value").alias("total"), F.max_by("value", "id").alias("latest"))
        .where("window_end <= 234")
    )
    assert values(collected(spark, tmp_path)) == values(exact)


def test_rows_are_delivered_in_order(spark: SparkSession, tmp_path: Path) -> None:
    source = FileStream(spark, tmp_path / "in")
    delivered: list[list[Any]] = []
    events = sw.ordered(
        source.read_stream(),
        event_time="ts",
        drop_ratio=0,
        arrival="arrived",
        method=sw.Method(Trailing.name, wait_ms=20_000.0),
        location=str(tmp_path / "promise"),
    )
    query = (
        events.writeStream.foreachBatch(lambda frame, _: delivered.append(frame.select("ts", "id").collect()))
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .start()
    )
    for batch in batches(2):
        source.put(batch)
        settle(query)
    heartbeat = promise_of(query).heartbeat
    query.stop()
    exact = source.read_batch().where(F.col("ts") < F.lit(heartbeat)).orderBy("ts").select("ts", "id").collect()
    assert len(exact) > 50
    assert [row for batch in delivered for row in batch] == exact
