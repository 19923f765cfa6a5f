"""Spark SQL over a DataFrame that has no name."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Sequence
from typing import Any

from pyspark.sql import DataFrame


def sql_over(rows: DataFrame, text_for: Callable[[str], str]) -> DataFrame:
    """Run a Spark SQL query over ``rows``; ``text_for`` returns its text, given the name of the table to read."""
    return sql_over_all([rows], text_for)


def sql_over_all(frames: Sequence[DataFrame], text_for: Callable[..., str]) -> DataFrame:
    """Run a Spark SQL query over several DataFrames; ``text_for`` takes one name for each of them.

    No temporary view remains: PySpark registers the DataFrames under names of its own and drops those once the query
    has been analysed. Spark Connect sends the DataFrames with the query instead.
    """
    names = [f"slackwater_{uuid.uuid4().hex}" for _ in frames]
    text = text_for(*names).replace("{", "{{").replace("}", "}}")  # PySpark formats the text
    arguments: dict[str, Any] = {f"rows{number}": frame for number, frame in enumerate(frames)}
    for placeholder, argument in zip(names, arguments, strict=True):
        text = text.replace(placeholder, "{" + argument + "}")
    return frames[0].sparkSession.sql(text, **arguments)
