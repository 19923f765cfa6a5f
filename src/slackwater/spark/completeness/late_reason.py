"""``late=``: a column that says why a row is late or invalid, as the ledger counts it."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from slackwater.errors import InvalidOption, InvalidStream
from slackwater.spark.worker.columns import PREFIX
from slackwater.units import DAY_US

LATE, NULL, UNSET_CLOCK, FUTURE = "late", "null", "unset clock", "future"


def late_reason(event_us: Column, arrived_us: Column, unset_clock: Column, heartbeat_us: Column) -> Column:
    """Why the row is not on time, or null if it is.

    The conditions are those of the histogram: the first three together are its invalid cell, and the last one is its
    cells below the heartbeat.
    """
    return (
        F.when(event_us.isNull(), NULL)
        .when(unset_clock, UNSET_CLOCK)
        .when(event_us > arrived_us + DAY_US, FUTURE)
        .when(event_us < heartbeat_us, LATE)
    )


def check_late_column(events: DataFrame, late: str | None) -> None:
    """Refuse a name that cannot be a new column of the events."""
    if late is None:
        return
    if not isinstance(late, str) or not late or late.startswith(PREFIX):
        raise InvalidOption(
            "invalid-late-column", f"late={late!r} cannot be a column's name", "name a column to add, such as 'problem'"
        )
    # Spark tells names apart by their letters' case only if it is told to.
    taken = {column.lower(): column for column in events.columns}.get(late.lower())
    if taken is not None:
        raise InvalidStream(
            "late-taken", f"late={late!r}: there is a column {taken!r} already", "choose another name with late="
        )
