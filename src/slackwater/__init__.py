"""Promises for Spark streams.

::

    import slackwater as sw

    events = sw.with_drop_ratio(events, "ts", 0.01)    # instead of events.withWatermark("ts", "10 minutes")

    sw.stream("Sensors", readings, time="ts")
    peaks = sw.sql(spark, "SELECT MAX(value) FROM Sensors [RANGE 5 minutes SLIDE 1 minute DRATIO 1%]")
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from slackwater.control.disorder import method_names
    from slackwater.control.shedding import law_names
    from slackwater.errors import SlackwaterError
    from slackwater.spark.completeness import with_drop_ratio
    from slackwater.spark.delivery import ordered
    from slackwater.spark.estimates import (
        avg_error,
        count_error,
        estimated_avg,
        estimated_count,
        estimated_sum,
        shed_share,
        sum_error,
    )
    from slackwater.spark.late_rows import late_rows, on_time
    from slackwater.spark.query import sql
    from slackwater.spark.reconcile import reconcile
    from slackwater.spark.report import Report, report
    from slackwater.spark.streams import stream
    from slackwater.spark.timeliness import with_max_delay
    from slackwater.spark.windowed import window

__all__ = [
    "Report",
    "SlackwaterError",
    "__version__",
    "avg_error",
    "count_error",
    "estimated_avg",
    "estimated_count",
    "estimated_sum",
    "late_rows",
    "law_names",
    "method_names",
    "on_time",
    "ordered",
    "reconcile",
    "report",
    "shed_share",
    "sql",
    "stream",
    "sum_error",
    "window",
    "with_drop_ratio",
    "with_max_delay",
]

__version__ = "0.1.0"

# Spark starts Python workers that import single modules of this package: they must not pay for all of it.
_HOMES = {
    "Report": "slackwater.spark.report",
    "SlackwaterError": "slackwater.errors",
    "avg_error": "slackwater.spark.estimates",
    "count_error": "slackwater.spark.estimates",
    "estimated_avg": "slackwater.spark.estimates",
    "estimated_count": "slackwater.spark.estimates",
    "estimated_sum": "slackwater.spark.estimates",
    "late_rows": "slackwater.spark.late_rows",
    "law_names": "slackwater.control.shedding",
    "method_names": "slackwater.control.disorder",
    "on_time": "slackwater.spark.late_rows",
    "ordered": "slackwater.spark.delivery",
    "reconcile": "slackwater.spark.reconcile",
    "report": "slackwater.spark.report",
    "shed_share": "slackwater.spark.estimates",
    "sum_error": "slackwater.spark.estimates",
    "sql": "slackwater.spark.query",
    "stream": "slackwater.spark.streams",
    "window": "slackwater.spark.windowed",
    "with_drop_ratio": "slackwater.spark.completeness",
    "with_max_delay": "slackwater.spark.timeliness",
}


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module 'slackwater' has no attribute {name!r}")
    return getattr(importlib.import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
