"""Spark's Kafka connector, which PySpark does not contain."""

from __future__ import annotations

import pyspark
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession

from slackwater.errors import MissingRequirement

PACKAGE = f"org.apache.spark:spark-sql-kafka-0-10_2.13:{pyspark.__version__}"
"""The Maven coordinates of the connector."""


def require_connector(spark: SparkSession, purpose: str) -> None:
    """Raise unless the session has the connector. It cannot be added once Spark runs."""
    try:
        spark.read.format("kafka").load()
    except AnalysisException as error:
        raise MissingRequirement(
            "no-connector",
            f"{purpose} needs Spark's Kafka connector, which PySpark does not contain",
            f"add --package {PACKAGE}, or --package JAR for each of its jars",
        ) from error
    except Exception:
        return  # the connector asks for the brokers
