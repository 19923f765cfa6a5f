"""Lines of text that Spark asks the driver for while it plans a micro-batch, for the query that it plans."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar
from weakref import WeakKeyDictionary

from pyspark.sql import DataFrame, SparkSession

from slackwater.errors import InvalidOption
from slackwater.spark.runtime.settings import Setting, setting

# Properties that Spark sets in the thread of a streaming query.
_QUERY_ID = "sql.streaming.queryId"
_RUN_ID = "spark.jobGroup.id"
_BATCH = "streaming.sql.batchId"


@dataclass(frozen=True, slots=True)
class PlannedBatch:
    """A micro-batch that is being planned; ``at_us`` is when."""

    query_id: str
    run_id: str | None
    batch: int
    at_us: int


LineFor = Callable[[PlannedBatch | None], str]
"""The line for a micro-batch; for None, somebody has asked for the plan of the DataFrame."""


class LineOfBatch:
    """A function for Spark's plans: the line for the micro-batch that is being planned.

    The optimizer evaluates a function over a local relation itself, in the thread of the query, so a micro-batch needs
    no job for it. Spark calls Python as it does for ``foreachBatch``; calls from here into Spark run in that same
    thread, and its properties say which query it is. A plan may ask more than once per micro-batch and gets one answer.
    """

    class Java:
        """What Py4J implements in the JVM."""

        implements: ClassVar = ["org.apache.spark.sql.api.java.UDF0"]

    def __init__(self, spark: SparkSession, line_for: LineFor) -> None:
        self._context = spark.sparkContext
        self._line_for = line_for
        self._lines: dict[str, tuple[PlannedBatch, str]] = {}

    def call(self) -> str:
        """The line."""
        query_id = self._context.getLocalProperty(_QUERY_ID)
        if query_id is None:
            return self._line_for(None)
        run_id, batch = self._context.getLocalProperty(_RUN_ID), int(self._context.getLocalProperty(_BATCH) or 0)
        before = self._lines.get(query_id)
        if before is not None and (before[0].run_id, before[0].batch) == (run_id, batch):
            return before[1]
        planned = PlannedBatch(query_id, run_id, batch, time.time_ns() // 1000)
        line = self._line_for(planned)
        self._lines[query_id] = planned, line
        return line


def line_frame(spark: SparkSession, line_for: LineFor) -> DataFrame:
    """One row with the column ``value``: the line for whatever micro-batch reads it."""
    context: Any = spark.sparkContext
    jvm = context._jvm
    text = jvm.org.apache.spark.sql.types.DataType.fromJson('"string"')
    function = jvm.org.apache.spark.sql.functions.udf(LineOfBatch(spark, line_for), text).withName("slackwater_line")
    one_row: Any = spark.sql("SELECT * FROM VALUES (1) AS one_row(one)")
    no_arguments = jvm.PythonUtils.toSeq([])
    columns = jvm.PythonUtils.toSeq([function.apply(no_arguments).alias("value")])
    return DataFrame(one_row._jdf.select(columns), spark)


_ASKABLE: WeakKeyDictionary[SparkSession, bool] = WeakKeyDictionary()


def asks_driver(spark: SparkSession) -> bool:
    """Whether micro-batches of the session ask the driver for control rows; else they read files.

    They read files in a session without Py4J (Spark Connect), where Python threads are not those of the JVM
    (``PYSPARK_PIN_THREAD=false``), and where ``spark.slackwater.controlRow`` is ``file``.
    """
    where = setting(spark, Setting.CONTROL_ROW) or "driver"
    if where not in ("driver", "file"):
        raise InvalidOption(
            "invalid-setting", f"{Setting.CONTROL_ROW.value}={where!r} is no place for it", "set 'driver' or 'file'"
        )
    if where == "file":
        return False
    if spark not in _ASKABLE:
        _ASKABLE[spark] = _is_askable(spark)
    return _ASKABLE[spark]


def _is_askable(spark: SparkSession) -> bool:
    try:
        from pyspark import java_gateway

        gateway: Any = spark.sparkContext._gateway
        if type(gateway).__name__ != "ClientServer":
            return False
        start_callback_server: Any = java_gateway.ensure_callback_server_started
        start_callback_server(gateway)
        line_frame(spark, lambda _: "").collect()
    except Exception:
        return False
    return True
