"""The heartbeat stream: a tiny streaming source whose offset is the heartbeat, so that Spark's checkpoint stores it."""

from __future__ import annotations

import datetime as dt
import json
import sys
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from pyspark.errors import AnalysisException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.datasource import DataSource, SimpleDataSourceStreamReader
from pyspark.sql.types import StructField, StructType

from slackwater.errors import MissingRequirement, PromiseConflict
from slackwater.spark.exchange import Exchange

FORMAT = "slackwater_heartbeats"
WALL_PREFIX = "slackwater-wall:"
_BEFORE_ALL_EVENTS = "1900-01-01"
_BELOW_MS = 1  # Spark drops a row at exactly the watermark, and a tie with the heartbeat is on time


class HeartbeatReader(SimpleDataSourceStreamReader):
    """Runs beside the driver, in a process of its own, once for each query; costs no executor a Python worker.

    An offset is ``{"epoch": of the query, "heartbeat": ms or null, …}``; what stands beside the heartbeat (batch
    and ledger) survives with it. A row is emitted only when the heartbeat has risen; while
    nothing is offered, or only to other queries, it stays where it is.

    ``held`` says what the state of the query is made of, and is in its offsets too: a checkpoint of another query is
    refused, since Spark compares no more than the columns of states.
    """

    def __init__(self, folder: str, columns: list[str], column: str, held: dict[str, str]) -> None:
        self._exchange = Exchange(Path(folder))
        self._columns = columns
        self._column = column
        self._held = held
        self._announced = False

    def initialOffset(self) -> dict[str, Any]:
        self._exchange.start_afresh()
        return {"epoch": uuid.uuid4().hex, "heartbeat": None, "held": self._held}

    def read(self, start: dict[str, Any]) -> tuple[Iterator[tuple[Any, ...]], dict[str, Any]]:
        self._refuse_others(start)
        # Spark asks when it puts a micro-batch together, and what was read for the one before is then the watermark
        offered = self._exchange.offered_to(start["epoch"])
        self._judge_by(start, offered)
        if offered is None or not _rises(start, offered):
            return iter([]), start
        end = {"epoch": start["epoch"], "held": self._held, **offered}
        return self._rows(end), end

    def readBetweenOffsets(self, start: dict[str, Any], end: dict[str, Any]) -> Iterator[tuple[Any, ...]]:
        self._refuse_others(start)
        self._judge_by(start, None)
        return self._rows(end) if _rises(start, end) else iter([])

    def _refuse_others(self, start: dict[str, Any]) -> None:
        before = start.get("held") or self._held
        for what, now in self._held.items():
            if before.get(what) != now:
                raise PromiseConflict(
                    "other-query",
                    f"the checkpoint is that of a query with {what} {before.get(what)}, and this one has {what} {now}",
                    "start it as it was, or with a checkpoint of its own",
                )

    def _judge_by(self, offset: dict[str, Any], offered: dict[str, Any] | None) -> None:
        """The control row is never older than the watermark; where queries share it, the furthest one's counts."""
        if not self._announced:
            self._exchange.announce(offset["epoch"])
            self._announced = True
        judging, thinned = self._exchange.judging()
        own, thin = offset["heartbeat"], offered is not None and offered["thin"]
        if own is None:
            if judging is None and offered is not None:
                self._exchange.judge_by(None, offered["clock"], thin)
        elif judging is None or judging < own or thin != thinned:
            self._exchange.judge_by(own if judging is None else max(judging, own), thin=thin)

    def _rows(self, offset: dict[str, Any]) -> Iterator[tuple[Any, ...]]:
        at = dt.datetime.fromtimestamp((offset["heartbeat"] - _BELOW_MS) / 1000, dt.UTC)
        return iter([tuple(at if name == self._column else None for name in self._columns)])


def _rises(start: dict[str, Any], end: dict[str, Any]) -> bool:
    below = start["heartbeat"]
    return end["heartbeat"] is not None and (below is None or bool(end["heartbeat"] > below))


class HeartbeatSource(DataSource):
    """Rows of the events' own schema: the heartbeat in the event-time column, null elsewhere.

    Real columns, since null literals would fold away and take the watermark operator with them.
    """

    @classmethod
    def name(cls) -> str:
        return FORMAT

    def schema(self) -> StructType:
        return StructType.fromJson(json.loads(self.options["schema"]))

    def simpleStreamReader(self, schema: StructType) -> HeartbeatReader:
        options = self.options
        return HeartbeatReader(options["folder"], list(schema.names), options["column"], json.loads(options["held"]))


def with_heartbeats(spark: SparkSession, events: DataFrame, column: str, exchange: Exchange) -> DataFrame:
    """The events under a watermark that is exactly the heartbeat, as long as no filter can get below the union.

    A filter of the user's that slid below the watermark operator would remove the heartbeat rows and freeze the
    watermark: something that Spark moves no filter through (``observe``) has to stand on this. The heartbeat branch
    goes first, since a union keeps the first child's watermark.
    """
    return _heartbeats(spark, events, column, exchange, {}).where(_no_row(column)).unionByName(events)


def under_heartbeat(
    spark: SparkSession, events: DataFrame, column: str, exchange: Exchange, name: str, held: dict[str, str]
) -> DataFrame:
    """The events under a watermark that is exactly the heartbeat, whatever is done with them afterwards.

    ``held`` says what the state above it is made of, in the user's words: a checkpoint that says otherwise is refused.
    """
    walled = _walled(_heartbeats(spark, events, column, exchange, held), name)
    return walled.where(_no_row(column)).unionByName(events)


def telling_heartbeat(
    spark: SparkSession,
    events: DataFrame,
    column: str,
    exchange: Exchange,
    name: str,
    held: dict[str, str],
    told: Callable[[DataFrame, Column], DataFrame],
) -> DataFrame:
    """The same, and among the events rows that tell the heartbeat: ``told`` makes them, of the row and its microsecond.

    A heartbeat is told one micro-batch before it is the watermark. What is told is in force all the same: the rows of
    this micro-batch are here, whatever judged them, and those of the next one are judged by it.
    """
    walled = _walled(_heartbeats(spark, events, column, exchange, held), name)
    heartbeat_us = (F.unix_millis(column) + F.lit(_BELOW_MS)) * 1000
    return told(walled, heartbeat_us).unionByName(events)


def _walled(beats: DataFrame, name: str) -> DataFrame:
    """The wall (``observe``) in the heartbeat branch itself."""
    return beats.observe(WALL_PREFIX + name, F.count(F.lit(1)).alias("heartbeats"))


def _heartbeats(
    spark: SparkSession, events: DataFrame, column: str, exchange: Exchange, held: dict[str, str]
) -> DataFrame:
    schema = StructType([StructField(f.name, f.dataType, True, f.metadata) for f in events.schema.fields])
    spark.dataSource.register(HeartbeatSource)
    source = spark.readStream.format(FORMAT).options(
        folder=str(exchange.folder), column=column, schema=schema.json(), held=json.dumps(held)
    )
    try:
        beats = source.load()
    except AnalysisException as error:
        if "No module named 'slackwater'" not in str(error):
            raise
        raise MissingRequirement(
            "workers-without-slackwater",
            f"Spark's Python workers ({spark.sparkContext.pythonExec}) cannot import slackwater",
            f"set PYSPARK_PYTHON={sys.executable} before Spark is started, or install slackwater where they run",
        ) from None
    return beats.withWatermark(column, "0 seconds")


def _no_row(column: str) -> Column:
    return F.col(column) < F.lit(_BEFORE_ALL_EVENTS).cast("timestamp")
