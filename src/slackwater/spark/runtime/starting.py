"""The start of a query whose source runs in a Python process, on a machine that is too busy to start one in time."""

from __future__ import annotations

import time

from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.readwriter import DataStreamWriter

from slackwater.errors import QueryFailed

_SPARK_SAYS = "Python worker failed to connect back"
_TRIES = 3
_POLL_S = 0.1


def process_failure(message: str | None) -> QueryFailed | None:
    """An explanation if this is the message of a query that ended because a source's process did not start in time."""
    if message is None or _SPARK_SAYS not in message:
        return None
    return QueryFailed(
        "start-timed-out",
        "Spark gave up on the Python process of a source: it did not connect within ten seconds, which no setting "
        "changes, so the driver's machine is too busy. The checkpoint is as it was",
        "start the query again; start several queries one after the other, or give the driver more processors",
    )


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
    return query.exception() is not None and process_failure(str(query.exception())) is not None
