"""SIGKILL between writing and committing a batch: each window comes out once, and none is lost."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

import slackwater as sw
from tests.spark.harness import FileStream, rows
from tests.spark.test_windows import values

pytestmark = pytest.mark.spark
EACH, BATCHES = 60, 6


def start(root: Path, *arguments: str) -> subprocess.Popen[bytes]:
    repository = Path(__file__).parents[2]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(repository), *sys.path])}
    command = [sys.executable, "-m", "tests.spark.killable_windows", str(root), *arguments]
    return subprocess.Popen(command, cwd=repository, env=environment, start_new_session=True)


@pytest.mark.parametrize("kind", ["native", "ordered"])
def test_sigkill_in_mid_batch(kind: str, spark: SparkSession, tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    arrivals = np.sort(rng.uniform(0, 5 * BATCHES, EACH * BATCHES))
    made = rows(arrivals, np.minimum(rng.exponential(1.0, len(arrivals)), 4.0))
    source = FileStream(spark, tmp_path / "in")
    for number in range(BATCHES):
        source.put(made[number * EACH : (number + 1) * EACH])
    doomed = start(tmp_path, kind, "4")
    while not (tmp_path / "hanging").exists():
        with pytest.raises(subprocess.TimeoutExpired):  # it must not end by itself
            doomed.wait(timeout=0.2)
    os.killpg(doomed.pid, signal.SIGKILL)
    doomed.wait()
    assert start(tmp_path, kind).wait() == 0

    (promise,) = json.loads((tmp_path / "report.json").read_text())["promises"]
    assert promise["ledger"]["on_time"] + promise["ledger"]["late"] == len(made)
    published = spark.read.parquet(*(str(path) for path in (tmp_path / "out").iterdir()))
    source.read_batch().createOrReplaceTempView("all_rows")
    closed = F.to_timestamp(F.lit(promise["heartbeat"]))
    if kind == "native":
        on_time = published.where("not late")
        assert on_time.count() == on_time.select("window_end", "sensor").distinct().count(), "no window came out twice"
        exact = spark.sql(
            "SELECT w.start AS window_start, w.end AS window_end, sensor, COUNT(*) AS n, SUM(value) AS total "
            "FROM (SELECT *, window(ts, '6 seconds', '2 seconds') AS w FROM all_rows) GROUP BY w, sensor"
        ).where(F.col("window_end") <= closed)
        found = sw.reconcile(published).where(F.col("window_end") <= closed)
    else:
        assert promise["ledger"]["late"] == 0
        over = "OVER (PARTITION BY sensor ORDER BY unix_micros(ts) RANGE BETWEEN 5999999 PRECEDING AND CURRENT ROW)"
        exact = spark.sql(
            "SELECT ts - INTERVAL 6 SECONDS AS window_start, ts AS window_end, sensor, "
            f"COUNT(*) {over} AS n, SUM(value) {over} AS total FROM all_rows"
        ).where(F.col("window_end") < closed)
        found = published
    assert exact.count() > 0
    assert values(found) == values(exact.select(*found.columns))
