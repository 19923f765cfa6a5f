"""Is every streaming result what a batch job computes from the same rows? Many queries, native and ordered.

Each query runs as a stream, a file a micro-batch, each under the heartbeat that the file before it led to. Native
queries publish late panes: on-time and late panes together must be the exact answer. Ordered queries publish late rows:
results must be the exact answer over the rows that were not late, and results and late rows together account for every
row. The exact answer is plain Spark's, over the same rows as a batch. Prints a line a query; ends with 1 if one is not
equal.

Real traces are read from ``../shared/data`` beside the repository, where it exists.
"""

from __future__ import annotations

import argparse
import itertools
import math
import os
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pandas as pd
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import slackwater as sw
from slackwater.control.disorder import UNKNOWN, Batch, register
from slackwater.promises import Completeness
from slackwater.spark.report import CompletenessReport
from slackwater.spark.runtime.listener import wait_for_batch

REAL = Path(__file__).parents[1] / ".." / "shared" / "data"
FILES = 4
NUMBER_ORIGIN = 100_000_000_000  # where a number's event time begins; a multiple of every SLIDE here
AGGREGATES = (
    "COUNT(*) AS a, SUM(value) AS b, MAX(value) AS c",
    "AVG(value) AS a, MIN(value) AS b, COUNT(value) AS c",
    "STDDEV(value) AS a, VAR_POP(value) AS b, COUNT(DISTINCT value) AS c",
    "SUM(value) FILTER (WHERE id % 2 = 0) AS a, COUNT_IF(value > 50) AS b, BOOL_OR(value > 90) AS c",
    "SORT_ARRAY(COLLECT_SET(value)) AS a, 1 + 2 * SUM(value) AS b, BIT_XOR(id) AS c",
    "PERCENTILE_APPROX(value, 0.5) AS a, PERCENTILE(value, 0.9) AS b, COUNT(*) AS c",
)
MERGEABLE = AGGREGATES[:-1]
ORDERED_AGGREGATES = ("MAX", "AVG", "SUM", "MIN", "STDDEV_POP", "COUNT")


@register
class Trailing:
    """A heartbeat that trails the highest value by a constant."""

    name: ClassVar[str] = "benchmark-trailing"

    def __init__(self, promise: Completeness, wait_ms: float) -> None:
        self._wait_ms = wait_ms
        self._front = UNKNOWN

    def observe(self, batch: Batch) -> None:
        """Keep the highest value."""
        self._front = max([self._front, *batch.values.tolist()])

    def heartbeat(self, clock: float | None) -> float:
        """So far behind it."""
        return self._front - self._wait_ms

    def snapshot(self) -> dict[str, Any]:
        """The highest value."""
        return {"front": self._front}

    def resume(self, snapshot: dict[str, Any]) -> None:
        """Go on from it."""
        self._front = snapshot["front"]


@dataclass(frozen=True)
class Case:
    """A query over a stream, and the batch over ``{rows}`` that must give the same."""

    stream: str
    text: str
    exact: str
    wait_ms: float
    ordered: bool = False

    @property
    def by_number(self) -> bool:
        """Whether a number orders the stream."""
        return "WATTR id" in self.text


SHAPES = (
    ("", "", ""),
    ("s.sensor, ", "WHERE value > 3", "GROUP BY s.sensor"),
    ("n.place, ", "JOIN names AS n ON n.sensor = s.sensor", "GROUP BY n.place"),
)


def sliding(stream: str, length_s: float, slide_s: float, shape: int, chosen: str, wait_s: float) -> Case:
    """A window over time with SLIDE; what cannot be merged has no late panes, and waits until nothing is late."""
    length, slide = (f"{round(1000 * seconds)} milliseconds" for seconds in (length_s, slide_s))
    rows = f"(SELECT *, window(ts, '{length}', '{slide}') AS w FROM {{rows}})"
    late = "LATE PANES" if chosen in MERGEABLE else "LATE COUNT"
    clause = f"RANGE {length} SLIDE {slide} ARRIVAL arrived {late}"
    return _native(stream, clause, rows, "w.start AS window_start, w.end AS window_end", shape, chosen, wait_s * 1000)


def numbered(stream: str, length: int, slide: int, shape: int, chosen: str, wait: float) -> Case:
    """A window over order IDs."""
    first = f"id - id % {slide} - {(length - 1) // slide * slide}"
    explode = f"explode(filter(sequence({first}, id - id % {slide}, {slide}), e -> e > id - {length}))"
    rows = f"(SELECT *, {explode} AS w FROM {{rows}})"
    clause = f"RANGE {length} SLIDE {slide} WATTR id LATE PANES"
    return _native(stream, clause, rows, f"w AS window_start, w + {length} AS window_end", shape, chosen, wait)


def _native(stream: str, clause: str, rows: str, edges: str, shape: int, chosen: str, wait_ms: float) -> Case:
    key, tail, group = SHAPES[shape]
    text = f"SELECT {key}{chosen} FROM {stream} [{clause}] AS s {tail} {group}".strip()
    keyed = f"GROUP BY w{', ' + group.removeprefix('GROUP BY ') if group else ''}"
    return Case(stream, text, f"SELECT {edges}, {key}{chosen} FROM {rows} AS s {tail} {keyed}", wait_ms)


def per_row(stream: str, length_s: int, keyed: bool, names: tuple[str, str], wait_s: float) -> Case:
    """One result per row over time."""
    key, group, part = _keyed(keyed)
    before_us = length_s * 1_000_000 - 1
    over = f"OVER ({part}ORDER BY unix_micros(ts) RANGE BETWEEN {before_us} PRECEDING AND CURRENT ROW)"
    first, second = names
    return Case(
        stream,
        f"SELECT {key}{first}(value) AS a, {second}(value) AS b, COUNT(*) AS n FROM {stream} "
        f"[RANGE {length_s} seconds ARRIVAL arrived LATE ROWS]{group}",
        f"SELECT ts - INTERVAL {length_s} SECONDS AS window_start, ts AS window_end, {key}"
        f"{first}(value) {over} AS a, {second}(value) {over} AS b, COUNT(*) {over} AS n FROM {{rows}}",
        wait_s * 1000,
        ordered=True,
    )


def tuples(stream: str, length: int, slide: int, keyed: bool, names: tuple[str, str], wait: float) -> Case:
    """The last n tuples, of the whole stream or per key."""
    key, group, part = _keyed(keyed)
    over = f"OVER ({part}ORDER BY id ROWS BETWEEN {length - 1} PRECEDING AND CURRENT ROW)"
    first, second = names
    per = " PER sensor" if keyed else ""
    return Case(
        stream,
        f"SELECT {key}{first}(value) AS a, {second}(value) AS b FROM {stream} "
        f"[RANGE {length} tuples SLIDE {slide} tuples WATTR id{per} LATE ROWS]{group}",
        f"SELECT window_start, window_end, {key}a, b FROM (SELECT MIN(id) {over} AS window_start, id AS window_end, "
        f"{key}{first}(value) {over} AS a, {second}(value) {over} AS b, ROW_NUMBER() OVER ({part}ORDER BY id) AS i "
        f"FROM {{rows}}) WHERE i % {slide} = 0",
        wait,
        ordered=True,
    )


def landmark(stream: str, since: str, slide_s: int, names: tuple[str, str], wait_s: float) -> Case:
    """From a point on, a result for every step in which rows came."""
    first, second = names
    rows = f"(SELECT * FROM {{rows}} WHERE ts >= timestamp'{since}')"
    ends = f"(SELECT DISTINCT sensor, window(ts, '{slide_s} seconds').end AS e FROM {rows})"
    return Case(
        stream,
        f"SELECT sensor, {first}(value) AS a, {second}(value) AS b FROM {stream} "
        f"[LANDMARK '{since}' SLIDE {slide_s} seconds ARRIVAL arrived LATE ROWS] GROUP BY sensor",
        f"SELECT timestamp'{since}' AS window_start, e AS window_end, s.sensor, {first}(value) AS a, "
        f"{second}(value) AS b FROM {rows} AS s JOIN {ends} AS ends ON ends.sensor = s.sensor AND s.ts < e "
        "GROUP BY e, s.sensor",
        wait_s * 1000,
        ordered=True,
    )


def numbered_landmark(stream: str, since: int, slide: int, names: tuple[str, str], wait: float) -> Case:
    """From an order ID on, a result for every step in which rows came."""
    first, second = names
    rows = f"(SELECT * FROM {{rows}} WHERE id >= {since})"
    ends = f"(SELECT DISTINCT sensor, {since} + ((id - {since}) DIV {slide} + 1) * {slide} AS e FROM {rows})"
    return Case(
        stream,
        f"SELECT sensor, {first}(value) AS a, {second}(value) AS b FROM {stream} "
        f"[LANDMARK {since} SLIDE {slide} WATTR id LATE ROWS] GROUP BY sensor",
        f"SELECT {since}L AS window_start, e AS window_end, s.sensor, {first}(value) AS a, {second}(value) AS b "
        f"FROM {rows} AS s JOIN {ends} AS ends ON ends.sensor = s.sensor AND s.id < e GROUP BY e, s.sensor",
        wait,
        ordered=True,
    )


def _keyed(keyed: bool) -> tuple[str, str, str]:
    return ("sensor, ", " GROUP BY sensor", "PARTITION BY sensor ") if keyed else ("", "", "")


@dataclass(frozen=True)
class Trace:
    """Rows in the order of their arrival, and the unit in which its windows are measured."""

    name: str
    data: pd.DataFrame
    unit_s: int

    def cases(self, turn: int) -> list[Case]:
        """Eleven native and six ordered queries; another turn, other combinations."""
        name, u = self.name, self.unit_s
        wait = 2.0 * u
        longest = float((self.data["ts"].cummax() - self.data["ts"]).dt.total_seconds().max()) + 1
        windows: list[Callable[[int, str], Case]] = [
            lambda shape, chosen: sliding(name, 10 * u, 2 * u, shape, chosen, wait),
            lambda shape, chosen: sliding(name, 10 * u, 10 * u, shape, chosen, wait),
            lambda shape, chosen: sliding(name, 9 * u, 4 * u, shape, chosen, wait),
            lambda shape, chosen: numbered(name, 100, 25, shape, chosen, 5.0),
        ]
        combinations = list(itertools.product(range(len(windows)), range(len(SHAPES))))
        picked = [combinations[(turn + 5 * i) % len(combinations)] for i in range(8)]
        found = [windows[w](shape, MERGEABLE[(turn + i) % len(MERGEABLE)]) for i, (w, shape) in enumerate(picked)]
        found.append(sliding(name, 8 * u, 4 * u, turn % 3, AGGREGATES[-1], longest))
        # so many windows that their panes are put together first
        found.append(sliding(name, 15 * u, u / 8, (turn + 1) % 3, MERGEABLE[turn % len(MERGEABLE)], wait))
        found.append(numbered(name, 250, 2, (turn + 2) % 3, MERGEABLE[(turn + 3) % len(MERGEABLE)], 5.0))
        pairs = list(itertools.pairwise(ORDERED_AGGREGATES))
        since = self.data["ts"].quantile(0.2).floor(f"{2 * u}s").strftime("%Y-%m-%d %H:%M:%S")
        return [
            *found,
            per_row(name, 6 * u, True, pairs[turn % 5], wait),
            per_row(name, 6 * u, False, pairs[(turn + 1) % 5], longest),
            tuples(name, 20, 5, True, pairs[(turn + 2) % 5], 5.0),
            tuples(name, 20, 5, False, pairs[(turn + 3) % 5], 40.0),
            landmark(name, since, 2 * u, pairs[(turn + 4) % 5], wait),
            numbered_landmark(name, 100, 50, pairs[turn % 5], 5.0),
        ]


def generated(rows: int, seed: int = 11) -> pd.DataFrame:
    """Four sensors, a minute, lateness exponential with a mean of two seconds."""
    rng = np.random.default_rng(seed)
    arrived = np.sort(rng.uniform(0, 60, rows))
    made = pd.DataFrame({"sensor": [f"s{i % 4}" for i in range(rows)]})
    made["value"] = rng.integers(0, 100, rows).astype(float)
    made["ts"] = pd.to_datetime(1_700_000_000 + arrived - rng.exponential(2.0, rows), unit="s", utc=True)
    made["arrived"] = pd.to_datetime(1_700_000_000 + arrived, unit="s", utc=True)
    return with_numbers(made)


def with_numbers(data: pd.DataFrame) -> pd.DataFrame:
    """Order IDs that come out of order too, by up to some twenty places; times to the microsecond."""
    rng = np.random.default_rng(12)
    places = np.arange(len(data)) + rng.uniform(0, 20, len(data))
    numbers = np.argsort(np.argsort(places, kind="stable"), kind="stable")
    times = {column: data[column].dt.round("us") for column in ("ts", "arrived")}
    return data.assign(id=numbers, **times).reset_index(drop=True)


def recorded(rows: int) -> list[Trace]:
    """A stretch of each real trace that has two clocks; none where they are not to be had."""
    found = []
    for name, file, unit_s, columns in (
        ("Phones", "ooo_umts", 1, ("device", "http_bytes", "event_ts", "arrival_ts")),
        ("Hosts", "winlog_pipeline", 1, ("host", "event_id", "event_ts", "arrival_ts")),
        ("Bikes", "bike_trips", 600, ("start_terminal", "duration_s", "event_ts", "arrival_ts")),
    ):
        path = REAL / f"{file}.parquet"
        if path.exists():
            key, value, event, arrival = columns
            data = pd.read_parquet(path).head(rows).sort_values(arrival, kind="stable")
            made = {"sensor": data[key].astype(str), "value": data[value].astype(float), "ts": data[event]}
            found.append(Trace(name, with_numbers(pd.DataFrame({**made, "arrived": data[arrival]})), unit_s))
    return found


def write_files(data: pd.DataFrame, folder: Path, cuts: list[int] | None = None) -> list[Path]:
    """The rows in arrival order, as files that wait to be put into the stream's folder."""
    folder.mkdir(parents=True)
    edges = np.linspace(0, len(data), FILES + 1).astype(int).tolist() if cuts is None else [0, *cuts, len(data)]
    paths = []
    for number, (start, end) in enumerate(itertools.pairwise(edges)):
        path = folder / f"{number}.parquet"
        data.iloc[start:end].to_parquet(path, index=False, coerce_timestamps="us", allow_truncated_timestamps=True)
        paths.append(path)
    return paths


def settled(query: Any) -> CompletenessReport:
    """Wait until everything is committed and every heartbeat that follows has taken effect."""
    while True:
        query.processAllAvailable()
        batch = int(query.lastProgress["batchId"]) if query.lastProgress else -1
        wait_for_batch(str(query.id), batch, timeout_s=60)
        query.processAllAvailable()
        if not query.lastProgress or int(query.lastProgress["batchId"]) == batch:
            return sw.report(query).completeness[0]


def same(left: DataFrame, right: DataFrame) -> bool:
    """The same rows, each as often; doubles to nine digits, since sums of doubles depend on their order."""

    def rows(frame: DataFrame) -> list[tuple[str, list[float]]]:
        parted = []
        for row in frame.collect():
            flat = [value for cell in row for value in (cell if isinstance(cell, list) else [cell])]
            numbers = [value for value in flat if isinstance(value, float)]
            parted.append((repr([value for value in flat if not isinstance(value, float)]), numbers))
        return sorted(parted)

    def close(a: float, b: float) -> bool:
        return math.isclose(a, b, rel_tol=1e-9, abs_tol=1e-9)

    one, other = rows(left), rows(right)
    return len(one) == len(other) and all(
        a == c and len(b) == len(d) and all(map(close, b, d)) for (a, b), (c, d) in zip(one, other, strict=True)
    )


@dataclass(frozen=True)
class Outcome:
    """Whether the streaming result is the exact one; rows compared, late rows, seconds."""

    equal: bool
    rows: int
    late: int
    seconds: float


def run(spark: SparkSession, case: Case, files: list[Path], folder: Path, name: str) -> Outcome:
    """Stream the files through the query, and compare with the batch."""
    began = time.monotonic()
    inbox = folder / "in"
    inbox.mkdir(parents=True)
    everything = spark.read.parquet(*map(str, files))
    events = spark.readStream.schema(everything.schema).option("maxFilesPerTrigger", 1).parquet(str(inbox))
    sw.stream(name, events, event_time="ts")
    made = sw.sql(
        spark,
        case.text.replace(f"FROM {case.stream} ", f"FROM {name} "),
        name=name,
        location=str(folder / "promise"),
        method=sw.Method(Trailing.name, wait_ms=case.wait_ms),
        shards=2,
    )
    query = (
        made.writeStream.format("parquet")
        .option("path", str(folder / "out"))
        .option("checkpointLocation", str(folder / "at"))
        .start()
    )
    try:
        for path in files:
            os.link(path, inbox / path.name)
            promise = settled(query)
    finally:
        query.stop()
    assert promise.heartbeat is not None, "the stream is too short for a heartbeat"
    published = spark.read.schema(made.schema).parquet(str(folder / "out"))
    complete = promise.ledger.input == everything.count()
    rows = everything
    if case.ordered:
        late = sw.late_rows(published).select("id")
        complete &= late.count() == promise.ledger.late or "LANDMARK" in case.text
        rows = everything.join(late, "id", "left_anti")
    rows.createOrReplaceTempView(f"{name}_rows")
    edge = F.lit(promise.heartbeat)
    if case.by_number:
        edge = F.lit(round(promise.heartbeat.timestamp() * 1000) - NUMBER_ORIGIN)
    steps = not case.ordered or "LANDMARK" in case.text
    closed = F.col("window_end") <= edge if steps else F.col("window_end") < edge
    if case.ordered:
        found = sw.on_time(published)
    else:
        found = (sw.reconcile(published) if "late" in published.columns else published).where(closed)
        complete &= "late" in published.columns or promise.ledger.late == 0
    exact = spark.sql(case.exact.replace("{rows}", f"{name}_rows")).where(closed).select(*found.columns)
    equal = complete and same(found, exact)
    return Outcome(equal, exact.count(), promise.ledger.late, time.monotonic() - began)


def name_sensors(spark: SparkSession, data: list[pd.DataFrame]) -> None:
    """The static table that queries join."""
    names = sorted({sensor for frame in data for sensor in frame["sensor"]})
    places = [(sensor, f"place {i % 3}") for i, sensor in enumerate(names)]
    spark.createDataFrame(places, "sensor string, place string").createOrReplaceTempView("names")


def main() -> None:
    """Run them all, a few at a time."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--every", type=int, default=1, help="take every n-th query only")
    parser.add_argument("--only", type=int, nargs="*", help="these queries only, by their numbers")
    parser.add_argument("--at-once", type=int, default=4, help="queries that run at the same time")
    parser.add_argument("--rows", type=int, default=600, help="of each trace")
    options = parser.parse_args()
    began = time.monotonic()
    spark = (
        SparkSession.builder.master("local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.sql.shuffle.partitions", "1")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.python.authenticate.socketTimeout", "120s")  # a busy machine starts Python slowly
        .config("spark.driver.memory", "2g")
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("OFF")
    traces = [Trace("Generated", generated(options.rows), 1), *recorded(options.rows)]
    numbered = enumerate((case for turn, trace in enumerate(traces) for case in trace.cases(turn)), 1)
    cases = {n: case for n, case in numbered if (n - 1) % options.every == 0 and n in (options.only or [n])}
    wrong = 0
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as scratch:
        root = Path(scratch)
        files = {trace.name: write_files(trace.data, root / trace.name) for trace in traces}
        name_sensors(spark, [trace.data for trace in traces])
        with ThreadPoolExecutor(options.at_once) as pool:
            jobs = {
                n: pool.submit(run, spark, case, files[case.stream], root / f"case-{n}", f"{case.stream}_{n}")
                for n, case in cases.items()
            }
            for number, case in cases.items():
                try:
                    out = jobs[number].result()
                    verdict = "equal" if out.equal else "DIFFERENT"
                    line = f"{out.rows:6} rows {out.late:4} late {out.seconds:4.0f} s"
                except Exception as error:
                    verdict, line, out = "FAILED", type(error).__name__, None
                    print(f"{number:3} {error}", file=sys.stderr)
                wrong += verdict != "equal"
                path = "ordered" if case.ordered else "native "
                print(f"{number:3} {verdict:9} {path} {line}  {case.text}", flush=True)
        spark.stop()
    seconds = time.monotonic() - began
    print(f"{len(cases) - wrong} of {len(cases)} queries equal their batch, in {seconds:.0f} s")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
