"""Checkpoint and promise on HDFS and on S3: killed, and started again by a driver with another disk."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.helpers.killed_promise import KilledPromise
from tests.helpers.processes import environment
from tests.helpers.storages import hdfs, parts_are_there, s3
from tests.helpers.usages import usage

pytestmark = [
    pytest.mark.spark,
    pytest.mark.full,
    pytest.mark.skipif(not parts_are_there(), reason="sh scripts/hadoop.sh .venv/hadoop has not run or could not load"),
]


@pytest.mark.parametrize("store", [hdfs, s3])
@usage(
    "checkpoint and promise on HDFS or S3, killed and started again by a driver with another disk",
    "right: results equal a batch job's, each once, and the ledger is exact",
)
def test_killed_and_started_again(spark: SparkSession, tmp_path: Path, store: type) -> None:
    with store(tmp_path / "store") as remote:
        conf = {**remote.conf, "spark.sql.streaming.checkpointLocation": f"{remote.uri}/promised"}
        drivers = [tmp_path / "first-driver", tmp_path / "second-driver"]
        for driver in drivers:
            driver.mkdir()
        killed = KilledPromise(
            spark,
            tmp_path,
            f"{remote.uri}/promised",
            conf,
            [environment(TMPDIR=str(driver), MASTER="local[2]") for driver in drivers],
        )
        killed.run()
        killed.check()
