"""A new completeness promise: checked, named, and in the charge of the session's handler."""

from __future__ import annotations

from dataclasses import replace

from pyspark.sql import DataFrame, SparkSession

from slackwater.control.choice import Method
from slackwater.control.disorder import DEFAULT_METHOD, refuse_unused
from slackwater.promises import Completeness
from slackwater.spark.completeness.handler import CompletenessHandler
from slackwater.spark.completeness.open_windows import WindowGrid
from slackwater.spark.completeness.recount import Recount
from slackwater.spark.completeness.tracker import CompletenessSpec
from slackwater.spark.runtime.checks import (
    WATERMARK_POLICY,
    refuse_max_policy,
    refuse_watermark,
    require_columns,
    require_stream,
    require_timestamps,
)
from slackwater.spark.runtime.driver_lines import asks_driver
from slackwater.spark.runtime.listener import listener_of
from slackwater.spark.runtime.location import mailbox_for
from slackwater.spark.runtime.row_flow import row_flow
from slackwater.spark.runtime.settings import Setting, setting


def new_promise(
    events: DataFrame,
    event_time: str,
    completeness: Completeness,
    *,
    arrival: str | None,
    source: str | list[str] | None,
    name: str | None,
    method: str | Method | None,
    location: str | None,
    numeric_order: bool = False,
    counts_all: bool = True,
    slack_by_row: bool = False,
    grid: WindowGrid | None = None,
    follows_rows: bool = False,
) -> CompletenessSpec:
    """A promise on a stream that can carry it; refuses one that cannot, and an unknown method or option.

    ``counts_all``: the plan above leaves out no rows before they are counted.
    ``grid`` is where the windows of the query lie; None if that is not known.
    ``follows_rows``: Spark's watermark may be raised by the rows of the plan above, where the driver can be asked.
    """
    sources = [source] if isinstance(source, str) else list(source or [])
    require_stream(events, "events")
    require_columns(events, event_time=event_time, arrival=arrival)
    for column in sources:
        require_columns(events, source=column)
    require_timestamps(events, event_time=event_time, arrival=arrival)
    refuse_watermark(events)
    spark = events.sparkSession
    refuse_max_policy(spark.conf.get(WATERMARK_POLICY, None))
    listener = listener_of(spark)
    chosen_name = listener.handler(CompletenessHandler).fresh_name(event_time) if name is None else name
    spec = CompletenessSpec(
        chosen_name,
        event_time,
        completeness,
        default_method(spark) if method is None else Method.of(method),
        sources,
        mailbox_for(spark, chosen_name, location),
        numeric_order,
        row_flow(events) if counts_all else None,
        slack_by_row,
        # A slack buffer judged the rows of a micro-batch one after the other, in a state that is gone.
        None if slack_by_row else Recount(events, arrival),
        grid or WindowGrid(),
        follows_rows and not numeric_order and asks_driver(spark),
    )
    spec.new_controller()  # refuses bad options here rather than in the listener
    refuse_unused(spec.method.name, spec.method.options)
    listener.add(CompletenessHandler, spec)
    return spec


def default_method(spark: SparkSession) -> Method:
    """The method of a promise that names none."""
    return Method(setting(spark, Setting.METHOD) or DEFAULT_METHOD)


def with_session_waits(spark: SparkSession, completeness: Completeness) -> Completeness:
    """The promise of a query text, with the session's waits where the text sets none."""
    session = Completeness.of(
        completeness.drop_ratio,
        min_wait=setting(spark, Setting.MIN_WAIT),
        max_wait=setting(spark, Setting.MAX_WAIT),
        idle_after=setting(spark, Setting.IDLE_AFTER),
    )
    unset = Completeness(completeness.drop_ratio)
    waits = ("min_wait_ms", "max_wait_ms", "idle_after_ms")
    return replace(
        completeness,
        **{wait: getattr(session, wait) for wait in waits if getattr(completeness, wait) == getattr(unset, wait)},
    )
