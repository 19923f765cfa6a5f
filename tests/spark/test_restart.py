"""A restart from the checkpoint keeps the promise and repeats no result: after a clean stop, and after SIGKILL."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

import slackwater as sw
from slackwater.control.ledger import Ledger
from tests.spark.harness import (
    ORIGIN_S,
    FileStream,
    collected,
    promise_of,
    rows,
    same_rows,
    settle,
    start,
    watermark_ms,
)

pytestmark = pytest.mark.spark

PER_BATCH = 100


def batch_rows(batch: int) -> list[dict[str, Any]]:
    at = batch * 10 + np.linspace(0, 10, PER_BATCH, endpoint=False)
    return rows(at, 0.4 * np.abs(np.sin(at * 5)), first_id=batch * PER_BATCH)


@pytest.mark.parametrize(("location", "name"), [("beside the checkpoint", "again"), ("lost", "again"), ("kept", None)])
def test_a_clean_restart_goes_on(location: str, name: str | None, spark: SparkSession, tmp_path: Path) -> None:
    stream = FileStream(spark, tmp_path / "in")
    beside = str(tmp_path / "slackwater")
    marks: list[float] = []
    ledgers = []
    for run in range(3):
        for batch in range(3):
            stream.put(batch_rows(run * 3 + batch))
        if location == "lost":
            shutil.rmtree(beside, ignore_errors=True)
        events = sw.with_drop_ratio(
            stream.read_stream(), "ts", "5%", arrival="arrived", name=name, min_wait="1 second", location=beside
        )
        query = start(events.groupBy(F.window("ts", "5 seconds"), "sensor").count(), tmp_path)
        settle(query)
        promise = promise_of(query)
        ledgers.append(promise.ledger)
        assert promise.kept
        marks += [watermark_ms(progress) for progress in query.recentProgress]
        query.stop()
    assert marks == sorted(marks), "the heartbeat never retreats"
    assert ledgers[-1].input == 9 * PER_BATCH
    assert name is None or location == "lost" or ledgers[-1].unreported_batches == 0
    truth = stream.read_batch().groupBy(F.window("ts", "5 seconds"), "sensor").count()
    same_rows(collected(spark, tmp_path), truth.where(F.unix_millis("window.end") <= F.lit(int(marks[-1]))))


def run_killable(root: Path, *arguments: str) -> subprocess.Popen[bytes]:
    repository = Path(__file__).parents[2]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(repository), *sys.path])}
    command = [sys.executable, "-m", "tests.spark.killable", str(root), *arguments]
    return subprocess.Popen(command, cwd=repository, env=environment, start_new_session=True)


def test_sigkill_in_mid_batch(spark: SparkSession, tmp_path: Path) -> None:
    stream = FileStream(spark, tmp_path / "in")
    for batch in range(7):
        stream.put(batch_rows(batch))
    hang_at = 4
    doomed = run_killable(tmp_path, str(hang_at))
    while not (tmp_path / "hanging").exists():
        with pytest.raises(subprocess.TimeoutExpired):  # it must not end by itself
            doomed.wait(timeout=0.2)
    os.killpg(doomed.pid, signal.SIGKILL)
    doomed.wait()
    written = list((tmp_path / "out").iterdir())
    assert (tmp_path / "out" / f"batch={hang_at}") in written

    stream.put(batch_rows(7))
    second = run_killable(tmp_path)
    assert second.wait() == 0

    report = json.loads((tmp_path / "report.json").read_text())
    (promise,) = report["promises"]
    assert promise["kept"]
    ledger = Ledger.from_json(promise["ledger"])
    assert ledger.input == 8 * PER_BATCH, "every row is counted once, also those of the batch that ran twice"
    assert ledger.unreported_batches == 0

    result = spark.read.parquet(*(str(path) for path in (tmp_path / "out").iterdir()))
    assert result.count() == result.select("window", "sensor").distinct().count(), "no window came out twice"
    mark_ms = pd.Timestamp(report["watermarks"][-1]).timestamp() * 1000
    assert mark_ms > ORIGIN_S * 1000
    windows = stream.read_batch().groupBy(F.window("ts", "5 seconds"), "sensor")
    truth = windows.agg(F.count("*").alias("n"), F.sum("value").alias("sum"))
    same_rows(result, truth.where(F.unix_millis("window.end") <= F.lit(int(mark_ms))))
