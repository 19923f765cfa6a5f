"""The types that Spark itself would give the keys and aggregates of a query."""

from __future__ import annotations

from typing import NamedTuple

from pyspark.sql import DataFrame
from pyspark.sql.types import DataType

from slackwater.plan import Plan
from slackwater.plan.aggregates import column_of
from slackwater.spark.runtime.views import sql_over


class PlainTypes(NamedTuple):
    """The types of the group keys and of the aggregates, in the order of the plan."""

    keys: list[DataType]
    aggregates: list[DataType]


def plain_types(plan: Plan, rows: DataFrame) -> PlainTypes:
    """Let Spark analyse the query over these rows. No row is read."""
    shape = plan.shape
    assert shape is not None
    keys = [f"{key} AS {name}" for key, name in zip(shape.keys, shape.key_names, strict=True)]
    values = [f"{a.plain} AS {column_of(i)}" for i, a in enumerate(plan.aggregates)]
    group = f" GROUP BY {', '.join(shape.keys)}" if shape.keys else ""
    analysed = sql_over(rows, lambda view: shape.selecting(", ".join([*keys, *values]), view) + group)
    types = [field.dataType for field in analysed.schema.fields]
    return PlainTypes(types[: len(keys)], types[len(keys) :])
