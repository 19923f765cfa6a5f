"""``reconcile``: merge published windows and their late panes into the exact table."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from pyspark.errors import AnalysisException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import DecimalType

from slackwater.errors import InvalidData, InvalidStream
from slackwater.names import quoted
from slackwater.plan import Plan
from slackwater.plan.rewriting import WINDOW_COLUMNS

PARTS_METADATA = "slackwater"


def parts_metadata(plan: Plan, answers: list[str]) -> dict[str, Any]:
    """Column metadata with everything that ``reconcile`` needs to merge parts and compute the outputs.

    ``answers`` are the expressions that compute the aggregates from the parts.
    """
    shape = plan.shape
    assert shape is not None
    return {
        PARTS_METADATA: json.dumps(
            {
                "keys": list(shape.key_names),
                "parts": [[part.name, part.combine] for a in plan.aggregates for part in a.parts],
                "answers": answers,
                "outputs": [[name, sql] for name, sql in shape.outputs],
            }
        )
    }


def merged_part(parts: DataFrame, name: str, combine: str) -> Column:
    """The combined part ``name``, in the type of the parts: each sum of decimals would otherwise widen the type."""
    merged, kind = F.expr(combine), parts.schema[name].dataType
    return (merged.cast(kind) if isinstance(kind, DecimalType) else merged).alias(name)


def read_published(spark: SparkSession, folder: Path) -> DataFrame:
    """Read the Parquet files that a query wrote to a folder."""
    try:
        return spark.read.parquet(str(folder))
    except AnalysisException as error:
        raise InvalidData(
            "not-parquet", f"{folder} holds no Parquet files", "name the folder that a query wrote to"
        ) from error


def reconcile(on_time: DataFrame, late: DataFrame | None = None) -> DataFrame:
    """Merge what a query with ``LATE PANES`` published, on time and late, into the exact table.

    Give two tables, or one table with both. They are batch DataFrames, read back from what the query wrote. The column
    ``parts`` must still have its metadata: Parquet keeps it, JSON does not.
    """
    published = on_time if late is None else on_time.unionByName(late)
    for column in ("window_start", "window_end", "late", "parts"):
        if column not in published.columns:
            raise InvalidStream(
                "no-late-panes", f"there is no column {column!r}", "reconcile what a query with LATE PANES wrote"
            )
    described = on_time.schema["parts"].metadata.get(PARTS_METADATA)
    if described is None:
        raise InvalidStream("no-parts", "the column 'parts' has lost its metadata", "write to Parquet, which keeps it")
    recipe = json.loads(described)
    parts = published.select("window_start", "window_end", "parts.*")
    merged = parts.groupBy("window_start", "window_end", *recipe["keys"]).agg(
        *(merged_part(parts, name, combine) for name, combine in recipe["parts"])
    )
    outputs = [f"{sql} AS {quoted(name)}" for name, sql in recipe["outputs"] if name.lower() not in WINDOW_COLUMNS]
    answers = recipe.get("answers", [])  # older tables have none: their outputs refer to the parts directly
    return merged.selectExpr("*", *answers).selectExpr("window_start", "window_end", *outputs)
