"""What the one-line promise costs: the same aggregation under ``withWatermark`` and under ``with_drop_ratio``.

Tumbling windows of 10 s, 100 keys, count/sum/max, RocksDB. Both run over the same rows, in turn, several times in one
run; what counts is the ratio within each pair.
"""

from __future__ import annotations

import argparse
import json
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from rich.console import Console
from rich.progress import track
from rich.table import Table

import slackwater as sw
from slackwater.spark.session import local_session

SCHEMA = "ts timestamp, arrived timestamp, key int, value double, note string"
Promise = Callable[[DataFrame], DataFrame]


def plain(events: DataFrame) -> DataFrame:
    return events.withWatermark("ts", "10 seconds")


def promised(events: DataFrame) -> DataFrame:
    return sw.with_drop_ratio(events, "ts", 0.01)


def make_rows(spark: SparkSession, rows: int, files: int) -> DataFrame:
    """Rows in arrival order, 50 000 a second until now, exponential lateness of 500 ms; some 150 bytes each as JSON."""
    start = time.time_ns() // 1000 - rows * 20
    return spark.range(0, rows, 1, files).select(
        F.timestamp_micros(start + F.col("id") * 20 + (F.log(F.rand(7)) * 500_000).cast("long")).alias("ts"),
        F.timestamp_micros(start + F.col("id") * 20).alias("arrived"),
        (F.col("id") % 100).cast("int").alias("key"),
        F.rand(1).alias("value"),
        F.lit("a payload has a few more fields than one reads").alias("note"),
    )


def time_query(events: DataFrame, warm_up: int, batches: int | None = None) -> tuple[float, list[float]]:
    """Rows per second and trigger times (ms) over the micro-batches after the warm-up."""
    counted = events.groupBy(F.window("ts", "10 seconds"), "key").agg(
        F.count("*").alias("n"), F.sum("value").alias("sum"), F.max("value").alias("max")
    )
    with tempfile.TemporaryDirectory() as checkpoint:
        query = counted.writeStream.format("noop").option("checkpointLocation", checkpoint).start()
        if batches is None:
            query.processAllAvailable()
        else:
            while query.lastProgress is None or query.lastProgress["batchId"] < batches:
                query.awaitTermination(1)
        progress = [p for p in query.recentProgress if p["numInputRows"] > 10]
        if any(key.startswith("slackwater:") for key in progress[-1]["observedMetrics"]):
            (promise,) = sw.report(query).promises
            assert promise.ledger.input >= sum(p["numInputRows"] for p in progress) - 2 * len(progress)
        query.stop()
    measured = progress[warm_up:]
    triggers = [float(p["durationMs"]["triggerExecution"]) for p in measured]
    return sum(p["numInputRows"] for p in measured) / sum(triggers) * 1000, triggers


def compare(
    label: str, read: Callable[[], DataFrame], pairs: int, warm_up: int, batches: int | None = None
) -> dict[str, Any]:
    """Both in turn, the order changing from pair to pair; a first pair warms Java up and does not count."""
    throughput: list[float] = []
    trigger: list[float] = []
    rates: dict[str, list[float]] = {"plain": [], "promised": []}
    for pair in track(range(-1, pairs), description=label, console=Console(stderr=True)):
        got: dict[str, tuple[float, list[float]]] = {}
        sides: list[tuple[str, Promise]] = [("plain", plain), ("promised", promised)]
        for name, promise in sides if pair % 2 == 0 else reversed(sides):
            got[name] = time_query(promise(read()), warm_up, batches)
        if pair < 0:
            continue
        for name, (rows_per_s, _) in got.items():
            rates[name].append(rows_per_s)
        throughput.append(got["promised"][0] / got["plain"][0])
        trigger.append(statistics.median(got["promised"][1]) / statistics.median(got["plain"][1]))
    return {
        "source": label,
        "throughput_ratio": statistics.median(throughput),
        "throughput_ratios": throughput,
        "trigger_time_ratio": statistics.median(trigger),
        "plain_rows_per_s": statistics.median(rates["plain"]),
        "promised_rows_per_s": statistics.median(rates["promised"]),
    }


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--rows", type=int, default=12_000_000)
    arguments.add_argument("--sources", default="json,parquet,rate,small", help="which of them, by comma")
    arguments.add_argument("--pairs", type=int, default=5)
    arguments.add_argument("--json", action="store_true")
    options = arguments.parse_args()
    conf = {
        "spark.driver.memory": "4g",
        "spark.sql.streaming.stateStore.providerClass": (
            "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
        ),
        "spark.sql.streaming.numRecentProgressUpdates": "1000",
    }
    with local_session("overhead", **conf) as spark, tempfile.TemporaryDirectory() as folder:
        files = 12  # four a micro-batch: a saturated stream takes its micro-batches as large as it is allowed to
        for kind in ("json", "parquet"):
            getattr(make_rows(spark, options.rows, files).write, kind)(f"{folder}/{kind}")
        make_rows(spark, 400_000, 40).write.json(f"{folder}/small")

        def from_files(kind: str, name: str, per_trigger: int) -> Callable[[], DataFrame]:
            reader = spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", per_trigger)
            return lambda: getattr(reader, kind)(str(Path(folder) / name))

        def from_rate() -> DataFrame:
            rate = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 1_000_000).load()
            return rate.select(
                F.timestamp_micros(F.unix_micros("timestamp") + (F.log(F.rand()) * 500_000).cast("long")).alias("ts"),
                F.col("timestamp").alias("arrived"),
                (F.col("value") % 100).cast("int").alias("key"),
                F.rand().alias("value"),
            )

        measurements: dict[str, Callable[[], dict[str, Any]]] = {
            "json": lambda: compare("JSON lines, saturated", from_files("json", "json", 4), options.pairs, 1),
            "parquet": lambda: compare("Parquet, saturated", from_files("parquet", "parquet", 4), options.pairs, 1),
            "rate": lambda: compare("rate source, saturated", from_rate, options.pairs, 4, batches=14),
            "small": lambda: compare("JSON, 10 000 rows a batch", from_files("json", "small", 1), options.pairs, 8),
        }
        results = [measurements[source]() for source in options.sources.split(",")]
    if options.json:
        print(json.dumps(results, indent=2))
        return
    table = Table(title="under the promise / under withWatermark (median of pairs)")
    for column in ("source", "throughput", "range", "trigger time", "plain rows/s", "promised rows/s"):
        table.add_column(column, justify="left" if column == "source" else "right")
    for result in results:
        table.add_row(
            result["source"],
            f"{result['throughput_ratio']:.3f}",
            f"{min(result['throughput_ratios']):.2f}–{max(result['throughput_ratios']):.2f}",
            f"{result['trigger_time_ratio']:.2f}",
            f"{result['plain_rows_per_s']:,.0f}",
            f"{result['promised_rows_per_s']:,.0f}",
        )
    Console().print(table)


if __name__ == "__main__":
    main()
