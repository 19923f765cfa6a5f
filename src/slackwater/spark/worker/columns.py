"""Names of the columns that Slackwater adds to rows inside a plan; all begin with ``__sw_``.

They never reach a result. A user's own column must not begin with the prefix.
"""

from __future__ import annotations

PREFIX = "__sw_"

EVENT_US = "__sw_event_us"
"""The event time in microseconds."""
ARRIVAL_US = "__sw_arrival_us"
"""The arrival in microseconds; the time of the micro-batch where the row has none."""
CLOCK_US = "__sw_clock_us"
"""The arrival where it may move the arrival clock, else null."""
HEARTBEAT_US = "__sw_heartbeat_us"
"""The heartbeat that judges the row."""
CELL = "__sw_cell"
"""The histogram cell of the row."""
CONTROL = "__sw_control"
"""The control row."""
NUMBER_TIME = "__sw_number_time"
"""A numeric windowing attribute as an event time."""
SHED = "__sw_shed"
"""The shed ratio and the time of the micro-batch."""
COIN = "__sw_coin"
"""A random number per row; rows below the shed ratio are shed."""
PANE_END = "__sw_end"
"""Where the row's pane (or window) ends, in microseconds."""
CLOSE = "__sw_close"
"""The event time under which Spark keeps the row's group."""
SHARD = "__sw_shard"
"""The shard that a row goes to."""
SHARD_COUNTS = "__sw_told"
"""What a shard of standing queries did in a micro-batch."""
