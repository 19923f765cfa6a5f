"""Registration of Slackwater's own sources with a Spark session."""

from __future__ import annotations

import itertools

from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession
from pyspark.sql.datasource import DataSource

_TAKEN = "DATA_SOURCE_ALREADY_EXISTS"


def register_source(spark: SparkSession, source: type[DataSource]) -> str:
    """Make a source known to the session; the name under which the session knows it.

    Spark lets only one session of a driver register a name, and the others do not find it. So a session made by
    ``newSession()`` knows the source by a name with a number.
    """
    for number in itertools.count(2):
        try:
            spark.dataSource.register(source)
            break
        except AnalysisException as error:
            if error.getCondition() != _TAKEN:
                raise
        source = _renamed(source, f"{source.name().rstrip('0123456789')}{number}")
    return source.name()


def _renamed(source: type[DataSource], name: str) -> type[DataSource]:
    return type(source.__name__, (source,), {"name": classmethod(lambda _cls: name)})
