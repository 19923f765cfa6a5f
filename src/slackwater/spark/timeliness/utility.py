"""The utility of rows inside a plan: its cell, and the chance to be shed that follows from it."""

from __future__ import annotations

from pyspark.errors import AnalysisException
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import NumericType

from slackwater.control.shedding.utility import CELLS, CELLS_PER_E, LARGEST, SMALLEST, UNKNOWN_CELL
from slackwater.errors import InvalidStream
from slackwater.spark.runtime.error_summary import error_summary
from slackwater.spark.timeliness.shed_row import Shed


def utility_column(events: DataFrame, shed_by: str | Column) -> Column:
    """The utility of a row as a double; refuses what is not a number of these columns."""
    utility = F.expr(shed_by) if isinstance(shed_by, str) else shed_by
    try:
        (field,) = events.select(utility).schema.fields
        if isinstance(field.dataType, NumericType):
            events.where(utility > 0)  # refuses aggregates and generators
            return utility.cast("double")
    except AnalysisException as error:
        raise InvalidStream(
            "wrong-shed-by",
            f"shed_by={shed_by!r} is not an expression over the stream: {error_summary(error)}",
            f"use these columns: {', '.join(events.columns)}",
        ) from error
    kind = field.dataType.simpleString()
    raise InvalidStream(
        "not-a-number", f"shed_by={shed_by!r} is a {kind}", "give a number: the higher, the more useful"
    )


def cell_column(utility: Column) -> Column:
    """The cell of each row's utility; it grows with the utility."""
    size = F.floor(F.log1p(F.least(F.abs(utility), F.lit(LARGEST)) / SMALLEST) * CELLS_PER_E)
    signed = (F.signum(utility) * size).cast("int")
    return F.when(utility.isNull() | F.isnan(utility), F.lit(UNKNOWN_CELL)).otherwise(signed)


def count_cells(cell: Column) -> Column:
    """An aggregate that counts the rows of every cell exactly, as ``[(item, count), …]``."""
    return F.call_function("approx_top_k", cell, F.lit(CELLS), F.lit(CELLS))


def shed_chance(cell: Column, shed: Column) -> Column:
    """The probability that a row is shed, under the threshold in the shed row."""
    at_threshold, below = F.lit(1.0) - shed[Shed.KEEP], F.lit(1.0) - shed[Shed.LEAST]
    return F.when(cell > shed[Shed.CELL], 0.0).when(cell == shed[Shed.CELL], at_threshold).otherwise(below)
