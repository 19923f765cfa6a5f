"""``with_drop_ratio``: a completeness promise in the place of a guessed watermark."""

from __future__ import annotations

from typing import Literal

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import TimestampType

from slackwater.control.choice import Method
from slackwater.control.disorder import DEFAULT_METHOD
from slackwater.errors import InvalidOption, InvalidStream, PromiseConflict
from slackwater.names import quoted
from slackwater.promises import Completeness, Duration
from slackwater.spark.completeness.control_row import control_row
from slackwater.spark.completeness.heartbeat_stream import with_heartbeats
from slackwater.spark.completeness.histogram import cell_column, count_cells, is_valid, named_sources
from slackwater.spark.completeness.tracker import CompletenessSpec
from slackwater.spark.runtime.listener import METRICS_PREFIX, PromiseListener, listener_of
from slackwater.spark.runtime.location import mailbox_for
from slackwater.units import DAY_US

_WATERMARK_METADATA = "spark.watermarkDelayMs"
_CELL = "__sw_cell"


def with_drop_ratio(
    events: DataFrame,
    event_time: str,
    drop_ratio: str | float,
    *,
    arrival: str | None = None,
    source: str | list[str] | None = None,
    name: str | None = None,
    method: str | Method = DEFAULT_METHOD,
    max_wait: Duration | None = None,
    min_wait: Duration | None = None,
    idle_after: Duration | None = None,
    invalid: Literal["exclude", "keep"] = "exclude",
    location: str | None = None,
) -> DataFrame:
    """The same stream under a watermark that loses at most ``drop_ratio`` of its rows: instead of ``withWatermark``.

    Everything that Spark does with a watermark works on the result: windows, joins, deduplication, stateful functions.
    A row is *late* if its ``event_time`` is below the heartbeat in force in its micro-batch; late rows are counted exactly
    and left to Spark, which still takes those whose window is open. The realised ratio is late / (on time + late).

    :param events: any streaming DataFrame without a watermark of its own.
    :param event_time: the column of its event time, a timestamp.
    :param drop_ratio: ``0.01`` or ``"1%"``; 0 means best effort, without a promise.
    :param arrival: a timestamp column that says when the row reached the system; else the time of its micro-batch.
    :param source: column or columns that tell sources apart, where some are slower than others.
    :param name: of the promise, in metrics and reports, stable over restarts; else made from ``event_time``.
    :param method: how the wait is found: a name of ``slackwater.method_names()``, or ``Method(name, …)`` with options.
    :param max_wait: never wait longer, even if the promise breaks.
    :param min_wait: never wait less.
    :param idle_after: a stream that is silent for so long is idle: the heartbeat follows the clock again.
    :param invalid: rows whose event time is null or impossible (more than a day ahead of their arrival, or the zero of
        an unset clock) are counted, and left out of the result unless this is ``"keep"``.
    :param location: a folder seen by the driver and all executors; else ``spark.slackwater.location``, else
        where checkpoints go, else (``local[*]`` only) a temporary folder.

    It costs one small job a micro-batch (some 70 ms with its planning) and an aggregate for every row. It
    cannot keep the promise for a stream that gets later faster than it can learn, or where ``max_wait`` forbids it:
    ``report`` then says so.
    """
    completeness = Completeness.of(drop_ratio, min_wait=min_wait, max_wait=max_wait, idle_after=idle_after)
    if invalid not in ("exclude", "keep"):
        raise InvalidOption("invalid-choice", f"invalid={invalid!r}", "use 'exclude' or 'keep'")
    spec = new_promise(
        events,
        event_time,
        completeness,
        arrival=arrival,
        source=source,
        name=name,
        method=method,
        location=location,
    )
    return promised_events(events.sparkSession, events, spec, arrival, invalid)


def new_promise(
    events: DataFrame,
    event_time: str,
    completeness: Completeness,
    *,
    arrival: str | None,
    source: str | list[str] | None,
    name: str | None,
    method: str | Method,
    location: str | None,
    numeric_order: bool = False,
) -> CompletenessSpec:
    """A promise on a stream that can carry it, in the listener's charge."""
    sources = [source] if isinstance(source, str) else list(source or [])
    _check_stream(events, event_time, arrival, sources)
    spark = events.sparkSession
    listener = listener_of(spark)
    chosen_name = _fresh_name(listener, event_time) if name is None else name
    mailbox = mailbox_for(spark, chosen_name, location)
    spec = CompletenessSpec(chosen_name, event_time, completeness, Method.of(method), sources, mailbox, numeric_order)
    spec.new_controller()  # refuses an unknown method now, not in a listener
    listener.add(spec)
    return spec


def promised_events(
    spark: SparkSession, events: DataFrame, spec: CompletenessSpec, arrival: str | None, invalid: str = "exclude"
) -> DataFrame:
    """The events under the heartbeat, their cells around it reported with every micro-batch.

    Heartbeats join the events before they are observed, so that whatever the user does next follows on the one
    ``observe`` at once: each break in the generated code has every row written out once more.
    """
    marked, metrics = _marked(spark, events, spec, arrival, keep_heartbeat=False)
    return _observed(with_heartbeats(spark, marked, spec.event_time, spec.mailbox), spec, metrics, invalid)


def observed_events(spark: SparkSession, events: DataFrame, spec: CompletenessSpec, arrival: str | None) -> DataFrame:
    """The valid events without heartbeats, their cells reported with every micro-batch.

    The rows carry the heartbeat that judges them, and their event time, in microseconds.
    """
    marked, metrics = _marked(spark, events, spec, arrival, keep_heartbeat=True)
    return _observed(marked, spec, metrics, "exclude")


def _marked(
    spark: SparkSession, events: DataFrame, spec: CompletenessSpec, arrival: str | None, keep_heartbeat: bool
) -> tuple[DataFrame, list[Column]]:
    """The events with their cells, and what is to be observed of them.

    ``observe`` has every row written out before it: no column goes through it that is not needed.
    """
    marked = events.select(
        "*",
        F.unix_micros(F.col(quoted(spec.event_time))).alias("__sw_event_us"),
        control_row(spark, spec.mailbox, spec.name).alias("__sw_control"),
    )
    event, row = F.col("__sw_event_us"), F.col("__sw_control")
    now_us = row[2]
    metrics: list[Column] = []
    unset_clock = (event >= 0) & (event < DAY_US)
    arrived, impossible = now_us, unset_clock
    if arrival is not None:
        marked = marked.withColumn("__sw_arrival_us", F.coalesce(F.unix_micros(F.col(quoted(arrival))), now_us))
        arrived = F.col("__sw_arrival_us")
        impossible = unset_clock & (arrived >= 365 * DAY_US)
        # an arrival from the future would carry the whole clock along, and where numbers are the clock, so would now
        told = event.isNotNull() if spec.numeric_order else F.lit(True)
        marked = marked.withColumn("__sw_clock_us", F.when(told & (arrived <= now_us + DAY_US), arrived))
        metrics.append(F.max("__sw_clock_us").alias("clock_us"))
    # of a first micro-batch nothing is known: its rows are placed by their own arrival
    margin = event - F.coalesce(row[1], arrived)
    believable = event <= arrived + DAY_US
    placed = cell_column(event, margin, believable & ~impossible, (event >= row[3]) & believable, spec.sources)
    marked = marked.withColumns({_CELL: placed, "__sw_heartbeat_us": row[0]})
    metrics += count_cells(F.col(_CELL), spec.sources, spark.version)
    if spec.sources:
        metrics += named_sources(spec.event_time, spec.sources)
    unused = ["__sw_control", "__sw_arrival_us"]
    unused += [] if keep_heartbeat else ["__sw_event_us", "__sw_heartbeat_us"]
    return marked.drop(*unused), metrics


def _observed(marked: DataFrame, spec: CompletenessSpec, metrics: list[Column], invalid: str) -> DataFrame:
    observed = marked.observe(METRICS_PREFIX + spec.name, *metrics)
    if invalid == "exclude":
        observed = observed.where(is_valid(F.col(_CELL), spec.sources))
    return observed.drop("__sw_clock_us", _CELL)


def _check_stream(events: DataFrame, event_time: str, arrival: str | None, sources: list[str]) -> None:
    if not isinstance(events, DataFrame):
        raise InvalidStream("not-a-dataframe", f"{type(events).__name__} is no DataFrame", "pass a streaming DataFrame")
    if not events.isStreaming:
        raise InvalidStream(
            "not-a-stream", "the DataFrame is a batch, which has no watermark", "read it with spark.readStream"
        )
    for option, wanted in (("event_time", event_time), ("arrival", arrival), *(("source", s) for s in sources)):
        if wanted is not None and wanted not in events.columns:
            raise InvalidStream(
                "no-such-column", f"{option}={wanted!r} is not a column", f"use one of: {', '.join(events.columns)}"
            )
    for option, wanted in (("event_time", event_time), ("arrival", arrival)):
        if wanted is not None and not isinstance(events.schema[wanted].dataType, TimestampType):
            kind = events.schema[wanted].dataType.simpleString()
            raise InvalidStream(
                "not-a-timestamp",
                f"{option}={wanted!r} is a {kind}",
                f"cast it first, as in CAST({wanted} AS TIMESTAMP)",
            )
    if any(_WATERMARK_METADATA in field.metadata for field in events.schema.fields):
        raise PromiseConflict(
            "second-watermark",
            "the DataFrame has a watermark already, and Spark would take the smaller of the two",
            "leave out withWatermark (or the first with_drop_ratio)",
        )


def _fresh_name(listener: PromiseListener, column: str) -> str:
    number = 1
    while listener.has(f"{column}-{number}"):
        number += 1
    return f"{column}-{number}"
