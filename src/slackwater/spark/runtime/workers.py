"""Checks of Spark's Python workers, for the paths on which they run code of Slackwater."""

from __future__ import annotations

import contextlib
import sys
from weakref import WeakSet

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from slackwater.errors import MissingRequirement
from slackwater.spark.worker.data_sources import register_source
from slackwater.spark.worker.import_probe import ImportProbe

_CHECKED: WeakSet[SparkSession] = WeakSet()


def require_slackwater_on_workers(spark: SparkSession) -> None:
    """Refuse a session whose Python workers cannot import Slackwater.

    Asks the interpreter of the workers on the driver's machine, once per session.
    """
    if spark in _CHECKED:
        return
    try:
        _ = spark.read.format(register_source(spark, ImportProbe)).load().schema
    except PySparkException as error:
        if "No module named 'slackwater'" not in str(error):
            raise
        raise MissingRequirement(
            "workers-without-slackwater",
            f"Spark's Python workers ({_interpreter(spark)}) cannot import slackwater, and this query runs in them",
            f"set PYSPARK_PYTHON={sys.executable} before Spark starts, or install slackwater where the workers run",
        ) from None
    _CHECKED.add(spark)


def _interpreter(spark: SparkSession) -> str:
    with contextlib.suppress(PySparkException):  # Spark Connect has no context
        return str(spark.sparkContext.pythonExec)
    return "those of the server"
