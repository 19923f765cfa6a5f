"""What ``slackwater run`` runs: a query with its source, tables and sinks."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from slackwater.control.disorder import make_method, method_names
from slackwater.control.shedding import make_law
from slackwater.errors import InvalidOption, QueryFailed, QueryTextError
from slackwater.language import Late, Measure, Query, Window
from slackwater.plan import Catalog, Stream, explain, explain_standing
from slackwater.promises import Completeness
from slackwater.spark.command.sinks import Emit, Sink, writer_to
from slackwater.spark.command.sources import Source
from slackwater.spark.command.tables import StaticTable
from slackwater.spark.runtime.catalog import catalog_of, stream
from slackwater.spark.runtime.error_summary import SPARK_ERRORS, error_summary
from slackwater.spark.runtime.listener import listener_of
from slackwater.spark.runtime.starting import start_failure, start_with_retries
from slackwater.spark.standing.sql import standing_query
from slackwater.spark.windows.options import QueryOptions
from slackwater.spark.windows.sql import plan_query, run_query

_LIVE_TICK = "1 second"
# The clock must tick at least once, to recognise rows from the future. It must not tick again before the run ends.
_SLOW_TICK = "30 minutes"


@dataclass(frozen=True, slots=True)
class RunSpec:
    """A query, its source and its sinks.

    ``table`` is the name that the query gives to the stream. ``tables`` are the static tables it joins. ``key`` and
    ``value`` name columns of a standing query. ``method`` is the method of disorder control, ``law`` the law of load
    shedding for DELAY. ``limit_s`` is the length of the run; None runs until the source ends.
    """

    query: Query
    table: str
    source: Source
    sink: Sink
    late_sink: Sink | None = None
    tables: tuple[StaticTable, ...] = ()
    event_time: str | None = None
    key: str | None = None
    value: str | None = None
    method: str | None = None
    law: str | None = None
    checkpoint: Path | None = None
    limit_s: float | None = None

    @property
    def window(self) -> Window:
        """The window clause of the stream; an empty one if the query (a standing query) has none."""
        windowed = self.query.windowed()
        return windowed[0][1] if windowed else Window()

    @property
    def standing(self) -> bool:
        """Whether the query is a standing query (WITHIN)."""
        return self.query.precision is not None

    def check(self) -> None:
        """Raise the errors that can be found without Spark."""
        if self.late_sink is not None and self.window.late in (None, Late.COUNT):
            remedy = "leave it out" if self.standing else "write LATE ROWS or LATE PANES in the query"
            raise InvalidOption("nothing-late", "--late-sink: the query has no late output", remedy)
        if self.method is not None:
            if self.method not in method_names():
                make_method(self.method, Completeness(0.0))  # refuses it, with the names that there are
            if self.standing:
                problem = f"--method {self.method} has no effect on a standing query (WITHIN)"
                raise InvalidOption("option-not-used", problem, "leave out --method")
        if self.law is not None:
            make_law(self.law)  # refuses an unknown one
            if self.window.delay_ms is None:
                problem = f"--law {self.law} has no effect without DELAY"
                raise InvalidOption("option-not-used", problem, "add DELAY to the window, or leave out --law")
        for sink in (self.sink, self.late_sink):
            if sink is not None:
                sink.refuse_another_run(self.checkpoint)
        columns = self.source.columns()
        for option, column in (("--event-time", self.event_time), ("--key", self.key), ("--value", self.value)):
            if column is not None and option != "--event-time" and not self.standing:
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
        """Start the query; return its plan as text and the running query.

        ``scratch`` is a folder for temporary files. ``emit`` receives results for the console.
        """
        try:
            for table in self.tables:
                table.register(spark)
            events = self.source.read(spark, self._replay_order(), self.limit_s, scratch)
            event_time = self.event_time or self.source.event_time
            stream(self.table, events, event_time=event_time, key=self.key, value=self.value)
            plan, result = self._plan(spark)
        except AnalysisException as error:
            remedy = "fix the query, or provide the tables that it reads with --table"
            raise QueryTextError("wrong-query", f"Spark rejects the query: {error_summary(error)}", remedy) from error
        except SPARK_ERRORS as error:
            raise query_failed(error) from error
        listener = listener_of(spark)
        writer = writer_to(
            result, self.sink, self.late_sink, emit, as_json, lambda rows: listener.add_results(self.table, rows)
        )
        checkpoint = str(self.checkpoint or scratch / "checkpoint")
        try:
            return plan, start_with_retries(writer.outputMode("append").option("checkpointLocation", checkpoint))
        except SPARK_ERRORS as error:
            raise query_failed(error) from error

    def _plan(self, spark: SparkSession) -> tuple[str, DataFrame]:
        """The plan as text, and the streaming DataFrame that computes it."""
        location = None if self.checkpoint is None else str(self.checkpoint.resolve() / "slackwater")
        if not self.standing:
            plan, _ = plan_query(spark, self.query)
            return explain(plan), run_query(spark, self.query, self._options(location))
        # A clock that ticks after the last row would make every stream look silent, and the answers would depend on
        # the speed of the machine. So only a live run with a time limit gets a fast clock.
        live = self.limit_s is not None and not self.source.recorded
        tick = _LIVE_TICK if live else _SLOW_TICK
        answers = standing_query(spark, self.query, name=self.table, location=location, tick=tick, _limited=live)
        return explain_standing(self.query, catalog_of(spark, [self.table]), self.table, self.value), answers

    def _options(self, location: str | None) -> QueryOptions:
        return QueryOptions(name=self.table, method=self.method, law=self.law, location=location)

    def _replay_order(self) -> str | None:
        """The column that orders a replay: the arrival, or for a standing query without one the event time."""
        if not self.standing or self.window.arrival is not None:
            return self.window.arrival
        times = [column for column, measure in (self.source.columns() or {}).items() if measure is Measure.TIME]
        return self.window.attribute or self.event_time or (times[0] if len(times) == 1 else None)


def query_failed(error: Exception) -> QueryFailed:
    """The error of a query that Spark failed to start or to run."""
    summary = error_summary(error)
    return start_failure(summary) or QueryFailed("query-failed", summary, "look up the cause in the message")
