"""Executors whose Python has no Slackwater: the native path needs none, also when a micro-batch is repeated."""

from __future__ import annotations

import subprocess
import sys
import venv
from pathlib import Path
from typing import Any

import pytest
from pyspark import cloudpickle
from pyspark.sql import SparkSession

from slackwater.spark.worker.data_sources import code_in_pickles
from slackwater.spark.worker.heartbeat_source import HeartbeatSource
from tests.helpers.bare_environment import environment_without_paths, link_packages
from tests.helpers.killed_promise import KilledPromise
from tests.helpers.standalone import can_hide, standalone_cluster
from tests.helpers.usages import usage

WITHOUT = """
import pickle, sys

class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in ("slackwater", "numpy", "pandas", "scipy"):
            raise ModuleNotFoundError(name)

sys.meta_path.insert(0, Missing())
from pyspark import cloudpickle
from pyspark.sql.types import StructField, StructType, TimestampType

with open(sys.argv[1], "rb") as file:
    source = pickle.load(file)({"folder": sys.argv[2], "column": "ts", "state": "{}", "row_file": "false"})
reader = source.simpleStreamReader(StructType([StructField("ts", TimestampType())]))
start = reader.initialOffset()
assert reader.read(start)[1] == start
again = pickle.loads(cloudpickle.dumps(reader))
(row,) = again.readBetweenOffsets(start, {**start, "heartbeat": 123456})
print(row[0].isoformat())
"""


def test_the_heartbeat_source_carries_its_code(tmp_path: Path) -> None:
    pickler: Any = cloudpickle
    with code_in_pickles():
        (tmp_path / "source").write_bytes(pickler.dumps(HeartbeatSource))
    command = [sys.executable, "-c", WITHOUT, str(tmp_path / "source"), str(tmp_path / "promise")]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (ran.stdout.strip(), ran.stderr) == ("1970-01-01T00:02:03.455000+00:00", "")


@pytest.mark.spark
@pytest.mark.full
@pytest.mark.skipif(not can_hide(), reason="needs the right to mount over a folder (unshare -m)")
@usage(
    "executors whose Python has no Slackwater and which cannot see the driver's folders; the driver is killed and "
    "started again",
    "right, also for a micro-batch that is repeated",
)
def test_killed_on_a_cluster_that_has_neither_our_code_nor_the_driver_s_files(
    spark: SparkSession, tmp_path: Path
) -> None:
    """The executors' Python cannot import Slackwater, and they see neither exchange nor storage of the promises."""
    venv.create(tmp_path / "bare", with_pip=False)
    python = str(tmp_path / "bare" / "bin" / "python")
    link_packages(tmp_path / "bare", ["pyarrow", "numpy", "pandas"])
    without = subprocess.run([python, "-c", "import slackwater"], cwd=tmp_path, capture_output=True, check=False)
    assert b"No module named 'slackwater'" in without.stderr
    hidden = [tmp_path / "driver", tmp_path / "kept"]
    for folder in hidden:
        folder.mkdir()
    with standalone_cluster(tmp_path / "cluster", environment_without_paths(python), hidden=hidden) as cluster:
        driver = {
            **environment_without_paths(python),
            "PYSPARK_DRIVER_PYTHON": sys.executable,
            "MASTER": cluster.url,
            "TMPDIR": str(hidden[0]),
        }
        conf = {"spark.executor.memory": "512m", "spark.slackwater.location": str(hidden[1])}
        killed = KilledPromise(spark, tmp_path, str(tmp_path / "checkpoints"), conf, [driver, driver])
        killed.run()
        killed.check()
    assert list(hidden[1].rglob("snapshot-*"))
