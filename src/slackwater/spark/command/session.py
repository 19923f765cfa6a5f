"""The local Spark session of the command."""

from __future__ import annotations

import logging
import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from slackwater.errors import MissingRequirement

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@contextmanager
def local_session(app: str, **conf: str) -> Iterator[SparkSession]:
    """A session on all cores of this machine (or on ``MASTER``), stopped at the end; ``conf`` overrides its settings.

    Spark's log is off, so that it does not mix with the command's output.
    """
    _require_java()
    from pyspark.logger import PySparkLogger
    from pyspark.sql import SparkSession

    for name in ("SQLQueryContextLogger", "DataFrameQueryContextLogger"):
        PySparkLogger.getLogger(name).setLevel(logging.CRITICAL + 1)  # they print errors that we print ourselves
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
    # Spark's workers warn about Spark's own use of pandas; users can do nothing about it.
    os.environ.setdefault("PYTHONWARNINGS", "ignore::FutureWarning:pyspark.worker")
    with _quiet_stderr():
        builder = SparkSession.builder.master(os.environ.get("MASTER", "local[*]")).appName(app)
        settings = {
            "spark.ui.enabled": "false",
            "spark.ui.showConsoleProgress": "false",
            "spark.driver.host": "127.0.0.1",
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.sql.session.timeZone": "UTC",
            "spark.sql.shuffle.partitions": "2",
            "spark.python.authenticate.socketTimeout": "120s",  # Python workers start slowly on a busy machine
            "spark.sql.execution.arrow.maxBytesPerBatch": str(2**31 - 1),  # a smaller limit is checked per row
            "spark.log.level": "OFF",
            **conf,
        }
        for key, value in settings.items():
            builder = builder.config(key, value)
        spark = builder.getOrCreate()
        spark.sparkContext.setLogLevel("OFF")
    try:
        yield spark
    finally:
        with suppress(Exception):
            spark.stop()


def _require_java() -> None:
    home = os.environ.get("JAVA_HOME")
    if not (home and os.access(Path(home, "bin", "java"), os.X_OK)) and shutil.which("java") is None:
        raise MissingRequirement(
            "no-java", "no Java runtime was found on the PATH or in JAVA_HOME", "install Java 17 or newer"
        )


@contextmanager
def _quiet_stderr() -> Iterator[None]:
    """Send file descriptor 2 to /dev/null: a starting JVM inherits it and writes to it before its log level is set."""
    sys.stderr.flush()
    saved = os.dup(2)
    with Path(os.devnull).open("w") as devnull:
        os.dup2(devnull.fileno(), 2)
        try:
            yield
        finally:
            os.dup2(saved, 2)
            os.close(saved)
