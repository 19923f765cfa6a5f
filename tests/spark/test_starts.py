"""Queries start although their sources' Python processes are slow to import Spark, as on a busy machine."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from slackwater.spark.runtime.starting import start_failure
from tests.helpers.processes import REPOSITORY, environment

SLOW_IMPORTS = """
import sys, time
from pathlib import Path
flag = Path(__file__).with_name("slow")
if "early_connection" in str(sys.orig_argv) or "streaming_source_runner" in str(sys.orig_argv):
    once = flag.read_text() == "once"
    if once:
        flag.write_text("no more")
    if once or flag.read_text() == "always":
        time.sleep(11)
"""
"""Python imports this before anything that it is told to run. Spark waits ten seconds for a connection."""

SCRIPT = """
import sys
from pathlib import Path
import slackwater as sw
from slackwater.spark.command.session import local_session
from slackwater.spark.runtime.starting import start_with_retries
from slackwater.spark.worker import data_sources
from tests.helpers.harness import FileStream, batches, promise_of, settle

root, count, launcher = Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3] == "launcher"
if not launcher:
    data_sources.launcher_of = lambda spark: None
with local_session("starts") as spark:
    stream = FileStream(spark, root / "in")
    for batch in batches(seed=1, count=2):
        stream.put(batch)
    writers = []
    for number in range(count):
        events = sw.with_drop_ratio(stream.read_stream(), "ts", "1%", arrival="arrived", name=f"promise-{number}")
        writer = events.writeStream.format("noop").option("checkpointLocation", str(root / f"checkpoint-{number}"))
        writers.append(writer)
    queries = [writer.start() if launcher else start_with_retries(writer) for writer in writers]
    for query in queries:
        settle(query)
        assert promise_of(query).ledger.input == 120
        query.stop()
"""


def run(folder: Path, queries: int, launcher: str, slow: str) -> None:
    (folder / "sitecustomize.py").write_text(SLOW_IMPORTS)
    (folder / "slow").write_text(slow)
    paths = environment()["PYTHONPATH"]
    ran = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(folder), str(queries), launcher],
        cwd=REPOSITORY,
        env={**environment(), "PYTHONPATH": f"{folder}:{paths}"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr


@pytest.mark.spark
@pytest.mark.full
def test_five_queries_start_together(tmp_path: Path) -> None:
    run(tmp_path, queries=5, launcher="launcher", slow="always")


@pytest.mark.spark
@pytest.mark.full
def test_where_spark_starts_python_itself_a_failed_start_is_tried_again(tmp_path: Path) -> None:
    run(tmp_path, queries=1, launcher="without", slow="once")
    assert (tmp_path / "slow").read_text() == "no more"


def test_the_failure_is_explained() -> None:
    explained = start_failure("org.apache.spark.SparkException: Python worker failed to connect back.\n\tat …")
    assert explained is not None
    assert explained.condition == "start-timed-out"
    assert start_failure("Division by zero") is None
