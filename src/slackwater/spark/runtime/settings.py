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


def setting(spark: SparkSession, key: Setting) -> str | None:
    """The session's value of a setting; None if it has none."""
    return spark.conf.get(key.value, None)


def integer_setting(spark: SparkSession, key: Setting) -> int | None:
    """A setting that must be a whole number."""
    value = setting(spark, key)
    if value is None:
        return None
    try:
        return int(value)
    except ValueError:
        raise InvalidOption("invalid-setting", f"{key.value}={value!r} is not a whole number", "set a number") from None
