"""Executors whose Python has no Slackwater: the native path needs none, also when a micro-batch is repeated."""

from __future__ import annotations

import subprocess
import sys
import venv
from pathlib import Path
from typing import Any

import pyspark
import pytest
from pyspark import cloudpickle
from pyspark.sql import SparkSession

from slackwater.spark.worker.data_sources import code_in_pickles
from slackwater.spark.worker.heartbeat_source import HeartbeatSource
from tests.helpers.bare_environment import environment_without_paths, link_packages
from tests.helpers.killed_promise import KilledPromise
from tests.helpers.processes import REPOSITORY

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
    source = pickle.load(file)({"folder": sys.argv[2], "column": "ts", "state": "{}", "driver": "d"})
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
def test_killed_on_a_cluster_whose_python_has_no_slackwater(spark: SparkSession, tmp_path: Path) -> None:
    venv.create(tmp_path / "bare", with_pip=False)
    python = tmp_path / "bare" / "bin" / "python"
    link_packages(tmp_path / "bare", ["pyarrow", "numpy", "pandas"])
    without = subprocess.run([str(python), "-c", "import slackwater"], cwd=tmp_path, capture_output=True, check=False)
    assert b"No module named 'slackwater'" in without.stderr
    killed = KilledPromise(
        spark,
        tmp_path,
        str(tmp_path / "checkpoints"),
        {"spark.executor.memory": "512m", "spark.executor.cores": "1", "spark.slackwater.location": f"{tmp_path}/kept"},
        2
        * [
            {
                **environment_without_paths(str(python)),
                "PYSPARK_DRIVER_PYTHON": sys.executable,
                "MASTER": "local-cluster[2,1,1024]",
                "SPARK_HOME": str(Path(pyspark.__file__).parent),
            }
        ],
    )
    assert REPOSITORY.name not in str(python)
    killed.run()
    killed.check()
