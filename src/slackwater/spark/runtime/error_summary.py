"""Spark's error messages, shortened to one line."""

from __future__ import annotations

from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException

SPARK_ERRORS = (PySparkException, Py4JJavaError)
"""PySpark wraps some Java errors in a class of its own and passes on the others."""


def error_summary(error: PySparkException | Py4JJavaError) -> str:
    """The first lines of a Spark error, without its plan and stack."""
    if isinstance(error, Py4JJavaError):
        cause = error.java_exception
        while cause.getCause() is not None:
            cause = cause.getCause()
        message = str(cause.getMessage())
    else:
        message = (error.getMessage() or str(error)).split("JVM stacktrace")[0].strip()
        message = message.rpartition("Caused by:")[2] if "Caused by:" in message else message
    return " ".join(line.strip() for line in message.splitlines()[:3] if line.strip())[:600].rstrip(".; ")
