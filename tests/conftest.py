"""One Spark session for all tests that need one."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator

import pytest
from hypothesis import settings
from pyspark.sql import SparkSession

from tests.helpers.kafka import connector_settings

settings.register_profile("no-clock", deadline=None)  # how long an example takes depends on the machine
settings.load_profile("no-clock")
# Every Spark that a test starts is short-lived, also in other processes: thorough compilation would not pay off.
os.environ.setdefault("SPARK_SUBMIT_OPTS", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:ReservedCodeCacheSize=200m")
os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)

CHECKPOINTS = "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.memory": "1g",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.sql.shuffle.partitions": "1",
    "spark.sql.session.timeZone": "UTC",
    "spark.slackwater.shards": "2",
    "spark.python.authenticate.socketTimeout": "120s",  # a busy machine starts Python slowly
    # While a query waits for others, its heartbeat must not follow the real clock: report idle queries never.
    "spark.sql.streaming.noDataProgressEventInterval": "1h",
    "spark.sql.streaming.pollingDelay": "100ms",  # every 10 ms, idle queries would keep a core busy
    # Hadoop starts a process for every local file that it creates, links or checks. These three create fewer files and
    # check them less often: a query of six micro-batches starts 200 processes instead of 1100.
    "spark.hadoop.fs.file.impl": "org.apache.hadoop.fs.RawLocalFileSystem",
    "spark.sql.streaming.checkpoint.fileChecksum.enabled": "false",
    "spark.sql.streaming.checkpointFileManagerClass": CHECKPOINTS,
    **connector_settings(),
}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Run the tests on Spark first: they are the longest, and the short ones then fill up both workers."""
    items.sort(key=lambda item: item.get_closest_marker("spark") is None)


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    builder = SparkSession.builder.master("local[2]").appName("slackwater-tests")
    for key, value in SETTINGS.items():
        builder = builder.config(key, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("OFF")
    yield session
    session.stop()
