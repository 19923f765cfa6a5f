"""A query with its source, tables and sinks, as the command is asked to run it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from slackwater.errors import InvalidOption, QueryFailed, QueryTextError
from slackwater.language import Late, Measure, Query, Window
from slackwater.plan import Catalog, Stream, explain
from slackwater.plan.standing import explain_standing
from slackwater.spark.command.sinks import Emit, Sink, writer_to
from slackwater.spark.command.sources import Source
from slackwater.spark.command.tables import StaticTable
from slackwater.spark.runtime.catalog import catalog_of, stream
from slackwater.spark.runtime.error_summary import SPARK_ERRORS, error_summary
from slackwater.spark.runtime.listener import listener_of
from slackwater.spark.standing.sql import standing_query
from slackwater.spark.windows.sql import plan_query, run_query

_LIVE_TICK = "1 second"
# Often enough to know which rows are stamped in the future, and so seldom that a run without ticks can end.
_SLOW_TICK = "30 minutes"


@dataclass(frozen=True, slots=True)
class Run:
    """A query, where its rows come from, and where its results go.

    ``table`` is the name of its stream; ``key`` and ``value`` are for standing queries.
    """

    query: Query
    table: str
    source: Source
    sink: Sink
    late_sink: Sink | None = None
    tables: tuple[StaticTable, ...] = ()
    time: str | None = None
    key: str | None = None
    value: str | None = None
    checkpoint: Path | None = None
    limit_s: float | None = None

    @property
    def window(self) -> Window:
        """What stands in brackets; a standing query may do without."""
        windowed = self.query.windowed()
        return windowed[0][1] if windowed else Window()

    @property
    def standing(self) -> bool:
        """Whether it is a standing query."""
        return self.query.precision is not None

    def check(self) -> None:
        """Refuse what cannot be run, as far as that can be told without Spark."""
        if self.late_sink is not None and self.window.late in (None, Late.COUNT):
            remedy = "leave it out" if self.standing else "write LATE ROWS or LATE PANES in the query"
            raise InvalidOption("nothing-late", "--late-sink has nothing to take", remedy)
        for sink in (self.sink, self.late_sink):
            if sink is not None:
                sink.refuse_another_run(self.checkpoint)
        columns = self.source.columns()
        for option, column in (("--time", self.time), ("--key", self.key), ("--value", self.value)):
            if column is not None and option != "--time" and not self.standing:
                raise InvalidOption(
                    "not-standing", f"{option} {column} is for standing queries (WITHIN)", "leave it out"
                )
            if column is not None and columns is not None and column not in columns:
                known = ", ".join(columns)
                raise InvalidOption("no-such-column", f"{option} {column} is not a column", f"use one of: {known}")
        if self.standing and columns is not None:
            explain_standing(self.query, Catalog.of(Stream(self.table, columns)), self.table, self.value)

    def start(
        self, spark: SparkSession, scratch: Path, emit: Emit, as_json: bool = False
    ) -> tuple[str, StreamingQuery]:
        """The plan as text, and the query that runs it."""
        try:
            for table in self.tables:
                table.register(spark)
            events = self.source.read(spark, self._order(), self.limit_s, scratch)
            stream(self.table, events, event_time=self.time or self.source.time, key=self.key, value=self.value)
            plan, result = self._planned(spark)
        except AnalysisException as error:
            remedy = "mend the query, or give the tables that it reads with --table"
            raise QueryTextError("wrong-query", f"Spark refuses it: {error_summary(error)}", remedy) from error
        except SPARK_ERRORS as error:
            raise QueryFailed("query-failed", error_summary(error), "see what it names") from error
        listener = listener_of(spark)
        writer = writer_to(
            result, self.sink, self.late_sink, emit, as_json, lambda shown: listener.show(self.table, shown)
        )
        place = str(self.checkpoint or scratch / "checkpoint")
        try:
            return plan, writer.outputMode("append").option("checkpointLocation", place).start()
        except SPARK_ERRORS as error:
            raise QueryFailed("query-failed", error_summary(error), "see what it names") from error

    def _planned(self, spark: SparkSession) -> tuple[str, DataFrame]:
        location = None if self.checkpoint is None else str(self.checkpoint.resolve() / "slackwater")
        if not self.standing:
            plan, _ = plan_query(spark, self.query)
            return explain(plan), run_query(spark, self.query, name=self.table, location=location)
        # Where the rows are the end, the clock must not go on: an answer would depend on how fast the machine is,
        # and every stream would seem to fall silent behind the last row of a recording.
        tick = _SLOW_TICK if self.limit_s is None or self.source.recorded else _LIVE_TICK
        answers = standing_query(spark, self.query, name=self.table, location=location, tick=tick)
        return explain_standing(self.query, catalog_of(spark, [self.table]), self.table, self.value), answers

    def _order(self) -> str | None:
        """The column by which a recording is replayed: a standing query knows no arrival, only the streams' time."""
        if not self.standing:
            return self.window.arrival
        times = [column for column, measure in (self.source.columns() or {}).items() if measure is Measure.TIME]
        return self.window.attribute or self.time or (times[0] if len(times) == 1 else None)
