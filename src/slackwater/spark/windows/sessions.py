"""Session windows: Spark merges rows into sessions under the heartbeat."""

from __future__ import annotations

from pyspark.sql import DataFrame

from slackwater.names import quoted
from slackwater.plan import Plan
from slackwater.plan.aggregates import column_of
from slackwater.spark.runtime.views import sql_over
from slackwater.spark.windows.watermarked import with_event_time


def session_windows(plan: Plan, promised: DataFrame) -> DataFrame:
    """The results of a plan with SESSION. ``promised`` are the events under the heartbeat."""
    shape = plan.shape
    assert shape is not None and plan.window.session_ms is not None and plan.attribute is not None
    gap = f"'{round(plan.window.session_ms * 1000)} microseconds'"
    session = f"session_window({quoted(shape.alias)}.{quoted(plan.attribute)}, {gap})"
    keys = [f"{key} AS {name}" for key, name in zip(shape.keys, shape.key_names, strict=True)]
    values = [f"{aggregate.plain} AS {column_of(i)}" for i, aggregate in enumerate(plan.aggregates)]
    edges = ["session_window.start AS window_start", "session_window.end AS window_end"]
    selected = ", ".join([*edges, *keys, *values])
    groups = ", ".join([session, *shape.keys])
    sessions = sql_over(promised, lambda view: f"{shape.selecting(selected, view)} GROUP BY {groups}")
    if shape.having is not None:
        sessions = sessions.where(shape.having)
    outputs = [f"{sql} AS {quoted(name)}" for name, sql in shape.outputs]
    return with_event_time(sessions).selectExpr("window_start", "window_end", *outputs)
