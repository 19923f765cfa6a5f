"""Windows over rows in any order: the operator that a task runs on its shard."""

from slackwater.kernel.windows.generator import Results, WindowSpec, generate
from slackwater.kernel.windows.intervals import AGGREGATES, aggregate_intervals
from slackwater.kernel.windows.operator import WindowOperator, panes_of, takes_panes
from slackwater.kernel.windows.rows import Rows
from slackwater.kernel.windows.slack_buffer import SlackBuffer

__all__ = [
    "AGGREGATES",
    "Results",
    "Rows",
    "SlackBuffer",
    "WindowOperator",
    "WindowSpec",
    "aggregate_intervals",
    "generate",
    "panes_of",
    "takes_panes",
]
