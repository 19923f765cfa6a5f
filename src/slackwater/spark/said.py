"""What Spark says when it refuses or fails, short enough for a line."""

from __future__ import annotations

from pyspark.errors import PySparkException


def said_by(error: PySparkException) -> str:
    """The first lines of what Spark says: the rest is its plan and its stack."""
    said = (error.getMessage() or str(error)).split("JVM stacktrace")[0].strip()
    cause = said.rpartition("Caused by:")[2] if "Caused by:" in said else said
    return " ".join(line.strip() for line in cause.splitlines()[:3] if line.strip())[:600].rstrip(".; ")
