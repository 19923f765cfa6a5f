"""A Spark session for the command: local, quiet, and gone when it is done."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from pyspark.sql import SparkSession

from slackwater.errors import MissingRequirement


@contextmanager
def local_session(app: str, **conf: str) -> Iterator[SparkSession]:
    """A session on all cores of this machine, whose log does not drown what the command prints."""
    _require_java()
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
    # Spark's own workers warn about how Spark's own code calls pandas; nobody can act on that.
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
            "spark.python.authenticate.socketTimeout": "120s",  # a busy machine starts Python slowly
            "spark.sql.execution.arrow.maxBytesPerBatch": str(2**31 - 1),  # else measured after every row
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
            "no-java", "there is no Java runtime on the PATH or in JAVA_HOME", "install one of version 17 or newer"
        )


@contextmanager
def _quiet_stderr() -> Iterator[None]:
    """Before its log level can be set, a starting JVM writes to the descriptor that it inherits."""
    sys.stderr.flush()
    kept = os.dup(2)
    with Path(os.devnull).open("w") as nowhere:
        os.dup2(nowhere.fileno(), 2)
        try:
            yield
        finally:
            os.dup2(kept, 2)
            os.close(kept)
