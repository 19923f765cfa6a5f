"""The running queries of a session, as Spark knows them."""

from __future__ import annotations

from typing import Any

from pyspark.sql.streaming.query import StreamingQueryManager


class RunningQueries:
    """Answers which queries of a session are running and whether one is busy."""

    def __init__(self, streams: StreamingQueryManager) -> None:
        self._streams = streams

    def active(self) -> set[str]:
        """The ids of all running queries."""
        return {str(query.id) for query in self._streams.active}

    def is_busy(self, query_id: str) -> bool:
        """Whether the query is processing a micro-batch with rows; False once the session is ending."""
        try:
            query = self._streams.get(query_id)
            status = {} if query is None else query.status
        except Exception:
            return False
        return bool(status.get("isTriggerActive") and status.get("isDataAvailable"))

    def checkpoint_of(self, query_id: str) -> str | None:
        """The folder of the query's checkpoint; None where Spark does not say (Spark Connect)."""
        try:
            query: Any = self._streams.get(query_id)
            return str(query._jsq.streamingQuery().resolvedCheckpointRoot())
        except Exception:
            return None
