"""Vectorised kernels: what a task runs on its shard, without Spark."""

from slackwater.kernel.windows.generator import Results, WindowSpec, generate
from slackwater.kernel.windows.intervals import AGGREGATES, aggregate_intervals
from slackwater.kernel.windows.operator import WindowOperator, panes_of, takes_panes
from slackwater.kernel.windows.record_store import RecordStore
from slackwater.kernel.windows.rows import Rows

__all__ = [
    "AGGREGATES",
    "RecordStore",
    "Results",
    "Rows",
    "WindowOperator",
    "WindowSpec",
    "aggregate_intervals",
    "generate",
    "panes_of",
    "takes_panes",
]
