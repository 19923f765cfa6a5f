"""Registration of Slackwater's own sources with a Spark session."""

from __future__ import annotations

import itertools
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

from pyspark import cloudpickle
from pyspark.errors import AnalysisException, PySparkAttributeError
from pyspark.sql import SparkSession
from pyspark.sql.datasource import DataSource, DataSourceRegistration

_TAKEN = "DATA_SOURCE_ALREADY_EXISTS"
_PACKAGE = __name__.partition(".")[0]
_EARLY_START = Path(__file__).with_name("early_start")


def register_source(spark: SparkSession, source: type[DataSource], *, with_code: bool = False) -> str:
    """Make a source known to the session; the name under which the session knows it.

    Spark lets only one session of a driver register a name, and the others do not find it. So a session made by
    ``newSession()`` knows the source by a name with a number. ``with_code`` sends the code of the source along, so
    that Spark's Python workers need no Slackwater to run it.
    """
    registration = _registration(spark)
    with code_in_pickles() if with_code else nullcontext():
        for number in itertools.count(2):
            try:
                registration.register(source)
                break
            except AnalysisException as error:
                if error.getCondition() != _TAKEN:
                    raise
            source = _renamed(source, f"{source.name().rstrip('0123456789')}{number}")
    return source.name()


@contextmanager
def code_in_pickles() -> Iterator[None]:
    """Put classes and functions of Slackwater into Spark's pickles, instead of their names."""
    pickler: Any = cloudpickle
    package = sys.modules[_PACKAGE]
    pickler.register_pickle_by_value(package)
    try:
        yield
    finally:
        pickler.unregister_pickle_by_value(package)


def _registration(spark: SparkSession) -> DataSourceRegistration:
    """Spark's registration, with a path from which the processes of its sources start early."""
    try:
        context = spark.sparkContext
    except PySparkAttributeError:  # Spark Connect: the server starts them
        return spark.dataSource
    before: dict[str, str] = context.environment
    path = os.pathsep.join(filter(None, (str(_EARLY_START), before.get("PYTHONPATH"))))
    session: Any = _With(spark, sparkContext=_With(context, environment={**before, "PYTHONPATH": path}))
    return DataSourceRegistration(session)


class _With:
    """An object with some attributes replaced."""

    def __init__(self, target: Any, **replaced: Any) -> None:
        self._target = target
        self.__dict__ |= replaced

    def __getattr__(self, name: str) -> Any:
        return getattr(self._target, name)


def _renamed(source: type[DataSource], name: str) -> type[DataSource]:
    return type(source.__name__, (source,), {"name": classmethod(lambda _cls: name)})
