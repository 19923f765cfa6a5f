"""Which rows of a query's sources reach a promise, found in the plan when the promise is made."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame

from slackwater.spark.runtime.connect import is_connect
from slackwater.spark.runtime.connect_plan import keeps_rows, plan_message, streaming_reads

_STREAMS = {"StreamingRelation", "StreamingRelationV2"}
_KEEPING = {*_STREAMS, "Project", "SubqueryAlias", "View", "Union", "CollectMetrics", "Repartition"}
"""Operators that neither remove rows nor add any."""


@dataclass(frozen=True, slots=True)
class RowFlow:
    """How the rows of the sources reach a promise.

    ``sources`` is the number of streams below it. ``keeps_rows``: all their rows reach it, and no others.
    """

    sources: int
    keeps_rows: bool


def row_flow(events: DataFrame) -> RowFlow | None:
    """The flow of rows up to ``events``; None where the plan cannot be read."""
    frame: Any = events
    if is_connect(events.sparkSession):
        plan = plan_message(events)
        return RowFlow(len(streaming_reads(plan)), keeps_rows(plan))
    try:
        names = list(_node_names(frame._jdf.queryExecution().analyzed()))
    except Exception:
        return None
    return RowFlow(sum(name in _STREAMS for name in names), set(names) <= _KEEPING)


def _node_names(plan: Any) -> Iterator[str]:
    yield str(plan.nodeName())
    children = plan.children()
    for number in range(children.size()):
        yield from _node_names(children.apply(number))
