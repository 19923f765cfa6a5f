"""The start of a query whose heartbeats come from a Python process, and why it fails."""

from __future__ import annotations

import time

from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.readwriter import DataStreamWriter

from slackwater.errors import QueryFailed

NO_CONTINUOUS_MODE = (
    "[continuous-mode] a promise needs micro-batches: use trigger(processingTime=...) or trigger(availableNow=True)"
)
"""An alias for the stream below the first operator that continuous mode refuses.

Spark refuses it before any code of ours runs, and its message shows the plan from there on: the alias is the second
line.
"""
_NO_PROCESS = "Python worker failed to connect back"
_REAL_TIME = "STREAMING_REAL_TIME_MODE.INPUT_STREAM_NOT_SUPPORTED"
_TRIES = 3
_POLL_S = 0.1


def start_failure(message: str | None) -> QueryFailed | None:
    """An explanation of the message with which a query ended at its start; None if it is of another kind."""
    if message is not None and _NO_PROCESS in message:
        return QueryFailed(
            "start-timed-out",
            "Spark gave up on the Python process of a source: it did not connect within ten seconds, which no setting "
            "changes, so the driver's machine is too busy. The checkpoint is as it was",
            "start the query again; start several queries one after the other, or give the driver more processors",
        )
    if message is not None and _REAL_TIME in message:
        return no_real_time_mode("real-time mode reads no Python source, and the heartbeats of a promise come from one")
    return None


def no_real_time_mode(why: str) -> QueryFailed:
    """A query in real-time mode cannot be under a promise."""
    return QueryFailed("real-time-mode", why, "use trigger(processingTime=…) or trigger(availableNow=True)")


def start_with_retries(writer: DataStreamWriter) -> StreamingQuery:
    """Start a query, and again if the process of a source did not start in time; three times at most.

    Returns once its sources have answered. That takes as long as they need, and no longer.
    """
    query = writer.start()
    for _ in range(_TRIES - 1):
        if not _failed_to_start(query):
            break
        query = writer.start()
    return query


def _failed_to_start(query: StreamingQuery) -> bool:
    """Wait until the query's sources have answered or it has ended; whether it ended because of a process."""
    while query.isActive:
        status = query.status
        if query.lastProgress is not None or status["isDataAvailable"] or status["message"].startswith("Waiting"):
            return False
        time.sleep(_POLL_S)
    return query.exception() is not None and _NO_PROCESS in str(query.exception())
