"""Is every streaming result what a batch job computes from the same rows? Many queries, native and ordered.

Each query runs as a stream, a file a micro-batch, each under the heartbeat that the file before it led to. Native
queries publish late panes, and on-time and late panes together must be the exact answer; ordered queries wait long
enough that no row is late. The exact answer is plain Spark's, over the same rows as a batch. Prints a line a
query; ends with 1 if one differs.
"""

from __future__ import annotations

import argparse
import itertools
import os
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pandas as pd
from pyspark.sql import DataFrame, SparkSession

import slackwater as sw
from slackwater.control.disorder import UNKNOWN, Batch, register
from slackwater.promises import Completeness
from slackwater.spark.report import PromiseReport
from slackwater.spark.supervisor import keepers_of

REAL = Path(__file__).parents[1] / ".." / "shared" / "data" / "ooo_umts.parquet"
FILES = 3
NUMBER_ORIGIN = 100_000_000_000  # where a number's event time begins; a multiple of every SLIDE here
WAIT_MS = {"Generated": 12_000.0, "Phones": 4_000.0}  # more than any row is late


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
    """A query, and the batch that must give the same."""

    stream: str
    text: str
    exact: str
    ordered: bool = False
    wait_ms: float | None = None


def native_cases(stream: str) -> list[Case]:
    """Windows with SLIDE over times and numbers, keyed and not, filtered, joined."""
    aggregates = (
        "COUNT(*) AS a, SUM(value) AS b, MAX(value) AS c",
        "AVG(value) AS a, MIN(value) AS b, COUNT(value) AS c",
        "STDDEV(value) AS a, VAR_POP(value) AS b, COUNT(DISTINCT value) AS c",
        "SUM(value) FILTER (WHERE id % 2 = 0) AS a, COUNT_IF(value > 50) AS b, BOOL_OR(value > 90) AS c",
        "SORT_ARRAY(COLLECT_SET(value)) AS a, 1 + 2 * SUM(value) AS b, BIT_XOR(id) AS c",
    )
    windows = (
        ("RANGE 10 seconds SLIDE 2 seconds ARRIVAL arrived DRATIO 5%", "window(ts, '10 seconds', '2 seconds')"),
        ("RANGE 10 seconds SLIDE 10 seconds ARRIVAL arrived DRATIO 5%", "window(ts, '10 seconds')"),
        ("RANGE 9 seconds SLIDE 4 seconds ARRIVAL arrived DRATIO 5%", "window(ts, '9 seconds', '4 seconds')"),
        ("RANGE 100 SLIDE 25 WATTR id DRATIO 5%", None),
    )
    shapes = (
        ("", "", ""),
        ("sensor, ", "WHERE value > 3", "GROUP BY sensor"),
        ("n.place, ", "JOIN names AS n ON n.sensor = s.sensor", "GROUP BY n.place"),
    )
    found = []
    for (clause, window), (key, tail, group), chosen in itertools.product(windows, shapes, aggregates):
        key_s = key.replace("sensor", "s.sensor") if key == "sensor, " else key
        group_s = group.replace("BY sensor", "BY s.sensor")
        text = f"SELECT {key_s}{chosen} FROM {stream} [{clause} LATE PANES] AS s {tail} {group_s}"
        if window is None:
            rows = f"(SELECT *, explode(sequence(id - id % 25 - 75, id - id % 25, 25)) AS w FROM {stream}_rows)"
            edges = "w AS window_start, w + 100 AS window_end"
        else:
            rows = f"(SELECT *, {window} AS w FROM {stream}_rows)"
            edges = "w.start AS window_start, w.end AS window_end"
        keyed = f"GROUP BY w{', ' + group_s.removeprefix('GROUP BY ') if group_s else ''}"
        found.append(Case(stream, text, f"SELECT {edges}, {key_s}{chosen} FROM {rows} AS s {tail} {keyed}"))
    return found


def ordered_cases(stream: str, wait_ms: float) -> list[Case]:
    """Windows per row and in tuples, keyed and not."""
    aggregates = ("MAX", "AVG", "SUM", "MIN", "STDDEV_POP")
    found = []
    for (first, second), keyed in itertools.product(itertools.pairwise(aggregates), (True, False)):
        key, group = ("sensor, ", " GROUP BY sensor") if keyed else ("", "")
        part = "PARTITION BY sensor " if keyed else ""
        over = f"OVER ({part}ORDER BY unix_micros(ts) RANGE BETWEEN 5999999 PRECEDING AND CURRENT ROW)"
        clause = "[RANGE 6 seconds ARRIVAL arrived]"
        found.append(
            Case(
                stream,
                f"SELECT {key}{first}(value) AS a, {second}(value) AS b, COUNT(*) AS n FROM {stream} {clause}{group}",
                f"SELECT ts - INTERVAL 6 SECONDS AS window_start, ts AS window_end, {key}"
                f"{first}(value) {over} AS a, {second}(value) {over} AS b, COUNT(*) {over} AS n FROM {stream}_rows",
                True,
                wait_ms,
            )
        )
        per = " PER sensor" if keyed else ""
        rows = f"OVER ({part}ORDER BY id ROWS BETWEEN 19 PRECEDING AND CURRENT ROW)"
        number = f"ROW_NUMBER() OVER ({part}ORDER BY id)"
        clause = f"[RANGE 20 tuples SLIDE 5 tuples WATTR id{per}]"
        found.append(
            Case(
                stream,
                f"SELECT {key}{first}(value) AS a, {second}(value) AS b FROM {stream} {clause}{group}",
                f"SELECT window_start, window_end, {key}a, b FROM (SELECT MIN(id) {rows} AS window_start, "
                f"id AS window_end, {key}{first}(value) {rows} AS a, {second}(value) {rows} AS b, {number} AS i "
                f"FROM {stream}_rows) WHERE i % 5 = 0",
                True,
                40.0,
            )
        )
    return found


def generated(rows: int) -> pd.DataFrame:
    """Four sensors, a minute, lateness exponential with a mean of two seconds."""
    rng = np.random.default_rng(11)
    arrived = np.sort(rng.uniform(0, 60, rows))
    made = pd.DataFrame({"id": np.arange(rows), "sensor": [f"s{i % 4}" for i in range(rows)]})
    made["value"] = rng.integers(0, 100, rows).astype(float)
    made["ts"] = pd.to_datetime(1_700_000_000 + arrived - rng.exponential(2.0, rows), unit="s").round("us")
    made["arrived"] = pd.to_datetime(1_700_000_000 + arrived, unit="s").round("us")
    # The numbers come out of order too, by up to some twenty places.
    made["id"] = np.argsort(np.argsort(np.arange(rows) + rng.uniform(0, 20, rows), kind="stable"), kind="stable")
    return made


def recorded(rows: int) -> pd.DataFrame:
    """A stretch of the phones of ooo_umts."""
    data = pd.read_parquet(REAL).head(rows)
    return pd.DataFrame(
        {
            "id": data["seq"].astype("int64"),
            "sensor": data["device"],
            "value": data["http_bytes"].astype(float),
            "ts": data["event_ts"],
            "arrived": data["arrival_ts"],
        }
    )


def write_files(data: pd.DataFrame, folder: Path) -> list[Path]:
    """The rows in arrival order, as files that wait to be put into the stream's folder."""
    waiting = folder / "waiting"
    waiting.mkdir(parents=True)
    paths = []
    for number, part in enumerate(np.array_split(np.arange(len(data)), FILES)):
        path = waiting / f"{number}.parquet"
        data.iloc[part].to_parquet(path, index=False, coerce_timestamps="us", allow_truncated_timestamps=True)
        paths.append(path)
    return paths


def settled(query: Any) -> PromiseReport:
    """Wait until everything is committed and every heartbeat that follows has taken effect."""
    while True:
        query.processAllAvailable()
        batch = int(query.lastProgress["batchId"]) if query.lastProgress else -1
        keepers_of(str(query.id), batch, timeout_s=60)
        query.processAllAvailable()
        if not query.lastProgress or int(query.lastProgress["batchId"]) == batch:
            return sw.report(query).promises[0]


def same(left: DataFrame, right: DataFrame) -> bool:
    """The same rows, each as often; doubles to nine digits, since sums of doubles depend on their order."""

    def rows(frame: DataFrame) -> list[str]:
        def plain(value: Any) -> Any:
            return f"{value:.9g}" if isinstance(value, float) else value

        return sorted(repr([plain(value) for value in row]) for row in frame.collect())

    return rows(left) == rows(right)


def run(spark: SparkSession, case: Case, files: list[Path], root: Path, number: int) -> tuple[bool, int, int, float]:
    """Whether the streaming result is the exact one; its rows, late rows, and seconds."""
    began = time.monotonic()
    folder = root / f"case-{number}"
    inbox = folder / "in"
    inbox.mkdir(parents=True)
    schema = spark.read.parquet(str(files[0])).schema
    events = spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).parquet(str(inbox))
    name = f"{case.stream}_{number}"
    sw.stream(name, events, time="ts")
    method = {} if case.wait_ms is None else {"method": Trailing.name, "method_options": {"wait_ms": case.wait_ms}}
    text = case.text.replace(f"FROM {case.stream} ", f"FROM {name} ")
    made = sw.sql(spark, text, name=name, location=str(folder / "promise"), **method)
    query = (
        made.writeStream.format("parquet")
        .option("path", str(folder / "out"))
        .option("checkpointLocation", str(folder / "at"))
        .start()
    )
    for path in files:
        os.link(path, inbox / path.name)
        promise = settled(query)
    query.stop()
    published = spark.read.schema(made.schema).parquet(str(folder / "out"))
    assert promise.heartbeat is not None
    exact = spark.sql(case.exact)
    number_attribute = "WATTR id" in case.text
    edge = (
        str(round(promise.heartbeat.timestamp() * 1000) - NUMBER_ORIGIN)
        if number_attribute
        else f"timestamp'{promise.heartbeat}'"
    )
    closed = f"window_end {'<' if case.ordered else '<='} {edge}"
    found = published if case.ordered else sw.reconcile(published).where(closed)
    exact = exact.where(closed).select(*found.columns)
    return same(found, exact), exact.count(), promise.ledger.late, time.monotonic() - began


def main() -> None:
    """Run them all, a few at a time."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--every", type=int, default=1, help="take every n-th query only")
    parser.add_argument("--at-once", type=int, default=3, help="queries that run at the same time")
    parser.add_argument("--rows", type=int, default=900)
    options = parser.parse_args()
    spark = (
        SparkSession.builder.master("local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.sql.shuffle.partitions", "1")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.driver.memory", "2g")
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("OFF")
    with tempfile.TemporaryDirectory() as scratch:
        root = Path(scratch)
        traces = {"Generated": generated(options.rows)} | ({"Phones": recorded(options.rows)} if REAL.exists() else {})
        files = {name: write_files(data, root / name) for name, data in traces.items()}
        for name, paths in files.items():
            spark.read.parquet(*map(str, paths)).createOrReplaceTempView(f"{name}_rows")
        names = sorted({s for data in traces.values() for s in data["sensor"]})
        places = [(sensor, f"place {i % 3}") for i, sensor in enumerate(names)]
        spark.createDataFrame(places, "sensor string, place string").createOrReplaceTempView("names")
        cases = [case for name in traces for case in native_cases(name) + ordered_cases(name, WAIT_MS[name])][
            :: options.every
        ]
        wrong = 0
        with ThreadPoolExecutor(options.at_once) as pool:
            jobs = [
                pool.submit(run, spark, case, files[case.stream], root, number) for number, case in enumerate(cases)
            ]
            for number, (case, job) in enumerate(zip(cases, jobs, strict=True)):
                right, rows, late, seconds = job.result()
                wrong += not right
                verdict = "equal" if right else "DIFFERENT"
                print(f"{number + 1:3} {verdict} {rows:6} rows {late:4} late {seconds:4.0f} s  {case.text}", flush=True)
        print(f"{len(cases) - wrong} of {len(cases)} queries equal their batch")
        spark.stop()
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
