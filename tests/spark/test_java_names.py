"""The Java names that PySpark looks up for every progress event are cached."""

from __future__ import annotations

from typing import Any

import pytest
from py4j.java_gateway import is_instance_of  # type: ignore[import-untyped]
from pyspark.sql import SparkSession

from slackwater.spark.runtime.java_names import remember_java_names

pytestmark = pytest.mark.spark


class NoGateway:
    """A session without a Java gateway, like one of Spark Connect."""

    @property
    def sparkContext(self) -> Any:
        raise RuntimeError("there is none")


def test_cached_names_mean_the_same(spark: SparkSession) -> None:
    remember_java_names(spark)
    gateway: Any = spark.sparkContext._gateway
    assert {"py4j", "PythonSQLUtils"} <= vars(gateway.jvm).keys()
    assert "reflection" in vars(gateway.jvm.py4j)
    text = gateway.jvm.java.lang.StringBuilder("x")
    assert is_instance_of(gateway, text, "java.lang.CharSequence")
    assert not is_instance_of(gateway, text, "java.util.List")


def test_a_session_without_a_gateway_is_left_alone() -> None:
    remember_java_names(NoGateway())  # type: ignore[arg-type]
