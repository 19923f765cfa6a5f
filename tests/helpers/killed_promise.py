"""Kills the process of ``killable_promise``, starts it again, and compares what it published with a batch job."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

import slackwater as sw
from tests.helpers.harness import FileStream, rows, values
from tests.helpers.killable_promise import FIRST_DOOMED, NAMES
from tests.helpers.processes import REPOSITORY

EACH = 40


@dataclass
class KilledPromise:
    """One run with a kill. ``environments`` are those of the first driver and of the second."""

    spark: SparkSession
    root: Path
    checkpoints: str
    conf: dict[str, str]
    environments: list[dict[str, str]]
    reports: dict[str, Any] = field(default_factory=dict)

    def run(self) -> None:
        """Run until each query hangs in a micro-batch, kill the driver with its JVM, add rows, and run to the end."""
        stream = FileStream(self.spark, self.root / "in")
        for number in range(FIRST_DOOMED + 1):
            stream.put(_rows(number))
        (self.root / "setup.json").write_text(json.dumps({"conf": self.conf, "checkpoints": self.checkpoints}))
        (self.root / "hanging").mkdir()
        doomed = self._start(0, "doomed")
        while len(list((self.root / "hanging").iterdir())) < len(NAMES):
            assert doomed.poll() is None, "it must not end by itself"
            time.sleep(0.2)
        os.killpg(doomed.pid, signal.SIGKILL)
        doomed.wait()
        for number in range(FIRST_DOOMED + 1, FIRST_DOOMED + 3):
            stream.put(_rows(number))
        assert self._start(1).wait() == 0
        self.reports = json.loads((self.root / "reports.json").read_text())

    def check(self) -> None:
        """Assert that results equal those of a batch job, nothing came out twice, and the ledgers are exact."""
        events = FileStream(self.spark, self.root / "in").read_batch()
        everything = events.count()
        published = self._published("panes")
        on_time = sw.on_time(published)
        assert on_time.count() == on_time.select("window_end", "sensor").distinct().count() > 20
        exact = (
            events.groupBy(F.window("ts", "6 seconds", "2 seconds").alias("w"), "sensor")
            .agg(F.count("*").alias("n"), F.sum("value").alias("total"))
            .where(F.unix_millis("w.end") <= self.reports["panes"]["heartbeat_ms"])
            .select(F.col("w.start").alias("window_start"), F.col("w.end").alias("window_end"), "sensor", "n", "total")
        )
        found = sw.reconcile(published)
        assert values(found) == values(exact.select(*found.columns))
        marked = self._published("marked")
        assert marked.count() == marked.select("id").distinct().count() == everything
        for name in NAMES:
            ledger = self.reports[name]["ledger"]
            assert (ledger["input"], ledger["unreported_batches"], ledger["exact"]) == (everything, 0, True), name
        assert self.reports["marked"]["ledger"]["late"] == marked.where("problem = 'late'").count() > 0

    def _published(self, name: str) -> Any:
        return self.spark.read.parquet(str(self.root / "out" / name)).drop("batch")

    def _start(self, driver: int, *arguments: str) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", "tests.helpers.killable_promise", str(self.root), *arguments]
        return subprocess.Popen(command, cwd=REPOSITORY, env=self.environments[driver], start_new_session=True)


def _rows(number: int) -> list[dict[str, Any]]:
    """Ten seconds of rows with a mean lateness of one second; every tenth row is 25 seconds later."""
    rng = np.random.default_rng(number)
    lateness = rng.exponential(1.0, EACH)
    lateness[::10] += 25
    return rows(number * 10 + np.linspace(0, 10, EACH, endpoint=False), lateness, first_id=number * EACH)
