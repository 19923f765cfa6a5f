"""Cost of the one-line promise: the same aggregation under ``withWatermark`` and under ``with_drop_ratio``.

The query: tumbling windows of 10 s, 100 keys, count/sum/max, RocksDB. Both queries run in one Spark session over the
same rows and take turns, so that changes in the speed of the machine affect both alike. A turn begins after the turn
before has finished, including the promise's decision. The first turn of a query does not count. The result is the
median ratio within a pair of turns. Processor time per row covers Spark and the driver's Python; it is the better
figure on a machine that does other work.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from rich.console import Console
from rich.progress import track
from rich.table import Table

import slackwater as sw
from processor_time import processor_time_s
from slackwater.spark.command.session import local_session

_SETTLE_S = 0.3
SCHEMA = "ts timestamp, arrived timestamp, key int, value double, note string"


def plain(events: DataFrame) -> DataFrame:
    return events.withWatermark("ts", "10 seconds")


def promised(events: DataFrame) -> DataFrame:
    return sw.with_drop_ratio(events, "ts", 0.01)


PROMISES: dict[str, Callable[[DataFrame], DataFrame]] = {"plain": plain, "promised": promised}


def make_rows(spark: SparkSession, rows: int, files: int) -> DataFrame:
    """Rows in arrival order: 50 000 per second until now, exponential lateness of 500 ms, about 150 bytes as JSON."""
    start = time.time_ns() // 1000 - rows * 20
    return spark.range(0, rows, 1, files).select(
        F.timestamp_micros(start + F.col("id") * 20 + (F.log(F.rand(7)) * 500_000).cast("long")).alias("ts"),
        F.timestamp_micros(start + F.col("id") * 20).alias("arrived"),
        (F.col("id") % 100).cast("int").alias("key"),
        F.rand(1).alias("value"),
        F.lit("a payload has a few more fields than one reads").alias("note"),
    )


@dataclass(frozen=True, slots=True)
class Turn:
    """Rows and cost of the micro-batches of one turn."""

    rows: int
    clock_s: float
    processor_s: float

    @classmethod
    def of(cls, progress: list[dict[str, Any]], processor_s: float) -> Turn:
        """A turn from Spark's progress reports and the processor time."""
        clock_ms = sum(p["durationMs"]["triggerExecution"] for p in progress)
        return cls(sum(p["numInputRows"] for p in progress), clock_ms / 1000, processor_s)

    @property
    def rows_per_s(self) -> float:
        return self.rows / self.clock_s

    @property
    def processor_us_per_row(self) -> float:
        return 1e6 * self.processor_s / self.rows


Pair = tuple[Turn, Turn]
"""A turn of the plain query and a turn of the promised query."""


class MeasuredQuery:
    """One of the two queries."""

    def __init__(self, events: DataFrame, folder: Path) -> None:
        counted = events.groupBy(F.window("ts", "10 seconds"), "key").agg(
            F.count("*").alias("n"), F.sum("value").alias("sum"), F.max("value").alias("max")
        )
        checkpoint = str(folder / "checkpoint")
        self.query = counted.writeStream.format("noop").option("checkpointLocation", checkpoint).start()

    def progress(self) -> list[dict[str, Any]]:
        """The micro-batches with events; heartbeats count as input rows too, so small batches are left out."""
        return [p for p in self.query.recentProgress if p["numInputRows"] > 10]

    def finish_turn(self) -> Turn:
        """Process all available rows."""
        before, processor_s = len(self.progress()), processor_time_s(os.getpid())
        self.query.processAllAvailable()
        if self._promised():
            sw.report(self.query)  # waits for the promise's decision
        time.sleep(_SETTLE_S)
        return Turn.of(self.progress()[before:], processor_time_s(os.getpid()) - processor_s)

    def run_until(self, batches: int) -> None:
        """Wait for this many micro-batches."""
        while len(self.progress()) < batches:
            self.query.awaitTermination(0.05)  # type: ignore[arg-type]  # Spark takes fractions of a second

    def stop(self) -> None:
        """Stop, after a check that the ledger accounts for every row."""
        progress = self.progress()
        if self._promised():
            (promise,) = sw.report(self.query).completeness
            assert promise.ledger.input >= sum(p["numInputRows"] for p in progress) - 2 * len(progress)
        self.query.stop()

    def _promised(self) -> bool:
        return any(key.startswith("slackwater:") for key in self.progress()[-1]["observedMetrics"])


def take_turns(
    read: Callable[[str], DataFrame], files: list[Path], per_turn: int, turns: int, warm_up: int
) -> list[Pair]:
    """Run both queries in turns of ``per_turn`` files; turns before ``warm_up`` do not count."""
    pairs = []
    with tempfile.TemporaryDirectory(dir=files[0].parent.parent) as temporary:
        folder = Path(temporary)
        queries: dict[str, MeasuredQuery] = {}
        for turn in range(turns):
            measured = {}
            order = ["plain", "promised"] if turn % 2 == 0 else ["promised", "plain"]
            for name in order:
                add_files(files[turn * per_turn : (turn + 1) * per_turn], folder / name, turn)
                if turn == 0:
                    events = PROMISES[name](read(f"{folder / name}/*"))
                    queries[name] = MeasuredQuery(events, folder / f"state-{name}")
                measured[name] = queries[name].finish_turn()
            if turn >= warm_up:
                pairs.append((measured["plain"], measured["promised"]))
        for query in queries.values():
            query.stop()
    return pairs


def add_files(files: list[Path], folder: Path, turn: int) -> None:
    """Add the files to the source's folder, all at once."""
    hidden = folder / f".{turn}"
    hidden.mkdir(parents=True)
    for file in files:
        os.link(file, hidden / file.name)
    hidden.rename(folder / str(turn))


def run_alone(read: Callable[[], DataFrame], batches: int, warm_up: int) -> list[Pair]:
    """Run both queries one after the other, for a source that never pauses."""
    measured = {}
    for name, promise in PROMISES.items():
        with tempfile.TemporaryDirectory() as folder:
            query = MeasuredQuery(promise(read()), Path(folder))
            query.run_until(warm_up)
            before, processor_s = len(query.progress()), processor_time_s(os.getpid())
            query.run_until(batches)
            measured[name] = Turn.of(query.progress()[before:], processor_time_s(os.getpid()) - processor_s)
            query.stop()
    return [(measured["plain"], measured["promised"])]


def compare(label: str, measure: Callable[[], list[Pair]], rounds: int) -> dict[str, Any]:
    """Measure ``rounds`` times with new queries, after one round that warms Java up."""
    pairs: list[Pair] = []
    for number in track(range(rounds + 1), description=label, console=Console(stderr=True)):
        measured = measure()
        pairs += measured if number else []
    ratios = [promised.rows_per_s / plain.rows_per_s for plain, promised in pairs]
    processor = [promised.processor_us_per_row / plain.processor_us_per_row for plain, promised in pairs]
    return {
        "source": label,
        "throughput_ratio": statistics.median(ratios),
        "throughput_ratios": ratios,
        "trigger_time_ratio": statistics.median(1 / ratio for ratio in ratios),
        "processor_time_ratio": statistics.median(processor),
        "processor_time_ratios": processor,
        "plain_rows_per_s": statistics.median(plain.rows_per_s for plain, _ in pairs),
        "promised_rows_per_s": statistics.median(promised.rows_per_s for _, promised in pairs),
    }


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--sources", default="json,parquet,rate,small", help="sources to measure, comma-separated")
    arguments.add_argument("--rounds", type=int, default=4, help="rounds, each with new queries")
    arguments.add_argument("--turns", type=int, default=6, help="turns per query; the first does not count")
    arguments.add_argument("--json", action="store_true")
    options = arguments.parse_args()
    conf = {
        "spark.driver.memory": "4g",
        "spark.sql.streaming.stateStore.providerClass": (
            "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
        ),
        "spark.sql.streaming.numRecentProgressUpdates": "1000",
        "spark.sql.streaming.pollingDelay": "200ms",  # the waiting query must not keep a core busy
    }
    with local_session("overhead", **conf) as spark, tempfile.TemporaryDirectory() as folder:

        def files(kind: str, count: int, rows: int) -> list[Path]:
            rows_folder = Path(folder) / f"{kind}-{rows}"
            if not rows_folder.exists():
                with Console(stderr=True).status(f"writing {count * rows:,} rows of {kind} …"):
                    getattr(make_rows(spark, count * rows, count).write, kind)(str(rows_folder))
            return sorted(rows_folder.glob("part-*"))

        def saturated(kind: str) -> list[Pair]:
            # a saturated stream fills its micro-batches up to the limit: eight files of a million rows
            reader = spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 8)
            large_files = files(kind, 8 * options.turns, 1_000_000)
            return take_turns(getattr(reader, kind), large_files, 8, options.turns, warm_up=1)

        def small() -> list[Pair]:
            reader = spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1)
            return take_turns(reader.json, files("json", 10 * options.turns, 10_000), 10, options.turns, warm_up=1)

        def from_rate() -> DataFrame:
            rate = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 1_000_000).load()
            return rate.select(
                F.timestamp_micros(F.unix_micros("timestamp") + (F.log(F.rand()) * 500_000).cast("long")).alias("ts"),
                F.col("timestamp").alias("arrived"),
                (F.col("value") % 100).cast("int").alias("key"),
                F.rand().alias("value"),
            )

        measurements: dict[str, Callable[[], dict[str, Any]]] = {
            "json": lambda: compare("JSON lines, saturated", lambda: saturated("json"), options.rounds),
            "parquet": lambda: compare("Parquet, saturated", lambda: saturated("parquet"), options.rounds),
            "rate": lambda: compare("rate source, saturated", lambda: run_alone(from_rate, 14, 4), options.rounds),
            "small": lambda: compare("JSON, 10 000 rows per batch", small, options.rounds),
        }
        results = [measurements[source]() for source in options.sources.split(",")]
    if options.json:
        print(json.dumps(results, indent=2))
        return
    table = Table(title="under the promise / under withWatermark (median of pairs)")
    columns = ("source", "throughput", "range", "trigger time", "processor time", "plain rows/s", "promised rows/s")
    for column in columns:
        table.add_column(column, justify="left" if column == "source" else "right")
    for result in results:
        table.add_row(
            result["source"],
            f"{result['throughput_ratio']:.3f}",
            f"{min(result['throughput_ratios']):.2f}–{max(result['throughput_ratios']):.2f}",
            f"{result['trigger_time_ratio']:.2f}",
            f"{result['processor_time_ratio']:.3f}",
            f"{result['plain_rows_per_s']:,.0f}",
            f"{result['promised_rows_per_s']:,.0f}",
        )
    Console().print(table)


if __name__ == "__main__":
    main()
