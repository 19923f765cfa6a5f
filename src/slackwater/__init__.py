"""Promises for Spark streams.

::

    import slackwater as sw

    events = sw.with_drop_ratio(events, "ts", 0.01)    # instead of events.withWatermark("ts", "10 minutes")
"""

from slackwater.control.disorder import method_names
from slackwater.errors import SlackwaterError
from slackwater.spark.completeness import with_drop_ratio
from slackwater.spark.report import Report, report

__all__ = ["Report", "SlackwaterError", "__version__", "method_names", "report", "with_drop_ratio"]

__version__ = "0.1.0"
