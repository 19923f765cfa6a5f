"""After a SIGKILL in mid-batch every result is published once and every row is counted once."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import slackwater as sw
from slackwater.control.ledger import Ledger
from tests.helpers.harness import FileStream, timestamp, values
from tests.helpers.killable_windows import FIRST_DOOMED, LANDMARK, LONGEST_S, NUMBERED_SCHEMA, POINTS, PUNCTUAL, TEXTS
from tests.helpers.processes import start_module

pytestmark = [pytest.mark.spark, pytest.mark.full]
EACH, EACH_S = 40, 5
NUMBER_ORIGIN = 100_000_000_000
PUNCTUAL_ONLY = ["promised", *(name for name, text in TEXTS.items() if "FROM Punctual" in text.sql)]


def file_rows(number: int) -> list[dict[str, Any]]:
    """Five seconds of rows, with times in tenths of a second so that some are equal, stragglers, and one null time.

    From the fourth file on, some rows are below every possible heartbeat.
    """
    rng = np.random.default_rng(number)
    arrivals = number * EACH_S + np.sort(rng.uniform(0, EACH_S, EACH))
    lateness = np.minimum(rng.exponential(1.0, EACH), LONGEST_S - 0.2)
    lateness[::10] += 10
    tenths = np.floor((arrivals - lateness) * 10).astype(int)
    if number >= 3:
        tenths[[5, 25]] = -150, -140
    return [
        {
            "id": number * EACH + i,
            "ts": None if i == 20 else timestamp(tenth / 10),
            "arrived": timestamp(arrival),
            "sensor": f"s{rng.integers(4)}",
            "value": float(rng.integers(100)),
            "number": None if i == 20 else 1000 + tenth,
        }
        for i, (arrival, tenth) in enumerate(zip(arrivals.tolist(), tenths.tolist(), strict=True))
    ]


def kill_in_mid_batch(root: Path) -> None:
    (root / "hanging").mkdir()
    doomed = start_module("killable_windows", str(root), "doomed")
    while {path.name for path in (root / "hanging").iterdir()} != set(POINTS):
        with pytest.raises(subprocess.TimeoutExpired):  # it must not end by itself
            doomed.wait(timeout=0.2)
    os.killpg(doomed.pid, signal.SIGKILL)
    doomed.wait()


@dataclass(frozen=True)
class Run:
    """The stream, the published results and the final reports of all queries."""

    root: Path
    source: FileStream
    reports: dict[str, Any]

    def published(self, name: str) -> DataFrame:
        return self.source.spark.read.parquet(str(self.root / "out" / name))

    def ledger(self, name: str) -> Ledger:
        return Ledger.from_json(self.reports[name]["ledger"])

    def heartbeat_ms(self, name: str) -> int:
        """The heartbeat that the published results have reached, in units of the number if there is one."""
        ms = int(self.reports[name]["heartbeat_ms"])
        return ms - NUMBER_ORIGIN if name in TEXTS and "WATTR number" in TEXTS[name].sql else ms


@pytest.fixture(scope="module")
def killed(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Run:
    root = tmp_path_factory.mktemp("killed")
    source = FileStream(spark, root / "in", NUMBERED_SCHEMA)
    for number in range(FIRST_DOOMED + 1):
        source.put(file_rows(number))
    kill_in_mid_batch(root)
    source.put(file_rows(FIRST_DOOMED + 1))
    assert start_module("killable_windows", str(root)).wait() == 0
    return Run(root, source, json.loads((root / "reports.json").read_text()))


@pytest.mark.parametrize("name", POINTS)
def test_every_row_is_counted_once(name: str, killed: Run) -> None:
    everything = killed.source.read_batch()
    given = everything.where(PUNCTUAL) if name in PUNCTUAL_ONLY else everything
    ledger = killed.ledger(name)
    assert ledger.on_time + ledger.late + ledger.shed + ledger.invalid == given.count()
    assert ledger.invalid == given.where("ts IS NULL").count()
    assert (ledger.late > 0) == (name not in PUNCTUAL_ONLY), "some are below every heartbeat"
    assert ledger.unreported_batches == 0


EVENTS = "SELECT * FROM {rows} WHERE ts IS NOT NULL"
ON_TIME = f"({EVENTS} AND id NOT IN (SELECT id FROM {{late}}))"
AGGREGATES = "COUNT(*) AS n, SUM(value) AS total"
PER_ROW = ("per_row", "tuples", "tuples_per_sensor", "landmark")
EXACT = {
    # with the late panes
    "panes": f"SELECT w.start AS window_start, w.end AS window_end, sensor, {AGGREGATES} "
    f"FROM (SELECT *, window(ts, '6 seconds', '2 seconds') AS w FROM ({EVENTS})) GROUP BY w, sensor",
    "panes_of_numbers": f"SELECT e - 60 AS window_start, e AS window_end, sensor, {AGGREGATES} "
    f"FROM (SELECT *, explode(sequence(number - number % 20 + 20, number - number % 20 + 60, 20)) AS e "
    f"FROM ({EVENTS})) GROUP BY e, sensor",
    "segments": f"SELECT e - 121 AS window_start, e AS window_end, sensor, {AGGREGATES} "
    f"FROM (SELECT *, explode(sequence(number + 1, number + 121)) AS e FROM ({EVENTS})) GROUP BY e, sensor",
    # a row counts in the windows that it did not miss
    "late_rows": f"SELECT w.start AS window_start, w.end AS window_end, sensor, {AGGREGATES} "
    f"FROM (SELECT *, window(ts, '6 seconds', '2 seconds') AS w FROM ({EVENTS})) AS rows LEFT ANTI JOIN "
    "(SELECT id, explode(missed.window_end) AS e FROM {late}) AS late ON rows.id = late.id AND w.end = e "
    "GROUP BY w, sensor",
    "per_row": "SELECT ts - INTERVAL 6 SECONDS AS window_start, ts AS window_end, sensor, "
    f"COUNT(*) OVER w AS n, SUM(value) OVER w AS total FROM {ON_TIME} WINDOW w AS "
    "(PARTITION BY sensor ORDER BY unix_micros(ts) RANGE BETWEEN 5999999 PRECEDING AND CURRENT ROW)",
    "tuples": "SELECT window_start, window_end, n, total FROM (SELECT "
    "MIN(ts) OVER w AS window_start, ts AS window_end, "
    "COUNT(*) OVER w AS n, SUM(value) OVER w AS total, ROW_NUMBER() OVER (ORDER BY ts, id) AS i "
    f"FROM ({EVENTS} AND {PUNCTUAL}) WINDOW w AS (ORDER BY ts, id ROWS 9 PRECEDING)) WHERE i % 4 = 0",
    "tuples_per_sensor": "SELECT window_start, window_end, sensor, n, total FROM (SELECT MIN(number) OVER w AS "
    "window_start, number AS window_end, sensor, COUNT(*) OVER w AS n, SUM(value) OVER w AS total, "
    f"ROW_NUMBER() OVER (PARTITION BY sensor ORDER BY number, id) AS i FROM {ON_TIME} "
    "WINDOW w AS (PARTITION BY sensor ORDER BY number, id ROWS 4 PRECEDING)) WHERE i % 2 = 0",
    "landmark": "SELECT 855L AS window_start, number AS window_end, sensor, COUNT(*) OVER w AS n, "
    f"SUM(value) OVER w AS total FROM {ON_TIME} WHERE number >= 855 WINDOW w AS (PARTITION BY sensor ORDER BY number)",
    "landmark_steps": f"SELECT timestamp'{LANDMARK}' AS window_start, e AS window_end, rows.sensor, {AGGREGATES} "
    f"FROM (SELECT DISTINCT sensor, window(ts, '2 seconds').end AS e FROM ({EVENTS} AND {PUNCTUAL}) "
    f"WHERE ts >= timestamp'{LANDMARK}') AS steps JOIN ({EVENTS} AND {PUNCTUAL}) AS rows "
    f"ON rows.sensor = steps.sensor AND ts >= timestamp'{LANDMARK}' AND ts < e GROUP BY e, rows.sensor",
}


@pytest.mark.parametrize("name", TEXTS)
def test_each_result_comes_out_once_and_none_is_lost(name: str, killed: Run) -> None:
    spark, text, ledger = killed.source.spark, TEXTS[name].sql, killed.ledger(name)
    found = published = killed.published(name).drop("batch", "place")
    if "LATE PANES" in text:
        on_time = sw.on_time(published)
        assert on_time.count() == on_time.select("window_end", "sensor").distinct().count(), "no window came out twice"
        found = sw.reconcile(published)
    if "LATE ROWS" in text:
        found, late = sw.on_time(published), sw.late_rows(published)
        late.createOrReplaceTempView("killed_late")
        ids = [row.id for row in late.select("id").collect()]
        assert 0 < len(ids) == len(set(ids)), "no late row came out twice"
        # a late row misses nothing if its windows are still open or if it is from before the landmark
        assert len(ids) == ledger.late or (name in ("late_rows", "landmark") and len(ids) < ledger.late)
    killed.source.read_batch().createOrReplaceTempView("killed_rows")
    heartbeat: Any = killed.heartbeat_ms(name)
    if "WATTR number" not in text:
        heartbeat = F.timestamp_millis(F.lit(heartbeat))
    complete = F.col("window_end") < heartbeat if name in PER_ROW else F.col("window_end") <= heartbeat
    exact = spark.sql(EXACT[name].format(rows="killed_rows", late="killed_late")).where(complete)
    assert exact.count() > 20
    assert values(found) == values(exact.select(*found.columns))


def test_rows_are_delivered_once_and_in_order(killed: Run) -> None:
    rows = killed.published("delivered").orderBy("batch", "place").select("ts", "id").collect()
    assert rows == sorted(set(rows)), "no row twice, none before one of an earlier batch, ties as they arrived"
    passed = killed.source.read_batch().where(F.unix_millis("ts") < killed.heartbeat_ms("delivered"))
    assert set(rows) < set(passed.select("ts", "id").collect())
    assert len(rows) == passed.count() - killed.ledger("delivered").late > 20


def test_windows_under_a_promise(killed: Run) -> None:
    assert killed.reports["promised"]["kept"]
    windows = killed.source.read_batch().where(PUNCTUAL).groupBy(F.window("ts", "5 seconds"), "sensor")
    exact = windows.agg(F.count("*").alias("n"), F.sum("value").alias("total"))
    complete = exact.where(F.unix_millis("window.end") <= killed.heartbeat_ms("promised"))
    assert complete.count() > 10
    assert values(killed.published("promised").drop("batch", "place")) == values(complete)
