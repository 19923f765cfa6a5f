"""Session-wide defaults: ``spark.slackwater.*`` settings. An argument always wins over a setting."""

from __future__ import annotations

from enum import Enum

from pyspark.sql import SparkSession

from slackwater.errors import InvalidOption


class Setting(Enum):
    """Every setting that Slackwater reads from the Spark session."""

    LOCATION = "spark.slackwater.location"
    METHOD = "spark.slackwater.method"
    LAW = "spark.slackwater.law"
    SHARDS = "spark.slackwater.shards"
    MAX_WAIT = "spark.slackwater.maxWait"
    MIN_WAIT = "spark.slackwater.minWait"
    IDLE_AFTER = "spark.slackwater.idleAfter"
    CONTROL_ROW = "spark.slackwater.controlRow"
    SAMPLE_ROWS = "spark.slackwater.sampleRows"


def setting(spark: SparkSession, key: Setting) -> str | None:
    """The session's value of a setting; None if it has none."""
    return spark.conf.get(key.value, None)


def switch_setting(spark: SparkSession, key: Setting) -> bool:
    """A setting that is true or false; false if the session has none."""
    value = setting(spark, key) or "false"
    if value.lower() not in ("true", "false"):
        raise InvalidOption("invalid-setting", f"{key.value}={value!r} is neither true nor false", "set true or false")
    return value.lower() == "true"


def integer_setting(spark: SparkSession, key: Setting) -> int | None:
    """A setting that must be a whole number."""
    value = setting(spark, key)
    if value is None:
        return None
    try:
        return int(value)
    except ValueError:
        raise InvalidOption("invalid-setting", f"{key.value}={value!r} is not a whole number", "set a number") from None
