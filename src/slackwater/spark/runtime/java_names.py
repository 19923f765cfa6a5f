"""Caches Java names that PySpark looks up for every progress event.

PySpark converts a progress event through Py4J. The end of every map in it arrives as a Java exception, which PySpark
compares with fourteen classes, each time through ``jvm.py4j.reflection.TypeUtil``. Py4J searches every imported package
and jar for each part of that name. Together that takes 0.2 s per micro-batch on a busy machine.
"""

from __future__ import annotations

import contextlib
from typing import Any

from pyspark.sql import SparkSession

_CLASSES = ("PythonSQLUtils", "org.apache.spark.util.Utils", "org.apache.spark.sql.internal.SQLConf")


def remember_java_names(spark: SparkSession) -> None:
    """Cache what Py4J finds under the names that PySpark will ask for.

    Only speed depends on it: a session without a gateway, or a PySpark that asks for other names, works as before.
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
