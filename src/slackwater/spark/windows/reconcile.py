"""``reconcile``: published windows and their late panes become the exact table."""

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
    """What is needed to merge parts again, to be kept with the column that holds them; ``answers`` are made of them."""
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
    """A part made of parts, of the type that they have: a sum of decimals would be wider with every step."""
    merged, kind = F.expr(combine), parts.schema[name].dataType
    return (merged.cast(kind) if isinstance(kind, DecimalType) else merged).alias(name)


def read_published(spark: SparkSession, folder: Path) -> DataFrame:
    """What a query wrote to a folder of Parquet files."""
    try:
        return spark.read.parquet(str(folder))
    except AnalysisException as error:
        raise InvalidData("not-parquet", f"{folder} holds no Parquet files", "name what a query wrote") from error


def reconcile(on_time: DataFrame, late: DataFrame | None = None) -> DataFrame:
    """The exact table: what a query with ``LATE PANES`` published, on time and late, merged window by window.

    Either give both, or one table that holds both. Tables are batches, read back from what the query wrote; the column
    ``parts`` must have come back with its metadata (Parquet keeps it, JSON does not).
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
    # what was written before answers had columns of their own has none
    return merged.selectExpr("*", *recipe.get("answers", [])).selectExpr("window_start", "window_end", *outputs)
