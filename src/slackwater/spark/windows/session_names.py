"""Checks the names in a query against the tables and functions of the session, before Spark sees the query."""

from __future__ import annotations

from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession

from slackwater.language import Query
from slackwater.plan import Catalog, Stream
from slackwater.plan.ctes import definition_of
from slackwater.plan.name_checks import check_names
from slackwater.plan.names import table_name
from slackwater.spark.runtime.catalog import describe


def check_session_names(spark: SparkSession, query: Query) -> None:
    """Refuse tables, columns and functions that the session does not have; the error points at them."""
    streams: dict[str, Stream] = {}
    complete = True
    for table in query.tables():
        if table.name and definition_of(table) is None:
            try:
                streams[table.name.lower()] = describe(table.name, spark.table(table_name(table)), None)
            except AnalysisException:
                complete = False
    if not complete:  # the names of all tables are read only to suggest one of them
        listed = {table.name.lower(): Stream(table.name, {}) for table in spark.catalog.listTables()}
        asked = {table.name.lower() for table in query.tables()}
        streams = {**{name: stream for name, stream in listed.items() if name not in asked}, **streams}
    check_names(query, Catalog(streams), spark.catalog.functionExists)
