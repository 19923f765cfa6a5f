"""Spark's Kafka connector, which PySpark does not contain."""

from __future__ import annotations

from typing import TYPE_CHECKING

from slackwater.errors import MissingRequirement

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def require_connector(spark: SparkSession, purpose: str) -> None:
    """Raise unless the session has the connector. It cannot be added once Spark runs."""
    from pyspark.errors import AnalysisException

    try:
        spark.read.format("kafka").load()
    except AnalysisException as error:
        package = f"org.apache.spark:spark-sql-kafka-0-10_2.13:{spark.version}"
        raise MissingRequirement(
            "no-connector",
            f"{purpose} needs Spark's Kafka connector, which PySpark does not contain",
            f"add --package {package}, or --package JAR for each of its jars",
        ) from error
    except Exception:
        return  # the connector asks for the brokers
