"""A query run until it ends, for the command."""

from __future__ import annotations

import signal
import tempfile
import threading
import time as clock
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from slackwater.errors import QueryFailed
from slackwater.spark.command.run_spec import Run
from slackwater.spark.command.sinks import Emit
from slackwater.spark.report import Report, report
from slackwater.spark.runtime.error_summary import error_summary
from slackwater.spark.runtime.listener import completeness_trackers_of, standing_of

_FIRST_BATCH_S = 120.0


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of a run."""

    report: Report
    interrupted: bool


def run_to_the_end(
    spark: SparkSession, run: Run, tell: Callable[[str], None], emit: Emit, as_json: bool, show: Callable[[str], None]
) -> Outcome:
    """Run until its time is over, or without a limit until nothing comes any more, or until it is interrupted.

    The time counts from the first micro-batch, as what comes before is Spark's own start. It fails with what Spark says
    if the query fails.
    """
    scratch = tempfile.TemporaryDirectory(prefix="slackwater-run-", ignore_cleanup_errors=True)
    with scratch as folder, _interruptions() as interrupted, warnings.catch_warnings():
        # a stop in the middle of a micro-batch is none of the user's errors, and a failed query says why itself
        warnings.filterwarnings("ignore", message="toPandas attempted Arrow optimization")
        plan, query = run.start(spark, Path(folder), emit, as_json)
        try:
            show(plan)
            _wait(query, run.limit_s, tell, interrupted)
        except StreamingQueryException as error:
            raise QueryFailed("query-failed", error_summary(error), "see what it names") from error
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


def _wait(query: StreamingQuery, limit_s: float | None, tell: Callable[[str], None], asked: threading.Event) -> None:
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


def _until_nothing_comes(query: StreamingQuery, tell: Callable[[str], None], asked: threading.Event) -> None:
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


def _tell(query: StreamingQuery, tell: Callable[[str], None], timeout_s: float) -> int:
    last = query.lastProgress
    batch = -1 if last is None else int(last["batchId"])
    trackers = completeness_trackers_of(str(query.id), batch, timeout_s=timeout_s)
    answers = [series.latest("standing") for series in standing_of(str(query.id), batch, timeout_s=0.0)]
    if answers:
        tell(f"{sum(standing.evaluated for standing in answers if standing is not None):,} answers")
    else:
        tell(f"{sum(tracker.ledger.input for tracker in trackers):,} rows")
    return batch
