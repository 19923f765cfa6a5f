"""The local Spark session of the command."""

from __future__ import annotations

import logging
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, TYPE_CHECKING

from slackwater.errors import MissingRequirement
from slackwater.spark.command.packages import not_started, package_settings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@contextmanager
def local_session(app: str, packages: Sequence[str] = (), **conf: str) -> Iterator[SparkSession]:
    """A session on all cores of this machine (or on ``MASTER``), stopped at the end; ``conf`` overrides its settings.

    ``packages`` are Maven coordinates or jar files that Spark loads before it starts. Spark's log is off, so that it
    does not mix with the command's output.
    """
    jars = package_settings(packages)
    _require_java()
    from pyspark.errors import PySparkException
    from pyspark.logger import PySparkLogger
    from pyspark.sql import SparkSession

    for name in ("SQLQueryContextLogger", "DataFrameQueryContextLogger"):
        PySparkLogger.getLogger(name).setLevel(logging.CRITICAL + 1)  # they print errors that we print ourselves
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
    # Spark's workers warn about Spark's own use of pandas; users can do nothing about it.
    os.environ.setdefault("PYTHONWARNINGS", "ignore::FutureWarning:pyspark.worker")
    with _stderr_to_file(kept=bool(packages)) as output:
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
            **jars,
            **conf,
        }
        for key, value in settings.items():
            builder = builder.config(key, value)
        try:
            spark = builder.getOrCreate()
        except PySparkException as error:
            if not packages:
                raise
            output.seek(0)
            raise not_started(packages, output.read()) from error
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
def _stderr_to_file(*, kept: bool) -> Iterator[IO[str]]:
    """Send file descriptor 2 elsewhere: a JVM that starts inherits it, and writes to it before its log level is set.

    If the output is to be ``kept``, it is a temporary file, else /dev/null. What this process writes to ``sys.stderr``
    meanwhile, such as lines of progress, still arrives.
    """
    sys.stderr.flush()
    stderr, saved = sys.stderr, os.dup(2)
    with tempfile.TemporaryFile("w+", errors="replace") if kept else Path(os.devnull).open("w+") as output:
        os.dup2(output.fileno(), 2)
        if stderr is sys.__stderr__:
            sys.stderr = os.fdopen(saved, "w", 1, "utf-8", "replace", closefd=False)
        try:
            yield output
        finally:
            sys.stderr = stderr
            os.dup2(saved, 2)
            os.close(saved)
