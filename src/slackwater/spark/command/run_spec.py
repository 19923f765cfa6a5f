"""What ``slackwater run`` runs: a query with its source, tables and sinks."""

from __future__ import annotations

import pathlib
import re
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from slackwater.control.disorder import make_method, method_names
from slackwater.control.shedding import make_law
from slackwater.errors import InvalidData, InvalidOption, PromiseConflict, QueryFailed, QueryTextError
from slackwater.files import claimed, require_output_folder
from slackwater.language import Late, Measure, Query, Window
from slackwater.names import safe_name
from slackwater.plan import (
    Catalog,
    CombinedPlan,
    Path,
    Stream,
    explain_standing,
    plan_query_text,
)
from slackwater.plan.name_checks import check_names
from slackwater.promises import Completeness
from slackwater.spark.command.kafka_source import KafkaSource
from slackwater.spark.command.replay_source import ReplaySource
from slackwater.spark.command.result_rows import Emit
from slackwater.spark.command.sinks import Sink, writer_to
from slackwater.spark.command.sources import Source
from slackwater.spark.command.tables import StaticTable

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

    from slackwater.spark.command.replay_source import Replay

_OTHER_QUERY = re.compile(r"\[other-query\] (?P<problem>[^\n]+?); (?P<remedy>start it as it was[^\n]*)")
_LIVE_TICK = "1 second"
# The clock must tick at least once, to recognise rows from the future. It must not tick again before the run ends.
_SLOW_TICK = "30 minutes"


@dataclass(frozen=True, slots=True)
class RunSpec:
    """A query, its source and its sinks.

    ``table`` is the name that the query gives to the stream. ``tables`` are the static tables it joins. ``key`` and
    ``value`` name columns of a standing query. ``method`` is the method of disorder control, ``law`` the law of load
    shedding for DELAY. ``limit_s`` is the length of the run; None runs until the source ends. ``flush`` says whether
    windows that are open then are closed; None leaves it to the source.
    """

    query: Query
    table: str
    source: Source | ReplaySource | KafkaSource
    sink: Sink
    late_sink: Sink | None = None
    tables: tuple[StaticTable, ...] = ()
    event_time: str | None = None
    key: str | None = None
    value: str | None = None
    method: str | None = None
    law: str | None = None
    checkpoint: pathlib.Path | None = None
    limit_s: float | None = None
    flush: bool | None = None

    @property
    def closes_windows(self) -> bool:
        """Whether windows that are open at the end of the source are closed.

        A folder that is read with a checkpoint may get more files before the next run.
        """
        if self.flush is not None:
            return self.flush
        return self.limit_s is None and (self.source.ends or self.checkpoint is None)

    @property
    def name(self) -> str:
        """The name of the promise."""
        return safe_name(self.table)

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
        self._check_options()
        self.sink.check(self.checkpoint, "--sink")
        if self.late_sink is not None:
            self.late_sink.check(self.checkpoint, "--late-sink")
        require_output_folder(self.checkpoint, "--checkpoint ")
        self.source.check()
        if (
            isinstance(self.source, Source)
            and self.source.is_empty
            and self.limit_s is None
            and self.checkpoint is None
        ):
            problem = f"--source {self.source.kind}:{self.source.where} has no files"
            raise InvalidData("no-such-file", problem, "add some, or wait for them with --seconds 60")
        tables = [table.stream() for table in self.tables]
        stream = self.source.stream(self.table)
        self._check_columns(stream)
        if stream is not None:
            self._check_query(replace(stream, time=self._event_time(stream)), tables)

    def _check_options(self) -> None:
        """Refuse options that contradict each other or have no effect on the query."""
        if self.flush and self.limit_s is not None:
            problem = f"--flush closes windows at the end of the source, and --seconds {self.limit_s:g} stops before it"
            raise InvalidOption("stopped-before-the-end", problem, "leave one of them out")
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

    def _check_columns(self, stream: Stream | None) -> None:
        """Refuse options that name a column which is not there, or which the query does not use."""
        for option, column in (("--event-time", self.event_time), ("--key", self.key), ("--value", self.value)):
            if column is not None and option != "--event-time" and not self.standing:
                raise InvalidOption(
                    "not-standing", f"{option} {column} is for standing queries (WITHIN)", "leave it out"
                )
            if column is not None and stream is not None and stream.column(column) is None:
                known = ", ".join(stream.columns)
                raise InvalidOption("no-such-column", f"{option} {column} is not a column", f"use one of: {known}")

    def _check_query(self, stream: Stream, tables: Sequence[Stream | None]) -> None:
        """Plan the query; find unknown names and wrong types if the columns of all its tables are known."""
        known = [table for table in tables if table is not None]
        if len(known) == len(tables):
            check_names(self.query, Catalog.of(stream, *known))
        if self.standing:
            explain_standing(self.query, Catalog.of(stream), self.table, self.value)
        else:
            plan_query_text(self.query, Catalog.of(stream))

    def _event_time(self, stream: Stream) -> str | None:
        """The column that orders the stream where the query names none."""
        return self.event_time or self.source.event_time or _only_time(stream)

    @contextmanager
    def claimed(self) -> Iterator[None]:
        """Keep other runs away from the folders of the sinks and of the checkpoint meanwhile."""
        folders = [("--sink", self.sink.folder), ("--checkpoint", self.checkpoint)]
        if self.late_sink is not None:
            folders.append(("--late-sink", self.late_sink.folder))
        with ExitStack() as claims:
            for option, folder in folders:
                if folder is not None:
                    claims.enter_context(claimed(folder, option))
            yield

    def start(self, spark: SparkSession, scratch: pathlib.Path, emit: Emit, as_json: bool = False) -> Started:
        """Start the query.

        ``scratch`` is a folder for temporary files. ``emit`` receives results for the console.
        """
        from pyspark.errors import AnalysisException

        from slackwater.spark.runtime.catalog import stream
        from slackwater.spark.runtime.error_summary import SPARK_ERRORS, error_summary
        from slackwater.spark.runtime.listener import listener_of
        from slackwater.spark.runtime.starting import start_with_retries

        replay = None
        try:
            for table in self.tables:
                table.register(spark)
            if isinstance(self.source, ReplaySource):
                replay = self.source.replay(spark, self._replay_order(), (self.checkpoint or scratch) / "replay")
                events = replay.stream(spark)
            else:
                events = self.source.read(spark, self.limit_s)
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
            result, self.sink, self.late_sink, emit, as_json, lambda rows: listener.add_results(self.name, rows)
        )
        checkpoint = str(self.checkpoint or scratch / "checkpoint")
        try:
            if replay is not None:
                replay.start()
            query = start_with_retries(writer.outputMode("append").option("checkpointLocation", checkpoint))
        except SPARK_ERRORS as error:
            if replay is not None:
                replay.stop()
            raise query_failed(error) from error
        return Started(plan, query, replay)

    def _plan(self, spark: SparkSession) -> tuple[str, DataFrame]:
        """The plan as text, and the streaming DataFrame that computes it."""
        from slackwater.spark.runtime.catalog import catalog_of
        from slackwater.spark.runtime.results import observe_results
        from slackwater.spark.standing.sql import standing_query
        from slackwater.spark.windows.options import QueryOptions
        from slackwater.spark.windows.sql import plan_of, run_query

        location = None if self.checkpoint is None else str(self.checkpoint.resolve() / "slackwater")
        if not self.standing:
            options = QueryOptions(name=self.name, method=self.method, law=self.law, location=location)
            plan, shown = plan_of(spark, self.query)
            results = run_query(spark, self.query, options)
            if isinstance(plan, CombinedPlan) or plan.path is not Path.ROWS:
                return shown, results
            # The results of plain Spark SQL over a promised stream are counted by nobody else.
            return shown, observe_results(results, self.name)
        # A clock that ticks after the last row would make every stream look silent, and the answers would depend on
        # the speed of the machine. So only a live run with a time limit gets a fast clock.
        live = self.limit_s is not None and not self.source.recorded
        tick = _LIVE_TICK if live else _SLOW_TICK
        answers = standing_query(spark, self.query, name=self.name, location=location, tick=tick, _limited=live)
        return explain_standing(self.query, catalog_of(spark, [self.table]), self.table, self.value), answers

    def _replay_order(self) -> str | None:
        """The column that orders a replay: the arrival, or for a standing query without one the event time."""
        if not self.standing or self.window.arrival is not None:
            return self.window.arrival
        stream = self.source.stream(self.table)
        return self.window.attribute or (None if stream is None else self._event_time(stream))


@dataclass(frozen=True, slots=True)
class Started:
    """A query that runs: its plan as text, and the replay that it reads, if it reads one."""

    plan: str
    query: StreamingQuery
    replay: Replay | None


def _only_time(stream: Stream) -> str | None:
    """The only column that is a time, if there is exactly one."""
    times = [column for column, measure in stream.columns.items() if measure is Measure.TIME]
    return times[0] if len(times) == 1 else None


def query_failed(error: Exception) -> QueryFailed | PromiseConflict:
    """The error of a query that Spark failed to start or to run; a source refuses the checkpoint of another query."""
    from slackwater.spark.runtime.error_summary import error_summary
    from slackwater.spark.runtime.starting import start_failure

    conflict = _OTHER_QUERY.search(str(error))
    if conflict is not None:
        return PromiseConflict("other-query", conflict["problem"], conflict["remedy"])
    summary = error_summary(error)
    return start_failure(summary) or QueryFailed("query-failed", summary, "look up the cause in the message")
