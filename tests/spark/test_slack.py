"""SLACK in rows is judged row by row: the answer does not depend on how the rows are cut into micro-batches."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

import slackwater as sw
from slackwater.control.disorder import make_method
from slackwater.promises import Completeness
from tests.helpers.harness import FileStream, collected, rows, settle, start_idle

pytestmark = pytest.mark.spark

ROWS = 240
SLACK = 5
QUERIES = {
    "sliding": "SELECT sensor, COUNT(*) AS n, SUM(value) AS total FROM Sensors "
    "[RANGE 6 seconds SLIDE 2 seconds ARRIVAL arrived SLACK 5] GROUP BY sensor",
    "per-row": "SELECT COUNT(*) AS n FROM Sensors [RANGE 6 seconds ARRIVAL arrived SLACK 5]",
    "capped": "SELECT COUNT(*) AS n, MAX(value) AS most FROM Sensors "
    "[LANDMARK '2023-11-14 22:13:20+00:00' SLIDE 4 seconds ARRIVAL arrived SLACK 5 DRATIO 0.1%] HAVING COUNT(*) > 2",
}


def stream() -> tuple[list[dict[str, Any]], np.ndarray[Any, Any], float]:
    """Rows in the order of their arrival, which of them are on time, and the last heartbeat in seconds."""
    draw = np.random.default_rng(4)
    arrivals = np.round(np.sort(draw.uniform(10, 70, ROWS)), 3)
    late_by = np.round(draw.exponential(1.0, ROWS), 3)
    method = make_method("fixed-slack", Completeness(0.0), slack_rows=SLACK)
    heartbeats = method.trail(1e3 * (arrivals - late_by), 1e3 * arrivals) / 1e3  # type: ignore[attr-defined]
    on_time = np.append(True, (arrivals - late_by)[1:] >= heartbeats[:-1] - 1e-6)
    return rows(arrivals, late_by), on_time, float(heartbeats[-1])


@pytest.mark.parametrize("each", [pytest.param(20, marks=pytest.mark.full), 120])
def test_rows_are_judged_one_by_one(spark: SparkSession, tmp_path: Path, each: int) -> None:
    made, on_time, heartbeat_s = stream()
    assert 20 < ROWS - on_time.sum() < 120
    source = FileStream(spark, tmp_path / "in")

    def begin(name: str) -> StreamingQuery:
        sw.stream("Sensors", source.read_stream(), event_time="ts")
        location = str(tmp_path / name / "promise")
        result = sw.sql(spark, QUERIES[name], name=f"slack-{each}-{name}", location=location)
        return start_idle(result, tmp_path / name)

    running = {name: begin(name) for name in QUERIES}
    try:
        for number, first in enumerate(range(0, ROWS, each)):
            # Spark may read the rows of a micro-batch in any order.
            source.put(made[first : first + each][::-1])
            for query in running.values():
                settle(query)
            if number == 5:
                running["sliding"].stop()
                running["sliding"] = begin("sliding")
        for name, query in running.items():
            ledger = sw.report(query).completeness[0].ledger
            assert ledger.late >= ROWS - on_time.sum() if name == "capped" else ledger.late == ROWS - on_time.sum()
            assert ledger.on_time + ledger.late == ROWS and ledger.exact
            counts = [p["observedMetrics"].get(f"slackwater-slack:slack-{each}-{name}") for p in query.recentProgress]
            assert max(row["held"] or 0 for row in counts if row is not None) == SLACK
    finally:
        for query in running.values():
            query.stop()
    kept = spark.createDataFrame(
        [(row["ts"], row["sensor"], row["value"]) for row, good in zip(made, on_time, strict=True) if good],
        "ts string, sensor string, value double",
    ).selectExpr("CAST(ts AS timestamp) AS ts", "sensor", "value")
    kept.createOrReplaceTempView("kept")
    exact = spark.sql(
        "SELECT sensor, COUNT(*) AS n, SUM(value) AS total, window.start AS window_start, window.end AS window_end "
        "FROM (SELECT window(ts, '6 seconds', '2 seconds') AS window, sensor, value FROM kept) GROUP BY window, sensor"
    )
    origin_s = 1_700_000_000
    complete = exact.where(f"unix_millis(window_end) <= {round(1e3 * (origin_s + heartbeat_s))}")
    columns = ["window_start", "window_end", "sensor", "n", "total"]
    found = collected(spark, tmp_path / "sliding").select(*columns)
    assert sorted(map(tuple, found.collect())) == sorted(map(tuple, complete.select(*columns).collect()))
    assert found.count() > 50
    (per_row,) = collected(spark, tmp_path / "per-row").groupBy().sum("n").collect()
    before = f"unix_micros(a.ts) < {round(1e3 * (origin_s + heartbeat_s)) * 1000}"
    (inside,) = spark.sql(
        f"SELECT COUNT(*) FROM kept a JOIN kept b ON b.ts <= a.ts AND b.ts > a.ts - INTERVAL 6 SECONDS WHERE {before}"
    ).collect()
    assert per_row[0] == inside[0] > 500
