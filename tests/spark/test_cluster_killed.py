"""Twenty random kills on a standalone cluster: executors, workers and the driver, while queries publish.

In every step after the first few, one query stops in a task that publishes, and what runs that task is killed. Its
results must be those of a batch job over the same rows, nothing may be repeated, and the ledger must be exact.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import slackwater as sw
from slackwater.control.ledger import Ledger
from tests.helpers.harness import FileStream, values
from tests.helpers.killable_cluster import FOLDERS, NAMES, WINDOWS
from tests.helpers.killable_windows import NUMBERED_SCHEMA, PUNCTUAL
from tests.helpers.processes import environment, start_module
from tests.helpers.standalone import StandaloneCluster, kill_group, standalone_cluster
from tests.helpers.standing import SCHEMA, answers, micro_batches, put_weights, twin
from tests.helpers.usages import usage
from tests.spark.test_windows_killed import EACH, EXACT, NUMBER_ORIGIN, file_rows

pytestmark = [pytest.mark.spark, pytest.mark.full]
QUIET = 6
"""The first steps, in which nothing is killed: a heartbeat must be in force."""
KILLS = ("executor", "executor", "worker", "driver")
"""What happens to each query, in an order drawn for all of them."""
STEPS = QUIET + len(KILLS) * len(NAMES) + 1
UNDER_A_HEARTBEAT = ("promised", *WINDOWS)
DRIVERS = KILLS.count("driver") * len(NAMES)
WARM_UP = 20
_POLL_S = 0.05


@dataclass
class Harness:
    """The driver and the cluster that it runs on."""

    spark: SparkSession
    root: Path
    cluster: StandaloneCluster
    killed: list[tuple[str, str]] = field(default_factory=list)
    starts: int = 0
    driver: subprocess.Popen[bytes] = field(init=False)

    def start_driver(self) -> None:
        self.starts += 1
        with (self.root / f"driver-{self.starts}.log").open("wb") as log:
            self.driver = start_module(
                "killable_cluster", str(self.root), log=log, MASTER=self.cluster.url, PYTHONUNBUFFERED="1"
            )

    def step(self, number: int, put: Callable[[int], None], kill: tuple[str, str] | None) -> None:
        """Give every query one more micro-batch of rows, and perhaps kill something while one of them runs."""
        if kill is not None:
            (self.root / "armed" / kill[0]).touch()
        put(number)
        (self.root / "asked" / f"{number:03d}").touch()
        if kill is not None:
            self._kill(*kill)
        self._await(self.root / "done" / f"{number:03d}")

    def _kill(self, name: str, what: str) -> None:
        hanging, released = self.root / "hanging" / name, self.root / "released" / name
        self._await(hanging)
        executor = int(hanging.read_text())
        if what == "executor":
            os.kill(executor, signal.SIGKILL)
        elif what == "worker":
            self.cluster.lose_worker_of(executor)
            self.cluster.add_worker()
        else:
            kill_group(self.driver)
        (self.root / "armed" / name).unlink()
        released.touch()  # the Python process of the task outlives what was killed
        if what == "driver":
            self.start_driver()
        hanging.unlink()
        released.unlink()
        self.killed.append((name, what))

    def _await(self, path: Path) -> None:
        while not path.exists() or (path.parent.name == "hanging" and not path.read_text()):
            assert self.driver.poll() is None, (self.root / f"driver-{self.starts}.log").read_text()
            time.sleep(_POLL_S)


@dataclass(frozen=True)
class Run:
    """The streams, the published results and the last reports."""

    root: Path
    source: FileStream
    standing_batches: list[list[dict[str, Any]]]
    reports: dict[str, Any]

    def published(self, name: str) -> DataFrame:
        found = self.source.spark.read.parquet(str(self.root / "out" / name))
        return found.drop("batch")

    def given(self, name: str) -> DataFrame:
        everything = self.source.read_batch()
        return everything.where(PUNCTUAL) if name == "promised" else everything

    def ledger(self, name: str) -> Ledger:
        return Ledger.from_json(self.reports[name]["ledger"])


@pytest.fixture(scope="module")
def killed(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Run:
    root = tmp_path_factory.mktemp("killed-cluster")
    for name in FOLDERS:
        (root / name).mkdir()
    put_weights(root / "standing" / "weights")
    (root / "standing" / "clock").write_text("0")
    source = FileStream(spark, root / "in", NUMBERED_SCHEMA)
    prices = FileStream(spark, root / "standing" / "in", SCHEMA)
    ticks = micro_batches(WARM_UP + STEPS, warm_up=WARM_UP)

    def put(number: int) -> None:
        source.put(file_rows(number))
        prices.put(ticks[number])

    kills = [(name, what) for name in NAMES for what in KILLS]
    random.Random(28).shuffle(kills)
    with standalone_cluster(root / "cluster", environment(), workers=2, cores=1) as cluster:
        harness = Harness(spark, root, cluster)
        harness.start_driver()
        try:
            for number in range(STEPS):
                at = number - QUIET
                harness.step(number, put, kills[at] if 0 <= at < len(kills) else None)
        finally:
            kill_group(harness.driver)
    assert len(harness.killed) == len(kills) >= 20
    reports = json.loads((root / "done" / f"{STEPS - 1:03d}").read_text())
    return Run(root, source, ticks[:STEPS], reports)


@pytest.mark.parametrize("name", UNDER_A_HEARTBEAT)
@usage(
    "a standalone cluster whose executors, workers and driver are killed while queries publish, twenty times in all",
    "right: results equal a batch job's, each once, and the ledgers are exact",
)
def test_every_row_is_counted_once(name: str, killed: Run) -> None:
    given, ledger = killed.given(name), killed.ledger(name)
    assert ledger.exact, ledger.why
    assert ledger.input == given.count()
    assert ledger.invalid == given.where("ts IS NULL").count()
    assert (ledger.late > 0) == (name != "promised"), "some are below every heartbeat"


@pytest.mark.parametrize("name", WINDOWS)
def test_each_result_comes_out_once_and_none_is_lost(name: str, killed: Run) -> None:
    spark, ledger, by_number = killed.source.spark, killed.ledger(name), name == "tuples_per_sensor"
    published = killed.published(name)
    on_time = sw.on_time(published)
    if name == "panes":
        assert on_time.count() == on_time.select("window_end", "sensor").distinct().count(), "no window came out twice"
        found = sw.reconcile(published)
    else:
        found, late = on_time, sw.late_rows(published)
        late.createOrReplaceTempView("cluster_late")
        ids = [row.id for row in late.select("id").collect()]
        assert 0 < len(ids) == len(set(ids)) == ledger.late, "no late row came out twice"
    killed.source.read_batch().createOrReplaceTempView("cluster_rows")
    heartbeat: Any = killed.reports[name]["heartbeat_ms"] - (NUMBER_ORIGIN if by_number else 0)
    end = F.col("window_end")
    complete = end < heartbeat if by_number else end <= F.timestamp_millis(F.lit(heartbeat))
    exact = spark.sql(EXACT[name].format(rows="cluster_rows", late="cluster_late")).where(complete)
    assert exact.count() > 100
    assert values(found) == values(exact.select(*found.columns))


def test_windows_under_a_promise(killed: Run) -> None:
    assert killed.reports["promised"]["kept"]
    windows = killed.given("promised").groupBy(F.window("ts", "5 seconds"), "sensor")
    exact = windows.agg(F.count("*").alias("n"), F.sum("value").alias("total"))
    complete = exact.where(F.unix_millis("window.end") <= killed.reports["promised"]["heartbeat_ms"])
    assert complete.count() > 50
    assert values(killed.published("promised")) == values(complete)


@usage(
    "the same under `with_max_delay` while it sheds",
    "right; if a kill of the driver lost a report, the ledger says `exact: false`",
)
def test_every_row_is_kept_once_or_counted_as_shed(killed: Run) -> None:
    kept, ledger = killed.published("shed").toPandas(), killed.ledger("shed")
    assert kept["id"].is_unique
    assert ledger.shed > 100
    assert ledger.exact == (ledger.unreported_batches == 0) and ledger.unreported_batches <= DRIVERS
    unreported = EACH * ledger.unreported_batches
    assert ledger.input + unreported == killed.given("shed").count()
    assert ledger.on_time <= len(kept) <= ledger.on_time + unreported


@usage("the same under `sw.standing`", "right: the answers are those of one process, and the ledger is exact")
def test_standing_queries_answer_as_in_one_process(killed: Run) -> None:
    spark, root = killed.source.spark, killed.root
    got = answers(spark, root / "standing", out=root / "out" / "standing")
    expected = twin(root / "standing", killed.standing_batches)
    assert [row[:2] for row in got] == [row[:2] for row in expected]
    assert np.allclose([row[2:] for row in got], [row[2:] for row in expected], rtol=1e-12)
    ledger = killed.ledger("standing")
    assert ledger.exact and ledger.input == ledger.on_time == sum(map(len, killed.standing_batches))
