"""Counts the rows of a micro-batch that was committed but not reported, by letting Spark repeat it.

The process died between the commit of a micro-batch and its report, or Spark lost the report. The checkpoint says which
rows the micro-batch had and which heartbeat judged them. A query of its own, which writes nothing, repeats it from
these offsets as Spark does after a crash. It runs beside the user's queries, in a session of its own, from a copy of
what it needs of the checkpoint.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from slackwater.control.ledger import Ledger
from slackwater.errors import InvalidData
from slackwater.spark.completeness.histogram import decode_cells
from slackwater.spark.completeness.observation import marked_events
from slackwater.spark.completeness.tracker import CompletenessSpec
from slackwater.spark.runtime.checkpoint import BatchOffsets, Checkpoint
from slackwater.spark.worker.control_line import ControlLine
from slackwater.spark.worker.heartbeat_offset import HeartbeatOffset
from slackwater.spark.worker.heartbeat_source import BELOW_MS

_METRICS = "slackwater-recount"
_REPEATABLE = {
    *("StreamingRelation", "StreamingRelationV2", "SubqueryAlias", "View", "Project", "Filter", "Union", "Generate"),
    *("CollectMetrics", "Repartition", "RepartitionByExpression"),
}
"""Operators without state. What they make of a row depends on that row only."""


@dataclass(frozen=True, slots=True)
class Recount:
    """Repeats micro-batches of a promise's stream.

    :param events: the stream on which the promise was made.
    :param arrival: its column of arrivals.
    """

    events: DataFrame
    arrival: str | None

    def count(self, spec: CompletenessSpec, checkpoint: str, batch: int, position: int) -> Ledger:
        """The rows of a committed micro-batch, as they were judged; raises if Spark cannot tell them again.

        :param checkpoint: the checkpoint of the query.
        :param position: of the promise's heartbeat source among the sources of the query.
        """
        plan = self._plan()
        sources = range(position + 1, position + 1 + _streams(plan))
        stored = Checkpoint(self.events.sparkSession, checkpoint)
        before, after = (None if batch == 0 else stored.offsets(batch - 1)), stored.offsets(batch)
        if before is not None and all(before.sources[source] == after.sources[source] for source in sources):
            return Ledger()
        judged_by = self._judged_by(spec, before, after, position)
        with tempfile.TemporaryDirectory(prefix="slackwater-recount-", ignore_cleanup_errors=True) as folder:
            stored.copy_batch(batch, sources, Path(folder))
            metrics = self._repeat(spec, judged_by, batch, Path(folder))
        cells = decode_cells(
            ((cell["item"], cell["count"]) for cell in metrics["cells"] or []), bool(spec.sources), metrics.get("rows")
        )
        late = 0 if judged_by is None else cells.below
        return Ledger(on_time=cells.rows - late, late=late, invalid=cells.invalid)

    def _judged_by(
        self, spec: CompletenessSpec, before: BatchOffsets | None, after: BatchOffsets, position: int
    ) -> int | None:
        """The heartbeat of a micro-batch: Spark's watermark if rows raised it, else that of the offset."""
        if spec.follows_rows and len(_heartbeats(after)) == 1:
            return after.watermark_ms + BELOW_MS if after.watermark_ms else None
        return None if before is None else HeartbeatOffset.from_json(json.loads(before.sources[position])).heartbeat_ms

    def _plan(self) -> Any:
        """The analyzed plan; refuses one that may not give the same rows again."""
        frame: Any = self.events
        plan = frame._jdf.queryExecution().analyzed()
        unrepeatable = set(_stateful(plan)) | (set() if plan.deterministic() else {"a random number"})
        if unrepeatable:
            raise InvalidData(
                "batch-not-repeatable",
                f"the promised stream contains {', '.join(sorted(unrepeatable))}, which need not give the same rows",
                "make the promise on the source itself, before anything else",
            )
        return plan

    def _repeat(self, spec: CompletenessSpec, heartbeat_ms: int | None, batch: int, folder: Path) -> dict[str, Any]:
        """The metrics of the repeated micro-batch."""
        events = _in_own_session(self.events)
        numbers = (F.lit(number) for number in ControlLine.for_batch(heartbeat_ms).numbers)
        row = F.array(*numbers, F.unix_micros(F.current_timestamp()))
        marked, metrics = marked_events(events, spec, self.arrival, row)
        writer = marked.observe(_METRICS, *metrics).writeStream.format("noop").trigger(once=True)
        query = writer.option("checkpointLocation", folder.as_uri()).start()
        try:
            query.awaitTermination()
            found = [progress for progress in query.recentProgress if progress["batchId"] == batch]
            observed: dict[str, Any] = found[0].observedMetrics[_METRICS].asDict()
            return observed
        finally:
            query.stop()


def _heartbeats(offsets: BatchOffsets) -> list[HeartbeatOffset]:
    """The offsets of all heartbeat sources."""
    found = []
    for text in offsets.sources:
        with suppress(TypeError, KeyError, json.JSONDecodeError):  # the offset of another source
            found.append(HeartbeatOffset.from_json(json.loads(text)))
    return found


def _in_own_session(events: DataFrame) -> DataFrame:
    """The same stream in a session whose queries are not among the user's."""
    context: Any = events.sparkSession.sparkContext
    frame: Any = events
    session: Any = SparkSession(context, events.sparkSession._jsparkSession.cloneSession())
    session.conf.set("spark.sql.streaming.checkpoint.fileChecksum.enabled", "false")  # the copies have none
    dataset = getattr(context._jvm.org.apache.spark.sql.classic, "Dataset$").__getattr__("MODULE$")
    return DataFrame(dataset.ofRows(session._jsparkSession, frame._jdf.logicalPlan()), session)


def _stateful(plan: Any) -> Iterator[str]:
    for node in _nodes(plan):
        if str(node.nodeName()) not in _REPEATABLE:
            yield str(node.nodeName())


def _streams(plan: Any) -> int:
    return sum(str(node.nodeName()).startswith("StreamingRelation") for node in _nodes(plan))


def _nodes(plan: Any) -> Iterator[Any]:
    yield plan
    children = plan.children()
    for number in range(children.size()):
        yield from _nodes(children.apply(number))
