"""The types that plain Spark would give the keys and aggregates of a query, however they are computed."""

from __future__ import annotations

import itertools

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import DataType

from slackwater.plan import Plan
from slackwater.plan.aggregates import column_of

_VIEWS = itertools.count()


def plain_types(spark: SparkSession, plan: Plan, rows: DataFrame) -> tuple[list[DataType], list[DataType]]:
    """The types of keys and of aggregates over these rows, none of which is read."""
    shape = plan.shape
    assert shape is not None
    view = f"slackwater_types_{next(_VIEWS)}"
    rows.createOrReplaceTempView(view)
    keys = [f"{key} AS {name}" for key, name in zip(shape.keys, shape.key_names, strict=True)]
    values = [f"{a.plain} AS {column_of(i)}" for i, a in enumerate(plan.aggregates)]
    group = f" GROUP BY {', '.join(shape.keys)}" if shape.keys else ""
    try:
        asked = spark.sql(shape.selecting(", ".join([*keys, *values]), view) + group)
    finally:
        spark.catalog.dropTempView(view)
    kinds = [field.dataType for field in asked.schema.fields]
    return kinds[: len(keys)], kinds[len(keys) :]
