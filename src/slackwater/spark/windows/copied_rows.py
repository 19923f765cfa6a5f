"""Rows copied into their windows, for windows that are joined with others of the same end."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from slackwater.plan.combined import Copies
from slackwater.spark.completeness.heartbeat_stream import under_heartbeat
from slackwater.spark.completeness.tracker import CompletenessSpec
from slackwater.spark.worker.columns import EVENT_US, HEARTBEAT_US, PANE_END
from slackwater.units import MS_US, duration_text


def copied_to_windows(observed: DataFrame, copies: Copies, promise: CompletenessSpec) -> DataFrame:
    """A copy of each row for each of its windows, with ``window_start`` and ``window_end``.

    The end of the window is the event time. Spark leaves out the copies for windows that the query has closed, which it
    does when the heartbeats of all its streams have passed their end.
    """
    length, slide = round(copies.length_ms * MS_US), round(copies.slide_ms * MS_US)
    before = f"({EVENT_US} - {length})"
    first_end = f"({before} - pmod({before}, {slide}) + {slide + length})"
    last_end = f"({EVENT_US} - pmod({EVENT_US}, {slide}) + {length})"
    rows = observed.withColumn(PANE_END, F.expr(f"explode(sequence({first_end}, {last_end}, {slide}L))"))
    shown = round(copies.shown_ms * MS_US)
    timed = rows.withColumns(
        {
            "window_start": F.timestamp_micros(F.col(PANE_END) - shown),
            "window_end": F.timestamp_micros(F.col(PANE_END)),
        }
    ).drop(EVENT_US, HEARTBEAT_US, PANE_END)
    state = {"the window": f"{duration_text(copies.length_ms)} every {duration_text(copies.slide_ms)}"}
    return under_heartbeat(observed.sparkSession, timed, "window_end", promise.mailbox, promise.name, state)
