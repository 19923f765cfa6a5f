"""Vectorised kernels: what a task runs on its shard, without Spark."""

from slackwater.kernel.intervals import AGGREGATES, aggregate_intervals
from slackwater.kernel.record_store import RecordStore
from slackwater.kernel.rows import Rows
from slackwater.kernel.window_generator import Results, WindowSpec, generate
from slackwater.kernel.window_operator import WindowOperator, panes_of, takes_panes

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
