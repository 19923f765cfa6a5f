"""Whether the rows of a micro-batch were read exactly once: what was observed, compared with what the sources say.

Spark runs the plan of a micro-batch once per sink. But ``foreachBatch`` runs it whenever the user's function uses the
batch, and a query without state then reads the source each time, perhaps in part. Observed metrics are those of the
last time (before Spark 4.3: of all times together), while the sources count the rows of all times.

A task that runs again because its executor was lost is another matter: the sources count its rows each time. Observed
metrics count them once, but only from Spark 4.3 on.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pyspark import SparkContext
from pyspark.sql.streaming.listener import SourceProgress, StreamingQueryProgress

from slackwater.spark.runtime.row_flow import RowFlow

_FOREACH_BATCH = "ForeachBatchSink"
_EACH_TASK_COUNTS_ONCE_FROM = (4, 3)
"""The version of Spark whose observed metrics count a task once, however often it runs."""


class ReadCheck:
    """Checks the micro-batches of a session, one after the other. Costs some milliseconds for each."""

    def __init__(self) -> None:
        self._last_job: dict[str, int] = {}
        self._latest: dict[str, tuple[int, list[int]]] = {}

    def misread(
        self,
        progress: StreamingQueryProgress,
        flow: RowFlow | None,
        sources: Sequence[SourceProgress],
        observed_rows: int,
    ) -> bool:
        """Whether there is a sign that the rows of a promise were not read exactly once.

        :param sources: the sources of the promise, as far as they can be told.
        :param observed_rows: all rows that were observed.
        """
        jobs = self._jobs_of(str(progress.runId), progress.batchId)
        stateless_uses = _FOREACH_BATCH in progress.sink.description and not progress.stateOperators
        used_again = stateless_uses and len(jobs) > 1
        delivered = None if flow is None or not flow.keeps_rows else _delivered_rows(sources, flow)
        disagree = delivered is not None and _disagree(delivered, observed_rows, once=stateless_uses)
        if _each_task_counts_once():
            return disagree and (used_again or not _repeated_tasks(jobs))
        return disagree or (observed_rows > 0 and (used_again or _repeated_tasks(jobs)))

    def _jobs_of(self, run_id: str, batch: int) -> list[int]:
        """The jobs of a micro-batch, which every promise of the query asks for."""
        if run_id not in self._latest or self._latest[run_id][0] != batch:
            self._latest[run_id] = batch, self._new_jobs(run_id)
        return self._latest[run_id][1]

    def _new_jobs(self, run_id: str) -> list[int]:
        """The jobs of a query since the last call; none where Spark does not tell (Spark Connect)."""
        context: Any = SparkContext._active_spark_context
        if context is None:
            return []
        # Each element of a Java array is a call, and there may be a thousand: sort it there, and read the last ones.
        jobs = context.statusTracker()._jtracker.getJobIdsForGroup(run_id)
        context._jvm.java.util.Arrays.sort(jobs)
        found: list[int] = []
        last, at = self._last_job.get(run_id, -1), len(jobs)
        while at and jobs[at - 1] > last:
            at -= 1
            found.append(jobs[at])
        self._last_job[run_id] = max(found, default=last)
        return found


def _repeated_tasks(jobs: list[int]) -> bool:
    """Whether a task of these jobs ran more than once."""
    context = SparkContext._active_spark_context
    if context is None:
        return False
    status = context.statusTracker()
    stages = [stage for job in jobs if (info := status.getJobInfo(job)) for stage in info.stageIds]
    infos = (status.getStageInfo(stage) for stage in stages)
    return any(info is not None and (info.currentAttemptId or info.numFailedTasks) for info in infos)


def _disagree(delivered: int, observed_rows: int, *, once: bool) -> bool:
    """Whether the sources delivered other rows than were observed.

    A plan may read a source several times. A stateless one in ``foreachBatch`` must not, since each use reads it again.
    """
    return delivered != observed_rows if once else not observed_rows or delivered % observed_rows != 0


def _delivered_rows(sources: Sequence[SourceProgress], flow: RowFlow) -> int | None:
    """The rows that the sources of a promise delivered, each time they were read; None if Spark does not say."""
    rows = sum(source.numInputRows for source in sources)
    return rows if rows and len(sources) == flow.sources else None


def _each_task_counts_once() -> bool:
    context = SparkContext._active_spark_context
    version = "" if context is None else context.version
    return tuple(int(part) for part in version.split(".")[:2] if part.isdigit()) >= _EACH_TASK_COUNTS_ONCE_FROM
