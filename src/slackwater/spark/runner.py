"""A query run from a source to its sinks, for the command."""

from __future__ import annotations

import signal
import tempfile
import threading
import time as clock
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from pyspark.errors import AnalysisException, PySparkException, StreamingQueryException
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from slackwater.errors import InvalidOption, QueryFailed, QueryTextError
from slackwater.language import Late, parse
from slackwater.plan import Plan
from slackwater.spark.query import plan_query, run_query
from slackwater.spark.report import Report, report
from slackwater.spark.sinks import Emit, Sink, writer_to
from slackwater.spark.sources import Source
from slackwater.spark.streams import stream
from slackwater.spark.supervisor import keepers_of, supervisor_of

_FIRST_BATCH_S = 120.0


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of a run."""

    report: Report
    interrupted: bool


@dataclass(frozen=True, slots=True)
class Run:
    """A query text, where its rows come from, and where its results go."""

    text: str
    table: str
    source: Source
    sink: Sink
    late_sink: Sink | None = None
    time: str | None = None
    checkpoint: Path | None = None
    limit_s: float | None = None

    def start(
        self, spark: SparkSession, scratch: Path, emit: Emit, as_json: bool = False
    ) -> tuple[Plan, StreamingQuery]:
        """The plan, and the query that runs it."""
        query_text = parse(self.text)
        window = query_text.windowed()[0][1]
        if self.late_sink is not None and window.late in (None, Late.COUNT):
            raise InvalidOption(
                "nothing-late", "--late-sink has nothing to take", "write LATE ROWS or LATE PANES in the query"
            )
        for sink in (self.sink, self.late_sink):
            if sink is not None:
                sink.refuse_another_run(self.checkpoint)
        try:
            events = self.source.read(spark, window.arrival, self.limit_s, scratch)
            stream(self.table, events, time=self.time or self.source.time)
            plan, _ = plan_query(spark, query_text)
            promises = None if self.checkpoint is None else str(self.checkpoint.resolve() / "slackwater")
            result = run_query(spark, query_text, name=self.table, location=promises)
        except AnalysisException as error:
            raise QueryTextError("wrong-query", f"Spark refuses it: {_said_by(error)}", "mend the query") from error
        supervisor = supervisor_of(spark)
        writer = writer_to(
            result, self.sink, self.late_sink, emit, as_json, lambda shown: supervisor.show(self.table, shown)
        )
        place = str(self.checkpoint or scratch / "checkpoint")
        try:
            return plan, writer.outputMode("append").option("checkpointLocation", place).start()
        except PySparkException as error:
            raise QueryFailed("query-failed", _said_by(error), "see the message above it") from error


def run_to_the_end(
    spark: SparkSession, run: Run, tell: Callable[[int], None], emit: Emit, as_json: bool, show: Callable[[Plan], None]
) -> Outcome:
    """Run until its time is over, or without a limit until nothing comes any more, or until it is interrupted.

    The time counts from the first micro-batch, as what comes before is Spark's own start. It fails with what Spark says
    if the query fails.
    """
    scratch = tempfile.TemporaryDirectory(prefix="slackwater-run-", ignore_cleanup_errors=True)
    with scratch as folder, _interruptions() as interrupted:
        plan, query = run.start(spark, Path(folder), emit, as_json)
        try:
            show(plan)
            _wait(query, run.limit_s, tell, interrupted)
        except StreamingQueryException as error:
            raise QueryFailed("query-failed", _said_by(error), "see what it names") from error
        finally:
            with suppress(Exception):
                query.stop()
        return Outcome(report(query), interrupted.is_set())


@contextmanager
def _interruptions() -> Iterator[threading.Event]:
    """Set by Ctrl-C, which would otherwise fall into the middle of a call to the JVM."""
    asked = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield asked
        return
    before = signal.signal(signal.SIGINT, lambda *_: asked.set())
    try:
        yield asked
    finally:
        signal.signal(signal.SIGINT, before)


def _wait(query: StreamingQuery, limit_s: float | None, tell: Callable[[int], None], asked: threading.Event) -> None:
    if limit_s is None:
        _until_nothing_comes(query, tell, asked)
    else:
        patience = clock.monotonic() + _FIRST_BATCH_S
        while query.isActive and query.lastProgress is None and clock.monotonic() < patience and not asked.is_set():
            query.awaitTermination(1)
        end = clock.monotonic() + limit_s
        while query.isActive and clock.monotonic() < end and not asked.is_set():
            query.awaitTermination(1)
            _tell(query, tell, timeout_s=0.0)
    failure = None if asked.is_set() else query.exception()
    if failure is not None:
        raise failure


def _until_nothing_comes(query: StreamingQuery, tell: Callable[[int], None], asked: threading.Event) -> None:
    """Until every row is committed and every heartbeat that follows from them has taken effect."""
    failures: list[Exception] = []

    def work() -> None:
        try:
            while query.isActive:
                query.processAllAvailable()
                batch = _tell(query, tell, timeout_s=30.0)
                query.processAllAvailable()
                last = query.lastProgress
                if last is None or int(last["batchId"]) == batch:
                    return
        except Exception as error:
            failures.append(error)

    worker = threading.Thread(target=work, daemon=True)
    worker.start()
    while worker.is_alive() and not asked.is_set():
        worker.join(0.1)
    if failures and not asked.is_set():
        raise failures[0]


def _tell(query: StreamingQuery, tell: Callable[[int], None], timeout_s: float) -> int:
    last = query.lastProgress
    batch = -1 if last is None else int(last["batchId"])
    tell(sum(keeper.ledger.input for keeper in keepers_of(str(query.id), batch, timeout_s=timeout_s)))
    return batch


def _said_by(error: PySparkException) -> str:
    """The first lines of what Spark says: the rest is its plan and its stack."""
    said = (error.getMessage() or str(error)).split("JVM stacktrace")[0].strip()
    cause = said.rpartition("Caused by:")[2] if "Caused by:" in said else said
    return " ".join(line.strip() for line in cause.splitlines()[:3] if line.strip())[:600].rstrip(".; ")
