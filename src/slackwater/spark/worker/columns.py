"""Names of the columns that Slackwater adds to rows inside a plan.

They never reach a result. All begin with ``__sw_``; a column of the user must not.
"""

from __future__ import annotations

PREFIX = "__sw_"

EVENT_US = "__sw_event_us"
"""The event time in microseconds."""
ARRIVAL_US = "__sw_arrival_us"
"""The arrival in microseconds, or the time of the micro-batch if the row has no arrival."""
CLOCK_US = "__sw_clock_us"
"""The arrival if it may move the arrival clock, else null."""
HEARTBEAT_US = "__sw_heartbeat_us"
"""The heartbeat that judges the row."""
CELL = "__sw_cell"
"""The histogram cell of the row."""
PROBLEM_ROW = "__sw_problem_row"
"""Why the row is late or invalid, and the row as JSON; null for rows on time."""
CONTROL = "__sw_control"
"""The control row."""
NUMBER_TIME = "__sw_number_time"
"""A numeric windowing attribute as an event time."""
SHED = "__sw_shed"
"""The time of the micro-batch, its shed ratio and its threshold of utility."""
UTILITY = "__sw_utility"
"""The cell of the row's utility."""
COIN = "__sw_coin"
"""A random number per row; rows below their chance to be shed are shed."""
PANE_END = "__sw_end"
"""The end of the row's pane or window, in microseconds."""
CLOSE = "__sw_close"
"""The event time of the row's pane or window for Spark: it is emitted when the watermark reaches this."""
SHARD = "__sw_shard"
"""The shard that a row goes to."""
SHARD_COUNTS = "__sw_shard_counts"
"""What a shard of standing queries did in the micro-batch."""
