"""The running queries of a session, as Spark knows them."""

from __future__ import annotations

import threading
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

    def next_batch(self, query_id: str) -> int:
        """The number of the first micro-batch that is not committed; 0 where Spark does not say (Spark Connect)."""
        try:
            query: Any = self._streams.get(query_id)
            latest = query._jsq.streamingQuery().commitLog().getLatestBatchId()
            return 0 if latest.isEmpty() else int(latest.get()) + 1
        except Exception:
            return 0

    def real_time_plan(self, query_id: str) -> str:
        """The plan of a query in real-time mode; empty for any other, and where Spark does not say (Spark Connect)."""
        try:
            query: Any = self._streams.get(query_id)
            running = query._jsq.streamingQuery()
            in_real_time = running.trigger().getClass().getSimpleName() == "RealTimeTrigger"
            return str(running.analyzedPlan().toString()) if in_real_time else ""
        except Exception:
            return ""

    def stop(self, query_id: str) -> None:
        """Stop a query from a listener, for which Spark waits: it ends soon after."""
        query = self._streams.get(query_id)
        if query is not None:
            threading.Thread(target=query.stop, name=f"slackwater-stop-{query_id}", daemon=True).start()
