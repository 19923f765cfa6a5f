"""Spark SQL over a DataFrame that has no name."""

from __future__ import annotations

import uuid
from collections.abc import Callable

from pyspark.sql import DataFrame


def sql_over(rows: DataFrame, text_for: Callable[[str], str]) -> DataFrame:
    """Run a Spark SQL query over ``rows``; ``text_for`` returns its text, given the name of the table to read.

    No temporary view remains: PySpark registers the DataFrame under a name of its own and drops that once the query has
    been analysed. Spark Connect sends the DataFrame with the query instead.
    """
    placeholder = f"slackwater_{uuid.uuid4().hex}"
    escaped = text_for(placeholder).replace("{", "{{").replace("}", "}}")  # PySpark formats the text
    return rows.sparkSession.sql(escaped.replace(placeholder, "{rows}"), rows=rows)
