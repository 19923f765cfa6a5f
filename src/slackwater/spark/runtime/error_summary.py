"""What Spark says when it refuses or fails, short enough for a line."""

from __future__ import annotations

from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException

SPARK_ERRORS = (PySparkException, Py4JJavaError)
"""PySpark gives some of Java's errors a class of its own, and hands on the others as they are."""


def error_summary(error: PySparkException | Py4JJavaError) -> str:
    """The first lines of what Spark says: the rest is its plan and its stack."""
    if isinstance(error, Py4JJavaError):
        cause = error.java_exception
        while cause.getCause() is not None:
            cause = cause.getCause()
        said = str(cause.getMessage())
    else:
        said = (error.getMessage() or str(error)).split("JVM stacktrace")[0].strip()
        said = said.rpartition("Caused by:")[2] if "Caused by:" in said else said
    return " ".join(line.strip() for line in said.splitlines()[:3] if line.strip())[:600].rstrip(".; ")
