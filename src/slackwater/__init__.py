"""Promises for Spark streams.

::

    import slackwater as sw

    events = sw.with_drop_ratio(events, "ts", 0.01)    # instead of events.withWatermark("ts", "10 minutes")
"""

from slackwater.control.disorder import method_names
from slackwater.control.shedding import law_names
from slackwater.errors import SlackwaterError
from slackwater.spark.completeness import with_drop_ratio
from slackwater.spark.estimates import (
    avg_error,
    count_error,
    estimated_avg,
    estimated_count,
    estimated_sum,
    shed_share,
    sum_error,
)
from slackwater.spark.report import Report, report
from slackwater.spark.timeliness import with_max_delay

__all__ = [
    "Report",
    "SlackwaterError",
    "__version__",
    "avg_error",
    "count_error",
    "estimated_avg",
    "estimated_count",
    "estimated_sum",
    "law_names",
    "method_names",
    "report",
    "shed_share",
    "sum_error",
    "with_drop_ratio",
    "with_max_delay",
]

__version__ = "0.1.0"
