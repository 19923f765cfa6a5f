"""Queries start although their sources' Python processes are slow to import Spark, as on a busy machine."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from slackwater.spark.runtime.starting import start_failure
from slackwater.spark.worker import data_sources
from tests.helpers.processes import REPOSITORY, environment
from tests.helpers.standalone import standalone_cluster
from tests.helpers.usages import usage

SLOW_IMPORTS = """
import sys, time
from pathlib import Path
flag = Path(__file__).with_name("slow")
if "streaming_source_runner" in str(sys.orig_argv):
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

root, count, early = Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3] == "early"
if not early:
    data_sources._EARLY_START = root / "no-such-folder"
with local_session("starts") as spark:
    stream = FileStream(spark, root / "in")
    for batch in batches(seed=1, count=2):
        stream.put(batch)
    writers = []
    for number in range(count):
        events = sw.with_drop_ratio(stream.read_stream(), "ts", "1%", arrival="arrived", name=f"promise-{number}")
        writer = events.writeStream.format("noop").option("checkpointLocation", str(root / f"checkpoint-{number}"))
        writers.append(writer)
    queries = [writer.start() if early else start_with_retries(writer) for writer in writers]
    for query in queries:
        settle(query)
        assert promise_of(query).ledger.input == 120
        query.stop()
"""


def run(folder: Path, queries: int, early: str, slow: str, **env: str) -> None:
    (folder / "sitecustomize.py").write_text(SLOW_IMPORTS)
    (folder / "slow").write_text(slow)
    paths = environment()["PYTHONPATH"]
    ran = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(folder), str(queries), early],
        cwd=REPOSITORY,
        env={**environment(), **env, "PYTHONPATH": f"{folder}:{paths}"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr


@pytest.mark.spark
@pytest.mark.full
@usage(
    "five queries started together on a machine so busy that Python takes more than ten seconds to import Spark",
    "right: the process of a source connects to Spark before it imports anything",
)
def test_five_queries_start_together(tmp_path: Path) -> None:
    run(tmp_path, queries=5, early="early", slow="always")


@pytest.mark.spark
@pytest.mark.full
@usage("the same in the driver of a cluster", "right")
def test_five_queries_start_together_on_a_cluster(tmp_path: Path) -> None:
    with standalone_cluster(tmp_path / "cluster", environment()) as cluster:
        run(tmp_path, queries=5, early="early", slow="always", MASTER=cluster.url)


@pytest.mark.spark
@pytest.mark.full
def test_where_spark_starts_python_in_its_own_way_a_failed_start_is_tried_again(tmp_path: Path) -> None:
    run(tmp_path, queries=1, early="late", slow="once")
    assert (tmp_path / "slow").read_text() == "no more"


def test_another_sitecustomize_is_loaded_too(tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text("FOUND = True")
    own = str(data_sources._EARLY_START)
    for path, expected in ((f"{own}:{tmp_path}", "True"), (own, "False")):
        ran = subprocess.run(
            [sys.executable, "-c", "import sys; print(hasattr(sys.modules['sitecustomize'], 'FOUND'))"],
            env={"PYTHONPATH": path},
            capture_output=True,
            text=True,
            check=False,
        )
        assert (ran.stdout.strip(), ran.stderr) == (expected, "")


def test_the_failure_is_explained() -> None:
    explained = start_failure("org.apache.spark.SparkException: Python worker failed to connect back.\n\tat …")
    assert explained is not None
    assert explained.condition == "start-timed-out"
    assert start_failure("Division by zero") is None
