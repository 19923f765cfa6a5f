"""Control lines that the driver looks up while Spark plans a micro-batch, for the query that it plans."""

from __future__ import annotations

import time
import uuid
from pathlib import Path
from typing import Any, ClassVar
from weakref import WeakKeyDictionary

from pyspark.sql import DataFrame, SparkSession

from slackwater.errors import InvalidOption
from slackwater.spark.runtime.checks import WATERMARK_POLICY, refuse_max_policy
from slackwater.spark.runtime.settings import Setting, setting
from slackwater.spark.worker.control_files import ControlFiles
from slackwater.spark.worker.control_line import WIDTH, ControlLine

DRIVER = uuid.uuid4().hex
"""Identifies this driver to the heartbeat readers beside it."""

# Properties that Spark sets in the thread of a streaming query.
_QUERY_ID = "sql.streaming.queryId"
_RUN_ID = "spark.jobGroup.id"
_BATCH = "streaming.sql.batchId"


class LineOfQuery:
    """A function for Spark's plans: the control line of the query that is being planned, and the time.

    The optimizer evaluates a function over a local relation itself, in the thread of the query, so a micro-batch needs
    no job for it. Spark calls Python as it does for ``foreachBatch``; calls from here into Spark run in that same
    thread, and its properties say which query it is. A plan may ask more than once per micro-batch and gets one answer.
    """

    class Java:
        """What Py4J implements in the JVM."""

        implements: ClassVar = ["org.apache.spark.sql.api.java.UDF0"]

    def __init__(self, spark: SparkSession, folder: Path) -> None:
        self._context = spark.sparkContext
        self._files = ControlFiles(folder)
        self._planned: dict[str, tuple[tuple[str | None, ...], int]] = {}

    def call(self) -> str:
        """The line with one number more: when the micro-batch was planned, in microseconds."""
        query_id = self._context.getLocalProperty(_QUERY_ID)
        if query_id is None:  # somebody asked for the plan of the DataFrame
            return _text(ControlLine(), 0)
        batch = (self._context.getLocalProperty(_RUN_ID), self._context.getLocalProperty(_BATCH))
        planned, at_us = self._planned.get(query_id, (None, 0))
        if planned != batch:
            context: Any = self._context
            refuse_max_policy(context._jvm.org.apache.spark.sql.SparkSession.active().conf().get(WATERMARK_POLICY))
            at_us = time.time_ns() // 1000
            self._planned[query_id] = (batch, at_us)
        return _text(self._files.line_of(query_id, DRIVER, first_batch=batch[1] == "0"), at_us)


def _text(line: ControlLine, planned_at_us: int) -> str:
    return f"{line.text().rstrip()} {planned_at_us:+0{WIDTH}d}\n"


def line_frame(spark: SparkSession, folder: Path) -> DataFrame:
    """One row with the column ``value``: the control line of whatever query reads it."""
    context: Any = spark.sparkContext
    jvm = context._jvm
    text = jvm.org.apache.spark.sql.types.DataType.fromJson('"string"')
    function = jvm.org.apache.spark.sql.functions.udf(LineOfQuery(spark, folder), text).withName("slackwater_control")
    one_row: Any = spark.sql("SELECT * FROM VALUES (1) AS one_row(one)")
    no_arguments = jvm.PythonUtils.toSeq([])
    columns = jvm.PythonUtils.toSeq([function.apply(no_arguments).alias("value")])
    return DataFrame(one_row._jdf.select(columns), spark)


_ASKABLE: WeakKeyDictionary[SparkSession, bool] = WeakKeyDictionary()


def asks_driver(spark: SparkSession) -> bool:
    """Whether micro-batches of the session ask the driver for their control lines; else they read a file.

    A file it is in a session without Py4J (Spark Connect), where Python threads are not those of the JVM
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
        line_frame(spark, Path()).collect()
    except Exception:
        return False
    return True
