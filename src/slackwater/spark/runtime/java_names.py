"""Java names that PySpark looks up again and again for every progress event, looked up once.

PySpark turns a progress event into Python through Py4J. The end of every map in it comes as a Java exception, which
PySpark holds against fourteen classes, each time by way of ``jvm.py4j.reflection.TypeUtil``; and Py4J looks for each
part of that name in every package it was told of, in every jar: together 0.2 s a micro-batch on a busy machine.
"""

from __future__ import annotations

import contextlib
from typing import Any

from pyspark.sql import SparkSession

_CLASSES = ("PythonSQLUtils", "org.apache.spark.util.Utils", "org.apache.spark.sql.internal.SQLConf")


def remember_java_names(spark: SparkSession) -> None:
    """Keep what Py4J found under the names that PySpark will ask for.

    Only speed depends on it: a session without a gateway, or a PySpark that asks for something else, goes on as before.
    """
    with contextlib.suppress(Exception):
        jvm: Any = spark.sparkContext._jvm
        found = [(name, getattr(jvm, name)) for name in _CLASSES]
        package = jvm.py4j
        reflection = package.reflection
        reflection.TypeUtil = reflection.TypeUtil
        package.reflection = reflection
        for name, value in [*found, ("py4j", package)]:
            setattr(jvm, name, value)
