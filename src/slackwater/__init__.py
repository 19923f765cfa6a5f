"""Promises for Spark streams.

::

    import slackwater as sw

    events = sw.with_drop_ratio(events, "ts", 0.01)    # instead of events.withWatermark("ts", "10 minutes")

    sw.stream("Sensors", events, time="ts")
    peaks = sw.sql(spark, "SELECT MAX(value) FROM Sensors [RANGE 5 minutes SLIDE 1 minute DRATIO 1%]")
"""

from slackwater.control.disorder import method_names
from slackwater.errors import SlackwaterError
from slackwater.spark.completeness import with_drop_ratio
from slackwater.spark.query import sql
from slackwater.spark.reconcile import reconcile
from slackwater.spark.report import Report, report
from slackwater.spark.streams import stream
from slackwater.spark.windowed import window

__all__ = [
    "Report",
    "SlackwaterError",
    "__version__",
    "method_names",
    "reconcile",
    "report",
    "sql",
    "stream",
    "window",
    "with_drop_ratio",
]

__version__ = "0.1.0"
