"""Throughput of sliding windows with shared panes against plain Spark, in one run, at saturation.

Micro-batches of millions of rows, 100 keys, ten seconds of event time each; nothing is written. The clock is Spark's
own: the execution time of the micro-batches after the first few; processor time is that of the whole JVM (Python
workers of the ordered path are not in it). Everything is run once before, so that no query pays for compilation.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from slackwater.spark.query import sql
from slackwater.spark.streams import stream

WARM_UP = 1
SHARDS = 16


def session() -> SparkSession:
    """Two cores, two shuffle partitions."""
    spark = (
        SparkSession.builder.master("local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.driver.memory", "2g")
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("OFF")
    return spark


def events(spark: SparkSession, rows: int) -> DataFrame:
    """A nearly free source: ten seconds of event time a micro-batch."""
    raw = (
        spark.readStream.format("rate-micro-batch")
        .option("rowsPerBatch", rows)
        .option("numPartitions", 2)
        .option("advanceMillisPerBatch", 10_000)
        .option("startTimestamp", 1_700_000_000_000)
        .load()
    )
    spread = F.timestamp_micros(F.unix_micros("timestamp") + F.pmod(F.xxhash64("value"), F.lit(10_000_000)))
    return raw.select(
        spread.alias("ts"),
        (F.col("timestamp") + F.expr("INTERVAL 10 SECONDS")).alias("arrived"),
        F.pmod("value", F.lit(100)).alias("sensor"),
        F.pmod(F.xxhash64("value", F.lit(1)), F.lit(1000)).alias("value"),
    )


def ours(spark: SparkSession, rows: int, range_s: int, slide_s: int) -> DataFrame:
    """The window as a query with panes; the wait is a constant, as in the plain query."""
    stream("Sensors", events(spark, rows), time="ts")
    return sql(
        spark,
        "SELECT sensor, COUNT(*) AS n, SUM(value) AS total, MAX(value) AS peak "
        f"FROM Sensors [RANGE {range_s} seconds SLIDE {slide_s} seconds ARRIVAL arrived SLACK 10 seconds] "
        "GROUP BY sensor",
    )


def in_order(spark: SparkSession, rows: int, range_s: int) -> DataFrame:
    """One result per row, by the window operator in sixteen shards."""
    stream("Sensors", events(spark, rows), time="ts")
    return sql(
        spark,
        f"SELECT sensor, MAX(value) AS peak, AVG(value) AS mean FROM Sensors [RANGE {range_s} seconds ARRIVAL arrived "
        "SLACK 10 seconds] GROUP BY sensor",
        shards=SHARDS,
    )


def plain(spark: SparkSession, rows: int, range_s: int, slide_s: int) -> DataFrame:
    """The window as Spark has it."""
    return (
        events(spark, rows)
        .withWatermark("ts", "10 seconds")
        .groupBy(F.window("ts", f"{range_s} seconds", f"{slide_s} seconds"), "sensor")
        .agg(F.count("*"), F.sum("value"), F.max("value"))
    )


@dataclass(frozen=True)
class Rate:
    """Rows a second of the clock (by the median batch), and rows a second of processor time.

    On a machine that does other things too, only the second can be compared.
    """

    wall: float
    processor: float


def processor_time_s(pid: int) -> float:
    """The processor time of a process so far (Linux)."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def measure(df: DataFrame, batches: int) -> Rate:
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
            while done < WARM_UP + batches and query.isActive:
                query.awaitTermination(0.1)
                done = len([p for p in query.recentProgress if p["numInputRows"] > 1])
                processor_s.setdefault(done, processor_time_s(pid))
            if query.exception() is not None:
                raise RuntimeError(str(query.exception()))
            progress = [p for p in query.recentProgress if p["numInputRows"] > 1][WARM_UP : WARM_UP + batches]
        finally:
            query.stop()
    seconds = statistics.median(p["durationMs"]["triggerExecution"] for p in progress) / 1000
    # A batch may end between two looks; what is counted is rows between looks that saw a batch end.
    seen = sorted(count for count in processor_s if count >= WARM_UP)
    used_s = processor_s[seen[-1]] - processor_s[seen[0]]
    rows = statistics.median(p["numInputRows"] for p in progress)
    return Rate(rows / seconds, rows * (seen[-1] - seen[0]) / used_s)


def main() -> None:
    """Print rates and ratios; ``--json`` for machines."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=4_000_000, help="rows a micro-batch")
    parser.add_argument("--ordered-rows", type=int, default=1_000_000, help="the same on the ordered path")
    parser.add_argument("--batches", type=int, default=3, help="measured micro-batches")
    parser.add_argument("--overlaps", type=int, nargs="*", default=[1, 6, 60, 600])
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    spark = session()
    found: dict[str, Rate] = {}
    for query in (plain(spark, options.rows // 4, 60, 1), ours(spark, options.rows // 4, 60, 1)):
        measure(query, 2)
    found["plain 60/1"] = measure(plain(spark, options.rows, 60, 1), options.batches)
    if not options.json:
        print(_line("plain 60/1", found["plain 60/1"]), flush=True)
    for overlap in options.overlaps:
        name = f"panes {overlap}/1"
        found[name] = measure(ours(spark, options.rows, overlap, 1), options.batches)
        if not options.json:
            print(_line(name, found[name]), flush=True)
    found["per row 10"] = measure(in_order(spark, options.ordered_rows, 10), options.batches + 2)
    if not options.json:
        print(_line("per row 10", found["per row 10"]), flush=True)
    spark.stop()
    if options.json:
        print(json.dumps({name: asdict(rate) for name, rate in found.items()}))
    elif "panes 60/1" in found:
        panes, alone = found["panes 60/1"], found["plain 60/1"]
        print(f"RANGE 60 s SLIDE 1 s: {panes.wall / alone.wall:.1f} times plain Spark by the clock, ", end="")
        print(f"{panes.processor / alone.processor:.1f} times by processor time")
        costs = [1 / found[f"panes {overlap}/1"].wall for overlap in options.overlaps]
        print(f"overlaps: the dearest row costs {max(costs) / min(costs) - 1:.0%} more than the cheapest")
        print(f"ordered path, {SHARDS} shards: {found['per row 10'].wall / panes.wall:.2f} of the native path")


def _line(name: str, rate: Rate) -> str:
    return f"{name:<12} {rate.wall:12,.0f} rows/s {rate.processor:12,.0f} rows per second of processor time"


if __name__ == "__main__":
    main()
