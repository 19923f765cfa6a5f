"""The weights of ``standing``: checks them and makes them readable for the shards."""

from __future__ import annotations

from dataclasses import replace

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import DataType, IntegerType, LongType, StringType

from slackwater.errors import InvalidStream
from slackwater.names import quoted
from slackwater.spark.runtime.checks import require_columns, require_numbers
from slackwater.spark.runtime.location import weights_folder
from slackwater.spark.worker.weights_table import WeightsTable

ID_TYPES = (StringType, LongType, IntegerType)


def readable_weights(
    spark: SparkSession, weights: DataFrame | str, table: WeightsTable, name: str, location: str | None
) -> tuple[WeightsTable, DataType]:
    """``table`` with the folder that the shards read, and the type of a query's id.

    A folder or a Parquet table is read where it is. Anything else is first written as Parquet below ``location``.
    """
    frame, folder = _frame_and_folder(spark, weights)
    if frame.isStreaming:
        raise InvalidStream("streaming-weights", "the weights are a stream", "give a folder of Parquet files")
    _check_columns(frame, table)
    if folder is None:
        folder = weights_folder(spark, name, location)
        columns = [
            F.col(quoted(column)).cast("double").alias(column) if column == table.weight else F.col(quoted(column))
            for column in table.columns
        ]
        frame.select(*columns).write.mode("overwrite").parquet(folder)
    return replace(table, folder=folder), frame.schema[table.query].dataType


def _check_columns(frame: DataFrame, table: WeightsTable) -> None:
    require_columns(
        frame,
        query=table.query,
        key=table.stream,
        weight=table.weight,
        within="within" if table.within is None else None,
        confidence="confidence" if table.confidence is None else None,
    )
    require_numbers(frame, weight=table.weight)
    id_type = frame.schema[table.query].dataType
    if not isinstance(id_type, ID_TYPES):
        raise InvalidStream(
            "invalid-id", f"query={table.query!r} is a {id_type.simpleString()}", "use a string or an integer"
        )


def _frame_and_folder(spark: SparkSession, weights: DataFrame | str) -> tuple[DataFrame, str | None]:
    """The weights, and the folder that may be read again; None if they are taken as they are now."""
    if isinstance(weights, DataFrame):
        return weights, None
    if "/" in weights:
        return spark.read.parquet(weights), weights
    if not spark.catalog.tableExists(weights):
        raise InvalidStream("no-such-table", f"there is no table {weights!r}", "give a folder, a table or a DataFrame")
    details = {row[0]: row[1] for row in spark.sql(f"DESCRIBE TABLE EXTENDED {weights}").collect()}
    is_parquet = (details.get("Provider") or "").lower() == "parquet"
    return spark.table(weights), details.get("Location") if is_parquet else None
