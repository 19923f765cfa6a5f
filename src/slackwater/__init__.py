"""Promises for Spark streams.

::

    import slackwater as sw

    events = sw.with_drop_ratio(events, "ts", 0.01)    # instead of events.withWatermark("ts", "10 minutes")

    sw.stream("Sensors", readings, event_time="ts")
    peaks = sw.sql(spark, "SELECT MAX(value) FROM Sensors [RANGE 5 minutes SLIDE 1 minute DRATIO 1%]")
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from slackwater.control.choice import Law, Method
    from slackwater.control.deferral import Deferral
    from slackwater.control.disorder import method_names
    from slackwater.control.shedding import law_names
    from slackwater.errors import (
        InvalidData,
        InvalidOption,
        InvalidStream,
        MissingRequirement,
        PromiseConflict,
        QueryFailed,
        QueryTextError,
        SlackwaterError,
        UnknownName,
    )
    from slackwater.spark.completeness.api import with_drop_ratio
    from slackwater.spark.report import Report, report
    from slackwater.spark.runtime.catalog import stream
    from slackwater.spark.runtime.watch import watch
    from slackwater.spark.standing.api import standing
    from slackwater.spark.timeliness.api import with_max_delay
    from slackwater.spark.timeliness.estimates import (
        avg_error,
        count_error,
        estimated_avg,
        estimated_count,
        estimated_sum,
        shed_share,
        sum_error,
    )
    from slackwater.spark.timeliness.filter_costs import filter_costs
    from slackwater.spark.timeliness.retarget import retarget
    from slackwater.spark.windows.builder import window
    from slackwater.spark.windows.late_rows import late_rows, on_time
    from slackwater.spark.windows.ordered_rows import ordered
    from slackwater.spark.windows.reconcile import reconcile
    from slackwater.spark.windows.sql import sql
    from slackwater.watching.metrics import serve_metrics

__all__ = [
    "Deferral",
    "InvalidData",
    "InvalidOption",
    "InvalidStream",
    "Law",
    "Method",
    "MissingRequirement",
    "PromiseConflict",
    "QueryFailed",
    "QueryTextError",
    "Report",
    "SlackwaterError",
    "UnknownName",
    "__version__",
    "avg_error",
    "count_error",
    "estimated_avg",
    "estimated_count",
    "estimated_sum",
    "filter_costs",
    "late_rows",
    "law_names",
    "method_names",
    "on_time",
    "ordered",
    "reconcile",
    "report",
    "retarget",
    "serve_metrics",
    "shed_share",
    "sql",
    "standing",
    "stream",
    "sum_error",
    "watch",
    "window",
    "with_drop_ratio",
    "with_max_delay",
]

__version__ = "0.1.0"

# Spark starts Python workers that import single modules of this package: they must not pay for all of it.
_HOMES = {
    "Report": "slackwater.spark.report",
    "InvalidData": "slackwater.errors",
    "InvalidOption": "slackwater.errors",
    "InvalidStream": "slackwater.errors",
    "MissingRequirement": "slackwater.errors",
    "PromiseConflict": "slackwater.errors",
    "QueryFailed": "slackwater.errors",
    "QueryTextError": "slackwater.errors",
    "SlackwaterError": "slackwater.errors",
    "UnknownName": "slackwater.errors",
    "Deferral": "slackwater.control.deferral",
    "Law": "slackwater.control.choice",
    "Method": "slackwater.control.choice",
    "avg_error": "slackwater.spark.timeliness.estimates",
    "count_error": "slackwater.spark.timeliness.estimates",
    "estimated_avg": "slackwater.spark.timeliness.estimates",
    "estimated_count": "slackwater.spark.timeliness.estimates",
    "estimated_sum": "slackwater.spark.timeliness.estimates",
    "filter_costs": "slackwater.spark.timeliness.filter_costs",
    "late_rows": "slackwater.spark.windows.late_rows",
    "law_names": "slackwater.control.shedding",
    "method_names": "slackwater.control.disorder",
    "on_time": "slackwater.spark.windows.late_rows",
    "ordered": "slackwater.spark.windows.ordered_rows",
    "reconcile": "slackwater.spark.windows.reconcile",
    "report": "slackwater.spark.report",
    "retarget": "slackwater.spark.timeliness.retarget",
    "serve_metrics": "slackwater.watching.metrics",
    "shed_share": "slackwater.spark.timeliness.estimates",
    "sum_error": "slackwater.spark.timeliness.estimates",
    "sql": "slackwater.spark.windows.sql",
    "standing": "slackwater.spark.standing.api",
    "stream": "slackwater.spark.runtime.catalog",
    "watch": "slackwater.spark.runtime.watch",
    "window": "slackwater.spark.windows.builder",
    "with_drop_ratio": "slackwater.spark.completeness.api",
    "with_max_delay": "slackwater.spark.timeliness.api",
}


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module 'slackwater' has no attribute {name!r}")
    return getattr(importlib.import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
