"""Throughput of sliding windows with shared panes against plain Spark, and of the ordered path against them.

In one run, at saturation: micro-batches of a million rows or more, 100 sensors (``--keys``), ten seconds of event time
each; nothing is written.
Rows come from a source that costs next to nothing, or as they come to most people, out of files (``--source``). The
clock is Spark's own: the execution time of the micro-batches after the first few. Processor time is that of the JVM and
of its Python workers. There is a round before that does not count, so that no query pays for compilation; then all
queries take turns. Machines get faster and slower by half within minutes, so queries are compared inside a round, and
the median of the rounds counts. Java goes on compiling for some twenty micro-batches after a query's first start, by up
to half a second of processor time each: a path that costs more a row shows what it costs after those (``--warm-up``),
and a ratio over few micro-batches is mostly noise (``--batches``, ``--rounds``).
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import sys
import tempfile
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from processor_time import processor_time_s
from slackwater.spark.query import sql
from slackwater.spark.report import report
from slackwater.spark.streams import stream

MILLION = 1_000_000
WARM_UP = 4  # until the heartbeat follows and windows come out of every micro-batch
SHARDS = 16
PANES, PLAIN, ORDERED = "panes 60/1", "plain 60/1", "per row 10"
FILE_MANAGER = "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"


def session() -> SparkSession:
    """Two cores, two shuffle partitions."""
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    spark = (
        SparkSession.builder.master("local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.driver.memory", "8g")  # 4 GB a core, as executors have; less, and every state is a huge object
        .config("spark.sql.execution.arrow.maxBytesPerBatch", str(2**31 - 1))  # else measured after every row
        .config("spark.python.unix.domain.socket.enabled", "true")  # cheaper a byte than a connection
        .config("spark.buffer.size", str(2**20))  # the same: fewer calls a byte than with Spark's 64 KB
        # A query whose turn comes again finds its code compiled, and Java warm, however many had theirs in between.
        .config("spark.sql.codegen.cache.maxEntries", "5000")
        # On a local disk Spark's usual one has Hadoop start several processes for each checkpoint file.
        .config("spark.sql.streaming.checkpointFileManagerClass", FILE_MANAGER)
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("OFF")
    return spark


START_US = 1_700_000_000_000_000
BATCH_US = 10_000_000
FILES = 2  # a micro-batch, one for each core


class Source:
    """Where rows come from: ten seconds of event time a micro-batch, always the same rows but for their time."""

    def __init__(self, spark: SparkSession, kind: str, folder: Path, batches: int, keys: int) -> None:
        self._spark, self._kind, self._folder, self._batches, self._keys = spark, kind, folder, batches, keys

    def events(self, rows: int) -> DataFrame:
        """So many rows a micro-batch."""
        raw = self._made(rows) if self._kind == "rate" else self._read(rows)
        start_us = F.col("start_us")
        return raw.select(
            F.timestamp_micros(start_us + F.col("within_us")).alias("ts"),
            F.timestamp_micros(start_us + BATCH_US).alias("arrived"),
            "sensor",
            "value",
        )

    def _made(self, rows: int) -> DataFrame:
        """Nearly free."""
        raw = (
            self._spark.readStream.format("rate-micro-batch")
            .option("rowsPerBatch", rows)
            .option("numPartitions", FILES)
            .option("advanceMillisPerBatch", BATCH_US // 1000)
            .option("startTimestamp", START_US // 1000)
            .load()
        )
        return raw.select(F.unix_micros("timestamp").alias("start_us"), *_columns("value", self._keys))

    def _read(self, rows: int) -> DataFrame:
        """Out of files, whose names say when: each micro-batch has its own copies of the same two files."""
        folder = self._folder / f"{self._kind}-{rows}"
        if not folder.exists():
            made = folder.with_suffix(".made")
            columns = _columns("id", self._keys)
            self._spark.range(0, rows, 1, FILES).select(*columns).write.format(self._kind).save(str(made))
            files = sorted(made.glob(f"part-*.{self._kind}")) + sorted(made.glob(f"part-*.{self._kind}.*"))
            folder.mkdir()
            for batch in range(self._batches):
                for number, file in enumerate(files):
                    copy = folder / f"{batch:06d}-{number}.{self._kind}"
                    shutil.copyfile(file, copy)
                    os.utime(copy, (batch, batch))  # Spark takes the oldest files first
        schema = "within_us bigint, sensor bigint, value bigint"
        stream = self._spark.readStream.schema(schema).option("maxFilesPerTrigger", FILES).format(self._kind)
        batch = F.substring("_metadata.file_name", 1, 6).cast("bigint")
        return stream.load(str(folder)).select("*", (F.lit(START_US) + batch * BATCH_US).alias("start_us"))


def _columns(number: str, keys: int) -> list[Column]:
    """What a row has, made from its number."""
    return [
        F.pmod(F.xxhash64(number), F.lit(BATCH_US)).alias("within_us"),
        F.pmod(number, F.lit(keys)).alias("sensor"),
        F.pmod(F.xxhash64(number, F.lit(1)), F.lit(1000)).alias("value"),
    ]


def ours(spark: SparkSession, events: DataFrame, range_s: int, slide_s: int) -> DataFrame:
    """The window as a query with panes; the wait is a constant, as in the plain query."""
    stream("Sensors", events, time="ts")
    return sql(
        spark,
        "SELECT sensor, COUNT(*) AS n, SUM(value) AS total, MAX(value) AS peak "
        f"FROM Sensors [RANGE {range_s} seconds SLIDE {slide_s} seconds ARRIVAL arrived SLACK 10 seconds] "
        "GROUP BY sensor",
    )


def in_order(spark: SparkSession, events: DataFrame, range_s: int) -> DataFrame:
    """One result per row, by the window operator in sixteen shards."""
    stream("Sensors", events, time="ts")
    return sql(
        spark,
        f"SELECT sensor, MAX(value) AS peak, AVG(value) AS mean FROM Sensors [RANGE {range_s} seconds ARRIVAL arrived "
        "SLACK 10 seconds] GROUP BY sensor",
        shards=SHARDS,
    )


def plain(events: DataFrame, range_s: int, slide_s: int) -> DataFrame:
    """The window as Spark has it."""
    return (
        events.withWatermark("ts", "10 seconds")
        .groupBy(F.window("ts", f"{range_s} seconds", f"{slide_s} seconds"), "sensor")
        .agg(F.count("*"), F.sum("value"), F.max("value"))
    )


@dataclass(frozen=True)
class Rate:
    """Rows a second of the clock (by the median batch), and rows a second of processor time; or ratios of these.

    On a machine that does other things too, only the second can be compared.
    """

    wall: float
    processor: float

    @classmethod
    def median(cls, rates: list[Rate]) -> Rate:
        """Of several rounds."""
        return cls(statistics.median(r.wall for r in rates), statistics.median(r.processor for r in rates))


Turns = dict[int, Rate]
"""What a query had in each round."""


def measure(df: DataFrame, batches: int, warm_up: int = WARM_UP) -> Rate:
    """The rate over the micro-batches after the warm-up."""
    pid = df.sparkSession.sparkContext._gateway.proc.pid
    processor_s: dict[int, float] = {}
    with tempfile.TemporaryDirectory() as folder:
        query = (
            df.writeStream.format("noop")
            .outputMode("append")
            .option("checkpointLocation", str(Path(folder) / "c"))
            .start()
        )
        try:
            done = 0
            while done < warm_up + batches and query.isActive:
                query.awaitTermination(0.05)
                done = len([p for p in query.recentProgress if p["numInputRows"] > 1])
                if done not in processor_s:
                    processor_s[done] = processor_time_s(pid)
            if query.exception() is not None:
                raise RuntimeError(str(query.exception()))
            if any(name.startswith("slackwater:") for name in query.lastProgress["observedMetrics"]):
                assert not report(query).ledger.late, "rows that are left out cost less"
            progress = [p for p in query.recentProgress if p["numInputRows"] > 1][warm_up : warm_up + batches]
        finally:
            query.stop()
    seconds = statistics.median(p["durationMs"]["triggerExecution"] for p in progress) / 1000
    # A batch may end between two looks; what is counted is rows between looks that saw a batch end.
    seen = sorted(count for count in processor_s if count >= warm_up)
    used_s = processor_s[seen[-1]] - processor_s[seen[0]]
    rows = statistics.median(p["numInputRows"] for p in progress)
    return Rate(rows / seconds, rows * (seen[-1] - seen[0]) / used_s)


def main() -> None:
    """Print rates and ratios; ``--json`` for machines."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=MILLION, help="rows a micro-batch")
    parser.add_argument("--keys", type=int, default=100, help="sensors")
    parser.add_argument("--batches", type=int, default=3, help="measured micro-batches of a query in a round")
    parser.add_argument("--warm-up", type=int, default=WARM_UP, help="micro-batches of a query that do not count")
    parser.add_argument("--plain", action=argparse.BooleanOptionalAction, default=True, help="plain Spark too")
    parser.add_argument("--rounds", type=int, default=3, help="how often each query has its turn")
    parser.add_argument("--ordered", action=argparse.BooleanOptionalAction, default=True, help="the ordered path too")
    parser.add_argument("--source", choices=["rate", "json", "parquet"], default="rate", help="where rows come from")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        compare(options, Path(folder))


def compare(options: argparse.Namespace, folder: Path) -> None:
    """Every query in its turn."""
    spark = session()
    spare = 10  # micro-batches that begin while the last ones are looked at
    batches = max(options.warm_up, WARM_UP) + options.batches + spare
    source = Source(spark, options.source, folder, batches, options.keys)
    makers: dict[str, Callable[[int], DataFrame]] = {PANES: lambda rows: ours(spark, source.events(rows), 60, 1)}
    if options.plain:
        makers[PLAIN] = lambda rows: plain(source.events(rows), 60, 1)
    if options.ordered:
        makers[ORDERED] = lambda rows: in_order(spark, source.events(rows), 10)
    for name, make in makers.items():
        if name == PLAIN:
            measure(make(options.rows // 20), 1, warm_up=1)
        else:
            measure(make(min(options.rows, MILLION)), options.batches)
    rounds: dict[str, Turns] = {name: {} for name in makers}
    for number in range(options.rounds):
        names = list(makers)
        for name in names[number % len(names) :] + names[: number % len(names)]:
            # plain Spark is so much slower that one round of it, in two micro-batches, takes as long as all else
            if name != PLAIN or number == options.rounds - 1:
                batches, warm_up = (options.batches, options.warm_up) if name != PLAIN else (2, 1)
                rounds[name][number] = measure(makers[name](options.rows), batches, warm_up)
                if not options.json:
                    print(f"round {number + 1}  {_line(name, rounds[name][number])}", flush=True)
    spark.stop()
    found = {name: Rate.median(list(turns.values())) for name, turns in rounds.items()}
    if options.json:
        print(json.dumps({name: asdict(rate) for name, rate in found.items()}))
        return
    print(
        f"median of {options.rounds} rounds, {options.rows:,} rows a micro-batch of {options.keys:,} sensors, "
        f"source: {options.source}"
    )
    for name, rate in found.items():
        print(_line(name, rate))
    compared = []
    if options.plain:
        compared.append(("RANGE 60 s SLIDE 1 s over plain Spark", PANES, PLAIN))
    if options.ordered:
        compared.append((f"ordered path, {SHARDS} shards, over the native path", ORDERED, PANES))
    for words, one, other in compared:
        ratio = times(rounds[one], rounds[other])
        print(f"{words}: {ratio.wall:.2f} times by the clock, {ratio.processor:.2f} times by processor time")


def times(one: Turns, other: Turns) -> Rate:
    """How many times as fast one is as the other: inside each round that both had, the median of the rounds."""
    both = [(one[number], other[number]) for number in one if number in other]
    return Rate.median([Rate(a.wall / b.wall, a.processor / b.processor) for a, b in both])


def _line(name: str, rate: Rate) -> str:
    return f"{name:<12} {rate.wall:12,.0f} rows/s {rate.processor:12,.0f} rows per second of processor time"


if __name__ == "__main__":
    main()
