"""What to write in ``withWatermark``: the wait that each drop ratio would have needed, by a Spark batch job."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from slackwater.errors import InvalidData
from slackwater.units import DAY_MS, HOUR_MS, MINUTE_MS, SECOND_MS, duration_text, percent

RATIOS = (0.1, 0.05, 0.02, 0.01, 0.005, 0.002, 0.001, 0.0005, 0.0002, 0.0001)
PERIODS = 24
_ACCURACY = 200_000
_GROUP_ACCURACY = 20_000
_MOST_SOURCES = 1_000
FUTURE_MS = MINUTE_MS
OLD_MS = 30 * DAY_MS
_UNSET_BEFORE = "1971-01-01"
CHANGED = 2.0


@dataclass(frozen=True, slots=True)
class Period:
    """A stretch of arrival time: its rows, and the wait that the promise would have needed in it."""

    start_ms: float
    rows: int
    wait_ms: float


@dataclass(frozen=True, slots=True)
class Source:
    """One source: its rows, typical lateness, the wait that the promise needs for it, and rows stamped ahead."""

    source: str
    rows: int
    median_ms: float
    wait_ms: float
    ahead_rows: int


@dataclass(frozen=True, slots=True)
class Advice:
    """The curve from drop ratio to wait, how it changed, whose clocks look wrong, and what to write."""

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
        """The advice as plain values."""
        plain = asdict(self)
        plain["curve"] = [{"drop_ratio": ratio, "wait_ms": wait} for ratio, wait in self.curve]
        return plain


def read_data(spark: SparkSession, path: str) -> DataFrame:
    """A Parquet, CSV or JSON file or a directory of Parquet files, of any size."""
    suffix = Path(path).suffix.lower()
    try:
        if suffix in (".csv", ".tsv", ".txt"):
            return spark.read.csv(path, header=True, sep="\t" if suffix == ".tsv" else ",")
        if suffix in (".json", ".jsonl"):
            return spark.read.json(path)
        return spark.read.parquet(path)
    except PySparkException as error:
        raise InvalidData(
            "unreadable-file",
            f"{path} cannot be read ({str(error).splitlines()[0]})",
            "give Parquet (a file or a directory), CSV with a header, or JSON lines",
        ) from error


def advise(
    data: DataFrame,
    event_time: str,
    arrival: str,
    drop_ratio: float = 0.01,
    sources: Sequence[str] = (),
    report: Callable[[str], None] = lambda what: None,
) -> Advice:
    """Measure how late rows are and advise a watermark that would have kept ``drop_ratio``.

    Costs two passes over two columns, and a third one for sources; nothing is collected but the result. Quantiles are
    approximate to one rank in 200 000. Spark's own watermark runs behind the newest event time, not behind the
    arrival clock: the advised constant is enough for it as long as no row is stamped ahead of its arrival. What a
    stream did says nothing about what it will do: the advice holds as long as the stream stays as it was.
    """
    rows = _rows(data, event_time, arrival, sources)
    report("the curve")
    ratios = sorted({*RATIOS, drop_ratio}, reverse=True)
    valid = F.col("lateness_ms").isNotNull()
    total = rows.agg(
        F.count(F.lit(1)).alias("rows"),
        F.count_if(~valid).alias("invalid"),
        F.count_if(F.col("lateness_ms") < -FUTURE_MS).alias("ahead"),
        F.min("lateness_ms").alias("most_ahead"),
        F.count_if(F.col("lateness_ms") > OLD_MS).alias("old"),
        F.max("lateness_ms").alias("most_late"),
        F.count_if(valid & (F.col("event") < F.lit(_UNSET_BEFORE).cast("timestamp"))).alias("unset"),
        F.min("arrived_ms").alias("first"),
        F.max("arrived_ms").alias("last"),
        _quantiles("lateness_ms", ratios, _ACCURACY).alias("waits"),
    ).first()
    assert total is not None
    if total["rows"] == total["invalid"]:
        raise InvalidData(
            "no-valid-rows", f"no row has a valid {event_time!r} and {arrival!r}", "look at the columns and their types"
        )
    curve = tuple((ratio, max(0.0, float(wait))) for ratio, wait in zip(ratios, total["waits"], strict=True))
    wait_ms = dict(curve)[drop_ratio]
    report("how it changed over time")
    periods = _periods(rows, float(total["first"]), float(total["last"]), drop_ratio)
    by_source: tuple[Source, ...] = ()
    if sources:
        report("by source")
        by_source = _by_source(rows, drop_ratio)
    suspicions = _suspicions(total.asDict(), by_source)
    changed = _changed(periods)
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


def _rows(data: DataFrame, event_time: str, arrival: str, sources: Sequence[str]) -> DataFrame:
    for column in (event_time, arrival, *sources):
        if column not in data.columns:
            raise InvalidData(
                "no-such-column", f"there is no column {column!r}", f"the data has: {', '.join(data.columns)}"
            )
    event, arrived = _time(data, event_time), _time(data, arrival)
    arrived_ms = F.unix_micros(arrived) / 1e3
    source = F.concat_ws(", ", *[F.coalesce(F.col(c).cast("string"), F.lit("null")) for c in sources])
    return data.select(
        event.alias("event"),
        arrived_ms.alias("arrived_ms"),
        (arrived_ms - F.unix_micros(event) / 1e3).alias("lateness_ms"),
        (source if sources else F.lit("")).alias("source"),
    )


def _time(data: DataFrame, column: str) -> Column:
    kind = data.schema[column].dataType
    if isinstance(kind, T.TimestampType):
        return F.col(column)
    if isinstance(kind, T.TimestampNTZType | T.DateType):
        return F.col(column).cast("timestamp")
    if isinstance(kind, T.StringType):
        return F.try_to_timestamp(F.col(column))
    raise InvalidData(
        "wrong-type",
        f"column {column!r} is {kind.simpleString()}, not a time",
        "advise compares two clocks; for a number use slackwater lab disorder",
    )


def _quantiles(column: str, ratios: Sequence[float], accuracy: int) -> Column:
    return F.percentile_approx(column, [1.0 - ratio for ratio in ratios], accuracy)


def _periods(rows: DataFrame, first: float, last: float, drop_ratio: float) -> tuple[Period, ...]:
    width = max((last - first) / PERIODS, 1.0)
    place = F.least(F.floor((F.col("arrived_ms") - F.lit(first)) / width), F.lit(PERIODS - 1))
    found = (
        rows.where("lateness_ms IS NOT NULL")
        .groupBy(place.alias("place"))
        .agg(F.count(F.lit(1)).alias("rows"), _quantiles("lateness_ms", [drop_ratio], _GROUP_ACCURACY)[0].alias("wait"))
        .orderBy("place")
        .collect()
    )
    return tuple(Period(first + row["place"] * width, int(row["rows"]), max(0.0, float(row["wait"]))) for row in found)


def _by_source(rows: DataFrame, drop_ratio: float) -> tuple[Source, ...]:
    waits = _quantiles("lateness_ms", [0.5, drop_ratio], _GROUP_ACCURACY)
    found = (
        rows.where("lateness_ms IS NOT NULL")
        .groupBy("source")
        .agg(
            F.count(F.lit(1)).alias("rows"),
            waits.alias("waits"),
            F.count_if(F.col("lateness_ms") < -FUTURE_MS).alias("ahead"),
        )
        .orderBy(F.desc(F.col("waits")[1]), "source")
        .limit(_MOST_SOURCES)
        .collect()
    )
    return tuple(
        Source(r["source"], int(r["rows"]), float(r["waits"][0]), max(0.0, float(r["waits"][1])), int(r["ahead"]))
        for r in found
    )


def _suspicions(total: dict[str, Any], sources: Sequence[Source]) -> tuple[str, ...]:
    said = []
    if total["invalid"]:
        said.append(f"{total['invalid']} rows have no valid time or arrival")
    if total["unset"]:
        said.append(f"{total['unset']} rows are stamped before {_UNSET_BEFORE}: a clock that was never set")
    if total["ahead"]:
        most = duration_text(-total["most_ahead"])
        said.append(f"{total['ahead']} rows are stamped more than a minute after they arrived (by up to {most})")
    if total["old"]:
        said.append(f"{total['old']} rows came more than 30 days late (up to {duration_text(total['most_late'])})")
    ahead = [s.source for s in sources if s.median_ms < 0]
    if ahead:
        said.append(f"the clock runs ahead at {len(ahead)} of {len(sources)} sources: {'; '.join(ahead[:5])}")
    return tuple(said)


def _changed(periods: Sequence[Period]) -> float:
    """The largest wait over the smallest, among periods with rows enough to tell."""
    most = max((period.rows for period in periods), default=0)
    waits = [period.wait_ms for period in periods if period.rows >= 0.1 * most and period.rows >= 100]
    if len(waits) < 2:
        return 1.0
    return max(waits) / max(min(waits), 1.0) if max(waits) > 1.0 else 1.0


def spark_duration(ms: float) -> str:
    """A duration for ``withWatermark``: rounded up, two digits or so.

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
        waits = sorted(period.wait_ms for period in periods if period.rows >= 100)
        text += (
            f" But what it takes moved between {duration_text(waits[0])} and {duration_text(waits[-1])}:"
            f" a constant is too long most of the time and too short when it matters. {promise} follows it."
        )
    else:
        text += f" It hardly changed over time. {promise} keeps the ratio if it does."
    if ahead_rows:
        text += (
            f" {ahead_rows} rows are stamped ahead of their arrival: each moves Spark's own watermark to its own time,"
            " and every honest row behind it is lost. Filter them out before withWatermark."
        )
    waits = [source.wait_ms for source in sources if source.rows >= 100]
    if len(waits) > 1 and max(waits) > CHANGED * max(min(waits), 1.0):
        text += " Sources differ: tell them apart in the promise, so that a slow one does not pass for lateness."
    return text
