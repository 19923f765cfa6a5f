"""Values that several handlers read from a progress event."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence

from pyspark.sql.streaming.listener import SourceProgress, StreamingQueryProgress


def parse_ms(timestamp: str) -> float:
    """A timestamp of Spark's events in milliseconds.

    >>> parse_ms("1970-01-01T00:00:01.500Z")
    1500.0
    """
    return dt.datetime.fromisoformat(timestamp.replace("Z", "+00:00")).timestamp() * 1000.0


def duration_s(progress: StreamingQueryProgress) -> float:
    """How long the micro-batch took, from planning to commit."""
    return float(progress.durationMs.get("triggerExecution", 0)) / 1e3


def committed_ms(progress: StreamingQueryProgress) -> float:
    """When the micro-batch was committed."""
    return parse_ms(progress.timestamp) + duration_s(progress) * 1e3


def state_rows(progress: StreamingQueryProgress) -> int:
    """Rows in the state of all operators."""
    return sum(operator.numRowsTotal for operator in progress.stateOperators)


def sources_moved(sources: Sequence[SourceProgress]) -> bool:
    """Whether the sources had something new in this micro-batch.

    If no row was observed all the same, the sink may have had the micro-batch already, and Spark did not run it again.
    """
    return any(source.startOffset != source.endOffset for source in sources)


def query_name(progress: StreamingQueryProgress) -> str:
    """The name the user gave the query, or the start of its id."""
    return progress.name or str(progress.id)[:8]
