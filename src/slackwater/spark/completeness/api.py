"""``with_drop_ratio``: a completeness promise instead of a guessed watermark."""

from __future__ import annotations

from typing import Literal

from pyspark.sql import DataFrame

from slackwater.control.choice import Method
from slackwater.errors import InvalidOption
from slackwater.promises import Completeness, Duration
from slackwater.spark.completeness.late_reason import check_late_column
from slackwater.spark.completeness.observation import promised_events
from slackwater.spark.completeness.promise import new_promise
from slackwater.spark.runtime.checks import find_column, find_columns, require_stream
from slackwater.spark.runtime.settings import Setting, setting


def with_drop_ratio(
    events: DataFrame,
    event_time: str,
    drop_ratio: str | float,
    *,
    arrival: str | None = None,
    source: str | list[str] | None = None,
    name: str | None = None,
    method: str | Method | None = None,
    max_wait: Duration | None = None,
    min_wait: Duration | None = None,
    idle_after: Duration | None = None,
    invalid: Literal["exclude", "keep"] | None = None,
    late: str | None = None,
    location: str | None = None,
) -> DataFrame:
    """The same stream under a watermark that loses at most ``drop_ratio`` of its rows; replaces ``withWatermark``.

    Everything that Spark does with a watermark works on the result: windows, joins, deduplication, stateful functions.
    A row is *late* if its event time is below the heartbeat in force in its micro-batch. Late rows are counted exactly
    and left to Spark, which still uses those whose window is open. The drop ratio is late / (on time + late). The
    function also works in a chain: ``events.transform(sw.with_drop_ratio, "ts", 0.01)``.

    :param events: any streaming DataFrame without a watermark.
    :param event_time: the column of its event time, a timestamp.
    :param drop_ratio: ``0.01`` or ``"1%"``; 0 means best effort, without a promise.
    :param arrival: a timestamp column that says when the row reached the system. Default: the time of its micro-batch.
    :param source: the column or columns that identify sources, where some are slower than others.
    :param name: the promise's name in metrics and reports. Give one to keep it across restarts. Default: made from
        ``event_time``.
    :param method: how the wait is found: a name of ``slackwater.method_names()``, or ``Method(name, …)`` with options.
        Default: ``spark.slackwater.method``, else ``budgeted-quantile``.
    :param max_wait: never wait longer, even if the promise breaks. Default: ``spark.slackwater.maxWait``, else no
        limit.
    :param min_wait: never wait less. Default: ``spark.slackwater.minWait``, else 0.
    :param idle_after: a stream that is silent for this long is idle, and the heartbeat follows the clock again.
        Default: ``spark.slackwater.idleAfter``, else one minute.
    :param invalid: ``"exclude"`` removes rows whose event time is null or impossible (more than a day ahead of their
        arrival, or the zero of an unset clock); ``"keep"`` leaves them in. They are counted either way. Default:
        ``"keep"`` with ``late``, else ``"exclude"``.
    :param late: a string column to add, for dead letters: null if the row is on time, else why it is not, as the ledger
        counts it: ``late``, ``null``, ``future`` or ``unset clock`` (the last three are invalid).
    :param location: where to keep what must survive: a path, or a URI that Spark can open, such as ``s3a://…``.
        Default: ``spark.slackwater.location``, else the folder of the checkpoints, else a temporary folder.

    It costs a little planning per micro-batch and an aggregate over every row. It cannot keep the promise for a stream
    whose lateness grows faster than it can learn, or where ``max_wait`` forbids the wait; ``report`` then says so.
    """
    if invalid not in (None, "exclude", "keep"):
        raise InvalidOption("invalid-choice", f"invalid={invalid!r}", "use 'exclude' or 'keep'")
    completeness = completeness_of(events, drop_ratio, min_wait=min_wait, max_wait=max_wait, idle_after=idle_after)
    event_time = find_column(events, "event_time", event_time)
    arrival = None if arrival is None else find_column(events, "arrival", arrival)
    source = find_columns(events, "source", source)
    check_late_column(events, late)
    spec = new_promise(
        events,
        event_time,
        completeness,
        arrival=arrival,
        source=source,
        name=name,
        method=method,
        location=location,
        follows_rows=True,
    )
    keep_invalid = invalid == "keep" or (invalid is None and late is not None)
    return promised_events(events.sparkSession, events, spec, arrival, keep_invalid=keep_invalid, late=late)


def completeness_of(
    events: DataFrame,
    drop_ratio: str | float,
    *,
    min_wait: Duration | None,
    max_wait: Duration | None,
    idle_after: Duration | None = None,
) -> Completeness:
    """The promise from a user's arguments, with the session's settings where an argument is not given."""
    require_stream(events, "events")
    spark = events.sparkSession
    return Completeness.of(
        drop_ratio,
        min_wait=setting(spark, Setting.MIN_WAIT) if min_wait is None else min_wait,
        max_wait=setting(spark, Setting.MAX_WAIT) if max_wait is None else max_wait,
        idle_after=setting(spark, Setting.IDLE_AFTER) if idle_after is None else idle_after,
    )
