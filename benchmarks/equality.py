"""Compares streaming results with a batch job over the same rows, for many native and ordered queries.

Each query runs as a stream with one file per micro-batch, under the heartbeat that the previous file led to. Native
queries publish late panes: on-time results and late panes together must equal the batch result. Ordered queries publish
late rows: results must equal the batch result over the rows that were not late, and results and late rows together must
account for every row. The batch result is plain Spark's. Prints one line per query; exits with 1 if a result differs.

Recorded traces come from the folder SLACKWATER_DATA (``recorded_data.py``), as far as they exist.
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
from equality_cases import (
    AGGREGATES,
    MERGEABLE,
    ORDERED_AGGREGATES,
    SHAPES,
    Case,
    landmark,
    numbered,
    numbered_landmark,
    per_row,
    sliding,
    tuples,
)
from recorded_data import data_folder
from slackwater.control.disorder import UNKNOWN, Batch, register
from slackwater.promises import Completeness
from slackwater.spark.completeness.report import CompletenessReport
from slackwater.spark.runtime.listener import wait_for_batch

FILES = 4
NUMBER_ORIGIN = 100_000_000_000  # the number at event time 0; a multiple of every SLIDE here


@register
class Trailing:
    """A method whose heartbeat trails the highest value by a constant."""

    name: ClassVar[str] = "benchmark-trailing"

    def __init__(self, promise: Completeness, wait_ms: float) -> None:
        self._wait_ms = wait_ms
        self._front = UNKNOWN

    def observe(self, batch: Batch) -> None:
        """Remember the highest value."""
        self._front = max([self._front, *batch.values.tolist()])

    def heartbeat(self, clock: float | None) -> float:
        """The highest value minus the wait."""
        return self._front - self._wait_ms

    def snapshot(self) -> dict[str, Any]:
        """The state as JSON values."""
        return {"front": self._front}

    def resume(self, snapshot: dict[str, Any]) -> None:
        """Restore the state."""
        self._front = snapshot["front"]


@dataclass(frozen=True)
class Trace:
    """Rows in arrival order; ``unit_s`` is the time scale of the windows over them."""

    name: str
    data: pd.DataFrame
    unit_s: int

    def cases(self, turn: int) -> list[Case]:
        """Eleven native and six ordered queries; ``turn`` selects their combinations of window, shape and aggregate."""
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
        # with this many windows per row, panes are combined before the windows
        found.append(sliding(name, 15 * u, u / 8, (turn + 1) % 3, MERGEABLE[turn % len(MERGEABLE)], wait))
        found.append(numbered(name, 250, 2, (turn + 2) % 3, MERGEABLE[(turn + 3) % len(MERGEABLE)], 5.0))
        pairs = list(itertools.pairwise(ORDERED_AGGREGATES))
        first_fifth: Any = self.data["ts"].quantile(0.2)
        since = first_fifth.floor(f"{2 * u}s").strftime("%Y-%m-%d %H:%M:%S")
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
    """One minute of four sensors; lateness is exponential with a mean of two seconds."""
    rng = np.random.default_rng(seed)
    arrived = np.sort(rng.uniform(0, 60, rows))
    frame = pd.DataFrame({"sensor": [f"s{i % 4}" for i in range(rows)]})
    frame["value"] = rng.integers(0, 100, rows).astype(float)
    frame["ts"] = pd.to_datetime(1_700_000_000 + arrived - rng.exponential(2.0, rows), unit="s", utc=True)
    frame["arrived"] = pd.to_datetime(1_700_000_000 + arrived, unit="s", utc=True)
    return with_numbers(frame)


def with_numbers(data: pd.DataFrame) -> pd.DataFrame:
    """Add order IDs that are up to some twenty positions out of order, and round times to microseconds."""
    rng = np.random.default_rng(12)
    positions = np.arange(len(data)) + rng.uniform(0, 20, len(data))
    numbers = np.argsort(np.argsort(positions, kind="stable"), kind="stable")
    times = {column: data[column].dt.round("us") for column in ("ts", "arrived")}
    return data.assign(id=numbers, **times).reset_index(drop=True)


def recorded(rows: int) -> list[Trace]:
    """The first rows of each recorded trace with two clocks, as far as their files exist."""
    found = []
    for name, file, unit_s, names in (
        ("Phones", "ooo_umts", 1, ("device", "http_bytes", "event_ts", "arrival_ts")),
        ("Hosts", "winlog_pipeline", 1, ("host", "event_id", "event_ts", "arrival_ts")),
        ("Bikes", "bike_trips", 600, ("start_terminal", "duration_s", "event_ts", "arrival_ts")),
    ):
        path = data_folder() / f"{file}.parquet"
        if path.exists():
            key, value, event, arrival = names
            data = pd.read_parquet(path).head(rows).sort_values(arrival, kind="stable")
            columns = {"sensor": data[key].astype(str), "value": data[value].astype(float)}
            frame = pd.DataFrame({**columns, "ts": data[event], "arrived": data[arrival]})
            found.append(Trace(name, with_numbers(frame), unit_s))
    return found


def write_files(data: pd.DataFrame, folder: Path, cuts: list[int] | None = None) -> list[Path]:
    """Write the rows in arrival order as one file per micro-batch, split at ``cuts`` or into equal parts."""
    folder.mkdir(parents=True)
    edges = np.linspace(0, len(data), FILES + 1).astype(int).tolist() if cuts is None else [0, *cuts, len(data)]
    paths = []
    for number, (start, end) in enumerate(itertools.pairwise(edges)):
        path = folder / f"{number}.parquet"
        data.iloc[start:end].to_parquet(path, index=False, coerce_timestamps="us", allow_truncated_timestamps=True)
        paths.append(path)
    return paths


def settled(query: Any) -> CompletenessReport:
    """Wait until every row is committed and every heartbeat that follows is in force; return the promise's report."""
    while True:
        query.processAllAvailable()
        batch = int(query.lastProgress["batchId"]) if query.lastProgress else -1
        wait_for_batch(str(query.id), batch, timeout_s=60)
        query.processAllAvailable()
        if not query.lastProgress or int(query.lastProgress["batchId"]) == batch:
            return sw.report(query).completeness[0]


def same(left: DataFrame, right: DataFrame) -> bool:
    """Whether both have the same rows, equally often. Doubles are compared to nine digits: sums depend on the order."""

    def rows(frame: DataFrame) -> list[tuple[str, list[float]]]:
        split = []
        for row in frame.collect():
            flat = [value for cell in row for value in (cell if isinstance(cell, list) else [cell])]
            numbers = [value for value in flat if isinstance(value, float)]
            split.append((repr([value for value in flat if not isinstance(value, float)]), numbers))
        return sorted(split)

    def close(a: float, b: float) -> bool:
        return math.isclose(a, b, rel_tol=1e-9, abs_tol=1e-9)

    one, other = rows(left), rows(right)
    return len(one) == len(other) and all(
        a == c and len(b) == len(d) and all(map(close, b, d)) for (a, b), (c, d) in zip(one, other, strict=True)
    )


@dataclass(frozen=True)
class Outcome:
    """Whether the streaming result equals the batch's; the rows compared, the late rows, and the time it took."""

    equal: bool
    rows: int
    late: int
    seconds: float


def run(spark: SparkSession, case: Case, files: list[Path], folder: Path, name: str) -> Outcome:
    """Stream the files through the query, and compare the result with the batch's."""
    began = time.monotonic()
    everything = spark.read.parquet(*map(str, files))
    result, promise = _stream_files(spark, case, files, folder, name, everything)
    assert promise.heartbeat is not None, "the stream is too short for a heartbeat"
    published = spark.read.schema(result.schema).parquet(str(folder / "out"))
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


def _stream_files(
    spark: SparkSession, case: Case, files: list[Path], folder: Path, name: str, everything: DataFrame
) -> tuple[DataFrame, CompletenessReport]:
    """Run the query over the files, one per micro-batch; return its DataFrame and the report of its promise."""
    inbox = folder / "in"
    inbox.mkdir(parents=True)
    events = spark.readStream.schema(everything.schema).option("maxFilesPerTrigger", 1).parquet(str(inbox))
    sw.stream(name, events, event_time="ts")
    result = sw.sql(
        spark,
        case.text.replace(f"FROM {case.stream} ", f"FROM {name} "),
        name=name,
        location=str(folder / "promise"),
        method=sw.Method(Trailing.name, wait_ms=case.wait_ms),
    )
    query = (
        result.writeStream.format("parquet")
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
    return result, promise


def name_sensors(spark: SparkSession, data: list[pd.DataFrame]) -> None:
    """Create the static table ``names`` that queries join."""
    names = sorted({sensor for frame in data for sensor in frame["sensor"]})
    places = [(sensor, f"place {i % 3}") for i, sensor in enumerate(names)]
    spark.createDataFrame(places, "sensor string, place string").createOrReplaceTempView("names")


def main() -> None:
    """Run all queries, a few at a time."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--every", type=int, default=1, help="run only every n-th query")
    parser.add_argument("--only", type=int, nargs="*", help="run only the queries with these numbers")
    parser.add_argument("--at-once", type=int, default=4, help="number of queries that run at the same time")
    parser.add_argument("--rows", type=int, default=600, help="rows per trace")
    options = parser.parse_args()
    began = time.monotonic()
    spark = (
        SparkSession.builder.master("local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.sql.shuffle.partitions", "1")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.slackwater.shards", 2)
        .config("spark.python.authenticate.socketTimeout", "120s")  # Python workers start slowly on a busy machine
        .config("spark.driver.memory", "2g")
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("OFF")
    traces = [Trace("Generated", generated(options.rows), 1), *recorded(options.rows)]
    numbered = enumerate((case for turn, trace in enumerate(traces) for case in trace.cases(turn)), 1)
    cases = {n: case for n, case in numbered if (n - 1) % options.every == 0 and n in (options.only or [n])}
    different = 0
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
                different += verdict != "equal"
                path = "ordered" if case.ordered else "native "
                print(f"{number:3} {verdict:9} {path} {line}  {case.text}", flush=True)
        spark.stop()
    seconds = time.monotonic() - began
    print(f"{len(cases) - different} of {len(cases)} queries equal their batch, in {seconds:.0f} s")
    sys.exit(1 if different else 0)


if __name__ == "__main__":
    main()
