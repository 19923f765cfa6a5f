"""A sample of late and invalid rows for the page: at most one of each kind per micro-batch.

Off unless ``spark.slackwater.sampleRows`` is true, because the rows are the user's data: they are written to the series
in the promise's folder and shown on the page.
"""

from __future__ import annotations

from typing import Any

from pyspark.sql import Column, SparkSession
from pyspark.sql import functions as F

from slackwater.names import quoted
from slackwater.spark.completeness.late_reason import LATE
from slackwater.spark.runtime.settings import Setting, switch_setting
from slackwater.spark.worker.columns import PREFIX, PROBLEM_ROW

_MAX_TEXT = 400


def samples_rows(spark: SparkSession) -> bool:
    """Whether the session asks for a sample."""
    return switch_setting(spark, Setting.SAMPLE_ROWS)


def problem_row(columns: list[str], reason: Column) -> Column:
    """The column ``PROBLEM_ROW``: the reason and the row as JSON. Rows on time are not turned into JSON."""
    shown = F.struct(*(F.col(quoted(name)) for name in columns if not name.startswith(PREFIX)))
    return F.when(
        reason.isNotNull(), F.struct(reason.alias("problem"), F.left(F.to_json(shown), F.lit(_MAX_TEXT)).alias("row"))
    )


def sample_metrics() -> list[Column]:
    """Aggregates that pick one late and one invalid row of a micro-batch by the smallest hash of their text."""
    row, problem = F.col(PROBLEM_ROW), F.col(PROBLEM_ROW)["problem"]
    hashed = F.xxhash64(row["row"])
    return [
        F.min_by(row, F.when(problem == LATE, hashed)).alias("late_row"),
        F.min_by(row, F.when(problem != LATE, hashed)).alias("invalid_row"),
    ]


def problem_rows_of(metrics: dict[str, Any]) -> tuple[tuple[str, str], ...]:
    """The sampled rows of a micro-batch: pairs of problem and JSON text."""
    found = (metrics.get(key) for key in ("late_row", "invalid_row"))
    return tuple((row["problem"], row["row"]) for row in found if row is not None)
