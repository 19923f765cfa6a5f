"""Measures the wait that each drop ratio needs on recorded rows and recommends a watermark, by a Spark batch job."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from slackwater.errors import InvalidData
from slackwater.files import common_format, is_remote
from slackwater.names import quoted
from slackwater.spark.command.columns import columns_named
from slackwater.spark.runtime.error_summary import SPARK_ERRORS, error_summary
from slackwater.units import DAY_MS, HOUR_MS, MINUTE_MS, SECOND_MS, duration_text, percent

RATIOS = (0.1, 0.05, 0.02, 0.01, 0.005, 0.002, 0.001, 0.0005, 0.0002, 0.0001)
PERIODS = 24
_ACCURACY = 200_000
_GROUP_ACCURACY = 20_000
_MAX_SOURCES = 1_000
_MIN_GROUP_ROWS = 100
AHEAD_MS = MINUTE_MS
OLD_MS = 30 * DAY_MS
_UNSET_BEFORE = "1971-01-01"
CHANGED = 2.0
"""Waits that differ by more than this factor count as different."""


@dataclass(frozen=True, slots=True)
class Period:
    """A period of arrival time: its rows, and the wait that the promise needs in it."""

    start_ms: float
    rows: int
    wait_ms: float


@dataclass(frozen=True, slots=True)
class Source:
    """One source: its rows, median lateness, the wait that the promise needs, and rows with event time > arrival."""

    source: str
    rows: int
    median_ms: float
    wait_ms: float
    ahead_rows: int


@dataclass(frozen=True, slots=True)
class Advice:
    """The result of ``advise``.

    ``curve`` holds (drop ratio, wait in ms) pairs; ``wait_ms`` is the wait for ``drop_ratio``. ``changed`` is the
    largest wait of a period over the smallest. ``suspicions`` are texts about clocks that look wrong.
    """

    rows: int
    invalid_rows: int
    drop_ratio: float
    wait_ms: float
    curve: tuple[tuple[float, float], ...]
    periods: tuple[Period, ...]
    sources: tuple[Source, ...]
    suspicions: tuple[str, ...]
    changed: float
    recommendation: str

    def as_json(self) -> dict[str, Any]:
        """The advice as JSON values."""
        plain = asdict(self)
        plain["curve"] = [{"drop_ratio": ratio, "wait_ms": wait} for ratio, wait in self.curve]
        return plain


def read_data(spark: SparkSession, path: str) -> DataFrame:
    """Read Parquet, CSV or JSON: a file, a folder, or the files that a pattern matches."""
    format_ = "parquet" if is_remote(path) else common_format(path, "")
    try:
        if format_ == "csv":
            separator = "\t" if ".tsv" in (suffix.lower() for suffix in Path(path).suffixes) else ","
            return spark.read.csv(path, header=True, sep=separator)
        if format_ == "json":
            return spark.read.json(path)
        return spark.read.parquet(path)
    except SPARK_ERRORS as error:
        raise InvalidData(
            "unreadable-file",
            f"{path} cannot be read ({error_summary(error)})",
            "give Parquet (a file or a directory), CSV with a header, or JSON lines",
        ) from error


def advise(
    data: DataFrame,
    event_time: str,
    arrival: str,
    drop_ratio: float = 0.01,
    sources: Sequence[str] = (),
    report: Callable[[str], None] = lambda stage: None,
) -> Advice:
    """Measure how late rows are and recommend a watermark delay that would have kept ``drop_ratio``.

    ``sources`` are columns that identify the source of a row. ``report`` is called with the name of each stage.

    Makes two passes over two columns, and a third for ``sources``; only aggregates are collected. Quantiles are exact
    to one rank in 200 000. Spark's watermark trails the newest event time, not the arrival clock, so the recommended
    delay suffices only if no row has an event time after its arrival. The advice describes the recorded rows; it holds
    for the future only if the stream does not change.
    """
    rows = _lateness_rows(data, event_time, arrival, sources)
    report("wait by drop ratio")
    ratios = sorted({*RATIOS, drop_ratio}, reverse=True)
    total = _totals(rows, ratios)
    if total["rows"] == total["invalid"]:
        raise InvalidData(
            "no-valid-rows", f"no row has a valid {event_time!r} and {arrival!r}", "check the columns and their types"
        )
    curve = tuple((ratio, max(0.0, float(wait))) for ratio, wait in zip(ratios, total["waits"], strict=True))
    wait_ms = dict(curve)[drop_ratio]
    report("wait over time")
    periods = _periods(rows, float(total["first"]), float(total["last"]), drop_ratio)
    by_source: tuple[Source, ...] = ()
    if sources:
        report("wait by source")
        by_source = _by_source(rows, drop_ratio)
    suspicions = _suspicions(total, by_source)
    changed = _change_factor(periods)
    recommendation = _recommend(event_time, drop_ratio, wait_ms, periods, changed, int(total["ahead"]), by_source)
    return Advice(
        int(total["rows"]),
        int(total["invalid"]),
        drop_ratio,
        wait_ms,
        curve,
        periods,
        by_source,
        suspicions,
        changed,
        recommendation,
    )


def _totals(rows: DataFrame, ratios: Sequence[float]) -> dict[str, Any]:
    """Counts, extremes and the wait for each of ``ratios``, over all rows."""
    valid = F.col("lateness_ms").isNotNull()
    total = rows.agg(
        F.count(F.lit(1)).alias("rows"),
        F.count_if(~valid).alias("invalid"),
        F.count_if(F.col("lateness_ms") < -AHEAD_MS).alias("ahead"),
        F.min("lateness_ms").alias("most_ahead"),
        F.count_if(F.col("lateness_ms") > OLD_MS).alias("old"),
        F.max("lateness_ms").alias("most_late"),
        F.count_if(valid & (F.col("event") < F.lit(_UNSET_BEFORE).cast("timestamp"))).alias("unset"),
        F.min("arrived_ms").alias("first"),
        F.max("arrived_ms").alias("last"),
        _quantiles("lateness_ms", ratios, _ACCURACY).alias("waits"),
    ).first()
    assert total is not None
    return dict(total.asDict())


def _lateness_rows(data: DataFrame, event_time: str, arrival: str, sources: Sequence[str]) -> DataFrame:
    """The columns ``event``, ``arrived_ms``, ``lateness_ms`` (null if a time is invalid) and ``source``."""
    event_time, arrival, *sources = columns_named(data.columns, [event_time, arrival, *sources])
    event, arrived = _as_timestamp(data, event_time), _as_timestamp(data, arrival)
    arrived_ms = F.unix_micros(arrived) / 1e3
    source = F.concat_ws(", ", *[F.coalesce(F.col(quoted(c)).cast("string"), F.lit("null")) for c in sources])
    return data.select(
        event.alias("event"),
        arrived_ms.alias("arrived_ms"),
        (arrived_ms - F.unix_micros(event) / 1e3).alias("lateness_ms"),
        (source if sources else F.lit("")).alias("source"),
    )


def _as_timestamp(data: DataFrame, column: str) -> Column:
    kind, time = data.schema[column].dataType, F.col(quoted(column))
    if isinstance(kind, T.TimestampType):
        return time
    if isinstance(kind, T.TimestampNTZType | T.DateType):
        return time.cast("timestamp")
    if isinstance(kind, T.StringType):
        return F.try_to_timestamp(time)
    raise InvalidData(
        "wrong-type",
        f"column {column!r} has type {kind.simpleString()}, not a timestamp",
        "advise compares two clocks; for a number use slackwater lab disorder",
    )


def _quantiles(column: str, ratios: Sequence[float], accuracy: int) -> Column:
    return F.percentile_approx(column, [1.0 - ratio for ratio in ratios], accuracy)


def _periods(rows: DataFrame, first: float, last: float, drop_ratio: float) -> tuple[Period, ...]:
    width = max((last - first) / PERIODS, 1.0)
    period = F.least(F.floor((F.col("arrived_ms") - F.lit(first)) / width), F.lit(PERIODS - 1))
    found = (
        rows.where("lateness_ms IS NOT NULL")
        .groupBy(period.alias("period"))
        .agg(F.count(F.lit(1)).alias("rows"), _quantiles("lateness_ms", [drop_ratio], _GROUP_ACCURACY)[0].alias("wait"))
        .orderBy("period")
        .collect()
    )
    return tuple(Period(first + row["period"] * width, int(row["rows"]), max(0.0, float(row["wait"]))) for row in found)


def _by_source(rows: DataFrame, drop_ratio: float) -> tuple[Source, ...]:
    waits = _quantiles("lateness_ms", [0.5, drop_ratio], _GROUP_ACCURACY)
    found = (
        rows.where("lateness_ms IS NOT NULL")
        .groupBy("source")
        .agg(
            F.count(F.lit(1)).alias("rows"),
            waits.alias("waits"),
            F.count_if(F.col("lateness_ms") < -AHEAD_MS).alias("ahead"),
        )
        .orderBy(F.desc(F.col("waits")[1]), "source")
        .limit(_MAX_SOURCES)
        .collect()
    )
    return tuple(
        Source(r["source"], int(r["rows"]), float(r["waits"][0]), max(0.0, float(r["waits"][1])), int(r["ahead"]))
        for r in found
    )


def _suspicions(total: dict[str, Any], sources: Sequence[Source]) -> tuple[str, ...]:
    texts = []
    if total["invalid"]:
        texts.append(f"{total['invalid']} rows have no valid event time or arrival")
    if total["unset"]:
        texts.append(f"{total['unset']} rows have an event time before {_UNSET_BEFORE}: a clock that was never set")
    if total["ahead"]:
        most = duration_text(-total["most_ahead"])
        texts.append(
            f"{total['ahead']} rows have an event time more than a minute after their arrival (by up to {most})"
        )
    if total["old"]:
        texts.append(f"{total['old']} rows are more than 30 days late (up to {duration_text(total['most_late'])})")
    ahead = [s.source for s in sources if s.median_ms < 0]
    if ahead:
        texts.append(f"the clocks of {len(ahead)} of {len(sources)} sources run ahead: {'; '.join(ahead[:5])}")
    return tuple(texts)


def _change_factor(periods: Sequence[Period]) -> float:
    """The largest wait over the smallest, among periods with enough rows for a quantile."""
    most = max((period.rows for period in periods), default=0)
    waits = [period.wait_ms for period in periods if period.rows >= 0.1 * most and period.rows >= _MIN_GROUP_ROWS]
    if len(waits) < 2:
        return 1.0
    return max(waits) / max(min(waits), 1.0) if max(waits) > 1.0 else 1.0


def spark_duration(ms: float) -> str:
    """A duration for ``withWatermark``, rounded up to two or three digits.

    >>> spark_duration(0), spark_duration(1_234), spark_duration(95_000), spark_duration(25_000_000)
    ('1 second', '2 seconds', '95 seconds', '417 minutes')
    """
    units = (
        ("second", SECOND_MS, 120),
        ("minute", MINUTE_MS, 600),
        ("hour", HOUR_MS, 96),
        ("day", DAY_MS, math.inf),
    )
    counts = [(max(1, math.ceil(ms / size)), unit, most) for unit, size, most in units]
    count, unit = next((count, unit) for count, unit, most in counts if count <= most)
    return f"{count} {unit}{'' if count == 1 else 's'}"


def _recommend(
    event_time: str,
    drop_ratio: float,
    wait_ms: float,
    periods: Sequence[Period],
    changed: float,
    ahead_rows: int,
    sources: Sequence[Source],
) -> str:
    promise = f'sw.with_drop_ratio(events, "{event_time}", {drop_ratio:g})'
    constant = f'events.withWatermark("{event_time}", "{spark_duration(wait_ms)}")'
    text = f"{constant} would have lost at most {percent(drop_ratio)} of these rows."
    if changed > CHANGED:
        waits = sorted(period.wait_ms for period in periods if period.rows >= _MIN_GROUP_ROWS)
        text += (
            f" But the wait needed changed between {duration_text(waits[0])} and {duration_text(waits[-1])}:"
            f" a constant is too long most of the time and too short when it matters. {promise} adapts to it."
        )
    else:
        text += f" The wait needed hardly changed over time. {promise} keeps the ratio if it does change."
    if ahead_rows:
        text += (
            f" {ahead_rows} rows have an event time after their arrival. Each moves Spark's own watermark to its event"
            " time, and Spark then drops the valid rows below it. Filter such rows out before withWatermark."
        )
    waits = [source.wait_ms for source in sources if source.rows >= _MIN_GROUP_ROWS]
    if len(waits) > 1 and max(waits) > CHANGED * max(min(waits), 1.0):
        text += " Sources differ: name the source columns in the promise, so that each source gets its own wait."
    return text
