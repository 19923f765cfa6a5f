"""A row of numbers that is kept in the driver and that every micro-batch reads afresh."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pyspark.sql import DataFrame, SparkSession

_SCHEMA = "numbers array<bigint>"


class DriverRow:
    """One array of whole numbers in the driver's JVM, for use as a scalar subquery; null until it is set.

    Spark copies the rows of a local relation into the plan of each micro-batch, which needs no job. ``set`` exchanges
    the whole array at once, so a micro-batch sees either the old numbers or the new ones. The relation is reached
    through Py4J, which is not public API: a session without it raises an exception.
    """

    def __init__(self, spark: SparkSession) -> None:
        context: Any = spark.sparkContext
        self._gateway, self._jvm = context._gateway, context._jvm
        empty = self._gateway.new_array(self._jvm.java.lang.Object, 1)
        rows = self._jvm.java.util.ArrayList()
        rows.add(self._jvm.org.apache.spark.sql.RowFactory.create(empty))
        schema = self._jvm.org.apache.spark.sql.types.StructType.fromDDL(_SCHEMA)
        relation = spark._jsparkSession.createDataFrame(rows, schema)
        self._row = relation.queryExecution().analyzed().data().head()
        self._to_array_data = self._jvm.org.apache.spark.sql.catalyst.util.ArrayData.toArrayData
        self.frame = DataFrame(relation, spark)

    def set(self, numbers: Sequence[int]) -> None:
        """Change the numbers for the micro-batches that are planned from now on; costs a few calls through Py4J."""
        array = self._gateway.new_array(self._jvm.long, len(numbers))
        for position, number in enumerate(numbers):
            array[position] = number
        self._row.update(0, self._to_array_data(array))
