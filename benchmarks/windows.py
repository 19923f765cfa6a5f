"""Throughput of sliding windows with shared panes, of plain Spark's sliding windows, and of the ordered path.

Runs at saturation: micro-batches of a million rows or more, 100 sensors (``--keys``), ten seconds of event time each.
Rows come from a nearly free source or from files (``--source``). Queries take turns (``turns.py``); the others are
compared with the first. Processor time includes the JVM and its Python workers. Java keeps compiling for some twenty
micro-batches after a query starts, so use a warm-up that covers them (``--warm-up``).
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
import tempfile
from collections.abc import Callable
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from slackwater.spark.report import report
from slackwater.spark.runtime.catalog import stream
from slackwater.spark.windows.sql import sql
from turns import Cost, Round, SteppedQuery, take_turns

SHARDS = 16
FILE_MANAGER = "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"


def session() -> SparkSession:
    """A session with two cores and two shuffle partitions."""
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    spark = (
        SparkSession.builder.master("local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.driver.memory", "8g")  # 4 GB per core, as executors usually have
        .config("spark.sql.execution.arrow.maxBytesPerBatch", str(2**31 - 1))  # a smaller limit is checked per row
        .config("spark.python.unix.domain.socket.enabled", "true")  # cheaper per byte than TCP
        .config("spark.buffer.size", str(2**20))  # fewer calls than with Spark's 64 KB
        # Generated code must stay cached while the other queries have their turns.
        .config("spark.sql.codegen.cache.maxEntries", "5000")
        # On a local disk the default manager makes Hadoop start several processes per checkpoint file.
        .config("spark.sql.streaming.checkpointFileManagerClass", FILE_MANAGER)
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("OFF")
    return spark


START_US = 1_700_000_000_000_000
BATCH_US = 10_000_000
FILES = 2
"""Files per micro-batch: one per core."""


class Source:
    """Rows with ten seconds of event time per micro-batch; micro-batches differ only in the event time."""

    def __init__(self, spark: SparkSession, kind: str, folder: Path, batches: int, keys: int) -> None:
        self._spark, self._kind, self._folder, self._batches, self._keys = spark, kind, folder, batches, keys

    def events(self, rows: int) -> DataFrame:
        """A stream with this many rows per micro-batch."""
        raw = self._from_rate(rows) if self._kind == "rate" else self._from_files(rows)
        start_us = F.col("start_us")
        return raw.select(
            F.timestamp_micros(start_us + F.col("within_us")).alias("ts"),
            F.timestamp_micros(start_us + BATCH_US).alias("arrived"),
            "sensor",
            "value",
        )

    def _from_rate(self, rows: int) -> DataFrame:
        """Spark's rate source, which costs nearly nothing."""
        raw = (
            self._spark.readStream.format("rate-micro-batch")
            .option("rowsPerBatch", rows)
            .option("numPartitions", FILES)
            .option("advanceMillisPerBatch", BATCH_US // 1000)
            .option("startTimestamp", START_US // 1000)
            .load()
        )
        return raw.select(F.unix_micros("timestamp").alias("start_us"), *_columns("value", self._keys))

    def _from_files(self, rows: int) -> DataFrame:
        """Files. Each micro-batch reads its own copies of the same two files; their names give the event time."""
        folder = self._folder / f"{self._kind}-{rows}"
        if not folder.exists():
            original = folder.with_suffix(".original")
            columns = _columns("id", self._keys)
            self._spark.range(0, rows, 1, FILES).select(*columns).write.format(self._kind).save(str(original))
            files = sorted(original.glob(f"part-*.{self._kind}")) + sorted(original.glob(f"part-*.{self._kind}.*"))
            folder.mkdir()
            for batch in range(self._batches):
                for number, file in enumerate(files):
                    copy = folder / f"{batch:06d}-{number}.{self._kind}"
                    shutil.copyfile(file, copy)
                    os.utime(copy, (batch, batch))  # Spark reads the oldest files first
        schema = "within_us bigint, sensor bigint, value bigint"
        stream = self._spark.readStream.schema(schema).option("maxFilesPerTrigger", FILES).format(self._kind)
        number_in_name = F.substring("_metadata.file_name", 1, 6).cast("bigint")
        return stream.load(str(folder)).select("*", (F.lit(START_US) + number_in_name * BATCH_US).alias("start_us"))


def _columns(number: str, keys: int) -> list[Column]:
    """The columns of a row, computed from its number."""
    return [
        F.pmod(F.xxhash64(number), F.lit(BATCH_US)).alias("within_us"),
        F.pmod(number, F.lit(keys)).alias("sensor"),
        F.pmod(F.xxhash64(number, F.lit(1)), F.lit(1000)).alias("value"),
    ]


def ours(spark: SparkSession, events: DataFrame, range_s: int, slide_s: int) -> DataFrame:
    """The window as a Slackwater query with panes; the wait is constant, as in the plain query."""
    stream("Sensors", events, event_time="ts")
    return sql(
        spark,
        "SELECT sensor, COUNT(*) AS n, SUM(value) AS total, MAX(value) AS peak "
        f"FROM Sensors [RANGE {range_s} seconds SLIDE {slide_s} seconds ARRIVAL arrived SLACK 10 seconds] "
        "GROUP BY sensor",
    )


def in_order(spark: SparkSession, events: DataFrame, range_s: int) -> DataFrame:
    """One result per row, computed by the window operator in ``SHARDS`` shards."""
    stream("Sensors", events, event_time="ts")
    return sql(
        spark,
        f"SELECT sensor, MAX(value) AS peak, AVG(value) AS mean FROM Sensors [RANGE {range_s} seconds ARRIVAL arrived "
        "SLACK 10 seconds] GROUP BY sensor",
        shards=SHARDS,
    )


def plain(events: DataFrame, range_s: int, slide_s: int) -> DataFrame:
    """The same window with plain Spark."""
    return (
        events.withWatermark("ts", "10 seconds")
        .groupBy(F.window("ts", f"{range_s} seconds", f"{slide_s} seconds"), "sensor")
        .agg(F.count("*"), F.sum("value"), F.max("value"))
    )


def main() -> None:
    """Print the cost per micro-batch of every query, and the ratios to the first."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--queries", nargs="+", choices=list(QUERIES), default=["panes-60", "per-row"])
    parser.add_argument("--rows", type=int, default=1_000_000, help="rows per micro-batch")
    parser.add_argument("--keys", type=int, default=100, help="number of sensors")
    parser.add_argument("--batches", type=int, default=4, help="micro-batches per turn")
    parser.add_argument("--warm-up", type=int, default=8, help="rounds that do not count")
    parser.add_argument("--rounds", type=int, default=12, help="rounds that count")
    parser.add_argument("--source", choices=["rate", "json", "parquet"], default="rate", help="source of the rows")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        rounds = run(options, Path(folder))
    first = options.queries[0]
    costs = {name: Cost.median([costs[name] for costs in rounds]) for name in options.queries}
    relative = {name: Cost.median([costs[name].over(costs[first]) for costs in rounds]) for name in options.queries}
    if options.json:
        print(
            json.dumps({name: {"seconds": asdict(costs[name]), "relative": asdict(relative[name])} for name in costs})
        )
        return
    print(
        f"medians of {len(rounds)} rounds, {options.batches} micro-batches per turn, {options.rows:,} rows in each, "
        f"{options.keys:,} sensors, source: {options.source}"
    )
    for name, cost in costs.items():
        row = relative[name]
        rates = f"{options.rows / cost.clock:11,.0f} rows/s, {options.rows / cost.processor:11,.0f} rows/s of processor"
        print(
            f"{name:<9} {rates}; cost per row relative to {first}: {row.clock:.2f} wall clock, {row.processor:.2f} "
            f"processor; throughput {1 / row.clock:.2f}× and {1 / row.processor:.2f}×"
        )
    for words, field in (("wall clock", "clock"), ("processor time", "processor")):
        row_costs = [getattr(cost, field) for cost in relative.values()]
        print(f"most expensive row over cheapest, {words}: {max(row_costs) / min(row_costs) - 1:.0%} more")


def run(options: argparse.Namespace, folder: Path) -> list[Round]:
    """Start every query and measure them in turns."""
    spark = session()
    batches = 1 + options.batches * (options.warm_up + options.rounds)  # the first batch runs before the turns
    source = Source(spark, options.source, folder, batches, options.keys)
    queries = {
        name: SteppedQuery(QUERIES[name](spark, source.events(options.rows)), folder / name) for name in options.queries
    }

    def print_round(number: int, costs: Round) -> None:
        if not options.json:
            which = f"round {number}" if number > 0 else "warm-up"
            turns = ", ".join(f"{name} {cost.clock:.2f} s ({cost.processor:.2f} s)" for name, cost in costs.items())
            print(f"{which}, clock (processor time) per micro-batch: {turns}", flush=True)

    gateway: Any = spark.sparkContext._gateway
    rounds = take_turns(queries, gateway.proc.pid, options.batches, options.warm_up, options.rounds, print_round)
    for name, stepped in queries.items():
        if name != "plain-60":
            assert not report(stepped.query).ledger.late, "late rows are left out and would make the query cheaper"
        stepped.query.stop()
    spark.stop()
    return rounds


QUERIES: dict[str, Callable[[SparkSession, DataFrame], DataFrame]] = {
    **{f"panes-{n}": partial(ours, range_s=n, slide_s=1) for n in (1, 6, 60, 600)},
    "plain-60": lambda _, events: plain(events, 60, 1),
    "per-row": partial(in_order, range_s=10),
}


if __name__ == "__main__":
    main()
