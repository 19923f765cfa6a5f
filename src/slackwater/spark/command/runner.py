"""Runs a ``RunSpec`` until it ends."""

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

from slackwater.spark.command.run_spec import RunSpec, Started, query_failed
from slackwater.spark.command.sinks import Emit
from slackwater.spark.report import Report, report
from slackwater.spark.runtime.listener import end_stream, reports_of, wait_for_batch
from slackwater.spark.standing.report import PrecisionReport

_FIRST_BATCH_TIMEOUT_S = 120.0
_PROGRESS_S = 1.0

OnText = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class RunOutcome:
    """The report of a run, and whether Ctrl-C ended it."""

    report: Report
    interrupted: bool


def run_until_done(
    spark: SparkSession, spec: RunSpec, *, emit: Emit, on_plan: OnText, on_progress: OnText, as_json: bool
) -> RunOutcome:
    """Run for ``spec.limit_s``, or without a limit until the source has no more rows, or until Ctrl-C.

    The time counts from the first micro-batch, so that Spark's start-up does not shorten the run. ``emit`` receives
    results for the console, ``on_plan`` the plan, ``on_progress`` a short text while the query runs. Raises
    ``QueryFailed`` if the query fails.
    """
    scratch = tempfile.TemporaryDirectory(prefix="slackwater-run-", ignore_cleanup_errors=True)
    with scratch as folder, _ctrl_c_sets_event() as interrupted, warnings.catch_warnings():
        # stopping in the middle of a micro-batch makes toPandas warn; a query that fails raises its own error
        warnings.filterwarnings("ignore", message="toPandas attempted Arrow optimization")
        started = spec.start(spark, Path(folder), emit, as_json)
        query = started.query
        try:
            on_plan(started.plan)
            _wait(started, spec, on_progress, interrupted)
        except StreamingQueryException as error:
            raise query_failed(error) from error
        finally:
            if started.replay is not None:
                started.replay.stop()
            with suppress(Exception):
                query.stop()
        return RunOutcome(report(query), interrupted.is_set())


@contextmanager
def _ctrl_c_sets_event() -> Iterator[threading.Event]:
    """Ctrl-C sets the event. A KeyboardInterrupt would break into a call to the JVM."""
    interrupted = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield interrupted
        return
    previous = signal.signal(signal.SIGINT, lambda *_: interrupted.set())
    try:
        yield interrupted
    finally:
        signal.signal(signal.SIGINT, previous)


def _wait(started: Started, spec: RunSpec, on_progress: OnText, interrupted: threading.Event) -> None:
    query = started.query
    if spec.limit_s is None:
        _wait_for_last_row(started, spec.closes_windows, on_progress, interrupted)
    else:
        deadline = clock.monotonic() + _FIRST_BATCH_TIMEOUT_S
        while query.isActive and query.lastProgress is None and not interrupted.is_set():
            if clock.monotonic() >= deadline:
                break
            query.awaitTermination(1)
        end = clock.monotonic() + spec.limit_s
        while query.isActive and clock.monotonic() < end and not interrupted.is_set():
            query.awaitTermination(1)
            _report_progress(query, on_progress, timeout_s=0.0)
    failure = None if interrupted.is_set() else query.exception()
    if failure is not None:
        raise failure


def _wait_for_last_row(
    started: Started, close_windows: bool, on_progress: OnText, interrupted: threading.Event
) -> None:
    """Wait until every row is committed, and close the windows that are open then if that is asked for."""
    failures: list[Exception] = []
    query, replay = started.query, started.replay

    def process_all() -> None:
        try:
            while replay is not None and query.isActive and not replay.wait(timeout_s=_PROGRESS_S):
                pass
            _process_all(query, on_progress)
            if close_windows and not interrupted.is_set():
                end_stream(str(query.id))
                _process_all(query, on_progress)
        except Exception as error:
            failures.append(error)

    worker = threading.Thread(target=process_all, daemon=True)
    worker.start()
    next_s = 0.0
    while worker.is_alive() and not interrupted.is_set():
        worker.join(0.1)
        if clock.monotonic() >= next_s:
            with suppress(Exception):  # the query may have ended meanwhile
                _report_progress(query, on_progress, timeout_s=0.0)
            next_s = clock.monotonic() + _PROGRESS_S
    if failures and not interrupted.is_set():
        raise failures[0]


def _process_all(query: StreamingQuery, on_progress: OnText) -> None:
    """Return once every row is committed and every heartbeat that follows from the rows is in force."""
    while query.isActive:
        query.processAllAvailable()
        batch = _report_progress(query, on_progress, timeout_s=30.0)
        query.processAllAvailable()
        last = query.lastProgress
        if last is None or int(last["batchId"]) == batch:
            return


def _report_progress(query: StreamingQuery, on_progress: OnText, timeout_s: float) -> int:
    """Report rows or answers so far; return the last batch, whose decisions are published when this returns."""
    last = query.lastProgress
    batch = -1 if last is None else int(last["batchId"])
    wait_for_batch(str(query.id), batch, timeout_s)
    found = reports_of(str(query.id))
    answers = [report.counts for report in found.get("precision", []) if isinstance(report, PrecisionReport)]
    if answers:
        on_progress(f"{sum(counts.evaluated for counts in answers):,} answers")
    else:
        on_progress(f"{sum(promise.ledger.input for promise in found.get('completeness', [])):,} rows")
    return batch
