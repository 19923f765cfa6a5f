"""Whether the rows of a micro-batch were read exactly once: what was observed, compared with what the sources say.

Spark runs the plan of a micro-batch once per sink. But ``foreachBatch`` runs it whenever the user's function uses the
batch, and a query without state then reads the source each time, perhaps in part. Observed metrics are those of the
last time (before Spark 4.3: of all times together), while the sources count the rows of all times.
"""

from __future__ import annotations

from pyspark import SparkContext
from pyspark.sql.streaming.listener import StreamingQueryProgress

from slackwater.spark.runtime.row_flow import RowFlow

_FOREACH_BATCH = "ForeachBatchSink"
_EACH_TASK_COUNTS_ONCE_FROM = (4, 3)
"""The version of Spark whose observed metrics count a task once, however often it runs."""


class ReadCheck:
    """Checks the micro-batches of a session, one after the other."""

    def __init__(self) -> None:
        self._jobs_seen: dict[str, int] = {}

    def misread(
        self, progress: StreamingQueryProgress, flow: RowFlow | None, first_source: int, observed_rows: int
    ) -> bool:
        """Whether there is a sign that the rows of a promise were not read exactly once.

        :param first_source: the position of the promise's first source in the progress event.
        :param observed_rows: all rows that were observed.
        """
        ran_again = not _each_task_counts_once() and self._ran_again(progress)
        delivered = None if flow is None else _delivered_rows(progress, flow, first_source)
        if flow is not None and delivered is not None and _disagree(progress, flow, delivered, observed_rows):
            return True
        return ran_again and observed_rows > 0

    def _ran_again(self, progress: StreamingQueryProgress) -> bool:
        """Whether tasks were repeated, or foreachBatch may have run the plan more than once, since the last call."""
        context = SparkContext._active_spark_context
        if context is None:
            return False
        run_id, status = str(progress.runId), context.statusTracker()
        jobs = [job for job in status.getJobIdsForGroup(run_id) if job > self._jobs_seen.get(run_id, -1)]
        self._jobs_seen[run_id] = max(jobs, default=self._jobs_seen.get(run_id, -1))
        if len(jobs) > 1 and _FOREACH_BATCH in progress.sink.description and not progress.stateOperators:
            return True
        stages = [stage for job in jobs if (info := status.getJobInfo(job)) for stage in info.stageIds]
        infos = (status.getStageInfo(stage) for stage in stages)
        return any(info is not None and (info.currentAttemptId or info.numFailedTasks) for info in infos)


def _disagree(progress: StreamingQueryProgress, flow: RowFlow, delivered: int, observed_rows: int) -> bool:
    if not flow.keeps_rows:
        return False
    if _FOREACH_BATCH in progress.sink.description:
        return delivered != flow.scans * observed_rows
    # Every other sink runs the plan once, but the plan may read the source more than once.
    return not observed_rows or delivered % observed_rows != 0


def _delivered_rows(progress: StreamingQueryProgress, flow: RowFlow, first_source: int) -> int | None:
    """The rows that the sources of a promise delivered, each time they were read; None if Spark does not say."""
    sources = progress.sources[first_source : first_source + flow.sources]
    rows = sum(source.numInputRows for source in sources)
    return rows if rows and len(sources) == flow.sources else None


def _each_task_counts_once() -> bool:
    context = SparkContext._active_spark_context
    version = "" if context is None else context.version
    return tuple(int(part) for part in version.split(".")[:2] if part.isdigit()) >= _EACH_TASK_COUNTS_ONCE_FROM
