"""Cost of the one-line promise: the same aggregation under ``withWatermark`` and under ``with_drop_ratio``.

The query: tumbling windows of 10 s, 100 keys, count/sum/max, RocksDB, over files of JSON lines and of Parquet, one file
per micro-batch, or over a Kafka topic of JSON values (``--sources kafka``), of a broker that is given (``--broker
HOST:PORT``, with ``--package`` for the connector) or else started (`make kafka` downloads it). Plain query and promised
queries run in one Spark session over the same rows and take turns of a few micro-batches (``turns.py``). A turn ends
when the listener has dealt with its last micro-batch. A promised turn and the plain turn of the same round are a pair.
The first rounds warm Java up and do not count. The result is the median over the pairs of the ratio of the processor
time of all processes: Java, the driver's Python and Python workers.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from rich.console import Console
from rich.table import Table

import slackwater as sw
from slackwater.spark.command.session import local_session
from slackwater.spark.runtime.listener import wait_for_batch
from turns import Cost, Round, SteppedQuery, take_turns

SCHEMA = "ts timestamp, arrived timestamp, key int, value double, note string"
PLAIN = "withWatermark"
QUERIES: dict[str, Callable[[DataFrame], DataFrame]] = {
    PLAIN: lambda events: events.withWatermark("ts", "10 seconds"),
    "with_drop_ratio": lambda events: sw.with_drop_ratio(events, "ts", 0.01),
    "with_drop_ratio, arrival=": lambda events: sw.with_drop_ratio(events, "ts", 0.01, arrival="arrived"),
}
SESSION = {
    "spark.driver.memory": "4g",
    "spark.sql.streaming.stateStore.providerClass": (
        "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
    ),
}
_ROWS_PER_TURN = 200_000
_MOST_BATCHES_PER_TURN = 10


def make_rows(spark: SparkSession, rows: int, files: int) -> DataFrame:
    """Rows in arrival order, a file per second from now on, exponential lateness of 500 ms, about 150 bytes as JSON.

    The trigger's clock moves on by a second per micro-batch, so rows arrive when they are read.
    """
    arrived_us = time.time_ns() // 1000 + (F.col("id") * (1e6 * files / rows)).cast("long")
    return spark.range(0, rows, 1, files).select(
        F.timestamp_micros(arrived_us + (F.log(F.rand(7)) * 500_000).cast("long")).alias("ts"),
        F.timestamp_micros(arrived_us).alias("arrived"),
        (F.col("id") % 100).cast("int").alias("key"),
        F.rand(1).alias("value"),
        F.lit("a payload has a few more fields than one reads").alias("note"),
    )


def write_topic(rows: DataFrame, broker: str, topic: str) -> None:
    """Write the rows to a topic of one partition, in order."""
    values = rows.coalesce(1).select(F.to_json(F.struct("*")).alias("value"))
    values.write.format("kafka").option("kafka.bootstrap.servers", broker).option("topic", topic).save()


def read_topic(spark: SparkSession, broker: str, topic: str, rows: int) -> DataFrame:
    """The rows of a topic, ``rows`` in each micro-batch."""
    messages = (
        spark.readStream.format("kafka")
        .option("kafka.bootstrap.servers", broker)
        .option("subscribe", topic)
        .option("startingOffsets", "earliest")
        .option("maxOffsetsPerTrigger", rows)
        .load()
    )
    return messages.select(F.from_json(F.col("value").cast("string"), SCHEMA).alias("row")).select("row.*")


class MeasuredQuery(SteppedQuery):
    """The aggregation over a stream, run a few micro-batches at a time."""

    def __init__(self, events: DataFrame, checkpoint: Path, promised: bool) -> None:
        self._promised = promised
        counted = events.groupBy(F.window("ts", "10 seconds"), "key").agg(
            F.count("*").alias("n"), F.sum("value").alias("sum"), F.max("value").alias("max")
        )
        super().__init__(counted, checkpoint)

    def take_turn(self, batches: int) -> None:
        super().take_turn(batches)
        # The listener hears of the plain query too: what that costs must not fall into the next query's turn.
        wait_for_batch(str(self.query.id), self._last_batch())

    def stop(self, rows: int) -> None:
        """Stop, after a check that the ledger accounts for every row."""
        if self._promised:
            (promise,) = sw.report(self.query).completeness
            assert promise.ledger.input == rows, f"{promise.ledger} after {rows} rows"
        self.query.stop()


@dataclass(frozen=True, slots=True)
class Comparison:
    """All pairs of one source, one size of micro-batch and one promised query."""

    source: str
    rows_per_batch: int
    query: str
    processor_time_ratio: float
    processor_time_ratios: list[float]
    clock_ratio: float
    clock_ratios: list[float]
    plain_processor_us_per_row: float
    promised_processor_us_per_row: float

    @classmethod
    def of(cls, source: str, rows: int, query: str, rounds: list[Round]) -> Comparison:
        """A promised query against the plain one, round by round."""
        pairs: list[tuple[Cost, Cost]] = [(costs[PLAIN], costs[query]) for costs in rounds]
        ratios = [promised.over(plain) for plain, promised in pairs]
        median = Cost.median(ratios)
        plain, promised = (Cost.median([pair[side] for pair in pairs]).processor * 1e6 / rows for side in (0, 1))
        processor, clock = [ratio.processor for ratio in ratios], [ratio.clock for ratio in ratios]
        return cls(source, rows, query, median.processor, processor, median.clock, clock, plain, promised)


def compare(
    spark: SparkSession, source: str, rows: int, warm_up: int, rounds: int, broker: str | None
) -> list[Comparison]:
    """Run the queries in turns over files of ``rows`` rows each, or over a topic."""
    batches = max(1, min(_MOST_BATCHES_PER_TURN, _ROWS_PER_TURN // rows))
    files = 1 + batches * (warm_up + rounds)
    console = Console(stderr=True)
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        with console.status(f"writing {files * rows:,} rows of {source} …"):
            made, topic = make_rows(spark, files * rows, files), f"overhead-{time.time_ns()}"
            if broker is None:
                getattr(made.write, source)(str(folder / "rows"))
            else:
                write_topic(made, broker, topic)
        queries: dict[str, SteppedQuery] = {}
        for number, (name, promise) in enumerate(QUERIES.items()):
            if broker is None:
                reader = spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1)
                read = getattr(reader, source)(str(folder / "rows"))
            else:
                read = read_topic(spark, broker, topic, rows)
            queries[name] = MeasuredQuery(promise(read), folder / f"checkpoint-{number}", promised=name != PLAIN)

        def show(number: int, costs: Round) -> None:
            texts = (f"{name} {cost.processor * 1000:.0f} ms" for name, cost in costs.items())
            console.print(f"{source}, {rows:,} rows, round {number}: {'; '.join(texts)}")

        found = take_turns(queries, os.getpid(), batches, warm_up, rounds, show)
        for query in queries.values():
            query.stop(files * rows)  # type: ignore[attr-defined]
    return [Comparison.of(source, rows, name, found) for name in QUERIES if name != PLAIN]


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--sources", default="json,parquet", help="json, parquet, kafka, comma-separated")
    arguments.add_argument("--rows", default="10000,200000,1000000", help="rows per micro-batch, comma-separated")
    arguments.add_argument("--rounds", type=int, default=12, help="rounds, each with one turn per query")
    arguments.add_argument("--warm-up", type=int, default=8, help="rounds before, which do not count")
    arguments.add_argument("--broker", help="HOST:PORT of a Kafka broker that creates topics; default: start one")
    arguments.add_argument("--package", action="append", default=[], help="jar or Maven package of Spark's connector")
    arguments.add_argument("--json", action="store_true")
    options = arguments.parse_args()
    results: list[Comparison] = []
    sources = options.sources.split(",")
    with broker_of(options.broker, options.package, "kafka" in sources) as (broker, packages):
        for source in sources:
            for rows in map(int, options.rows.split(",")):
                with local_session("overhead", packages, **SESSION) as spark:
                    at = broker if source == "kafka" else None
                    results += compare(spark, source, rows, options.warm_up, options.rounds, at)
    if options.json:
        print(json.dumps([asdict(result) for result in results], indent=2))
        return
    Console(width=120).print(as_table(results))


@contextmanager
def broker_of(address: str | None, packages: list[str], needed: bool) -> Iterator[tuple[str | None, list[str]]]:
    """The broker that was given, else one that runs meanwhile; and the packages of Spark's connector."""
    if address is not None or not needed:
        yield address, packages
        return
    from tests.helpers.kafka import Broker, connector_jars

    with tempfile.TemporaryDirectory() as temporary:
        broker = Broker(Path(temporary) / "broker", creates_topics=True)
        broker.start()
        try:
            yield broker.address, packages or connector_jars()
        finally:
            broker.stop()


def as_table(results: list[Comparison]) -> Table:
    """One line per comparison, with every pair."""
    table = Table(title="processor time under the promise / under withWatermark")
    for column in ("source", "rows per batch", "query", "median", "clock", "µs per row", "pairs"):
        table.add_column(column, justify="right" if column in ("rows per batch", "median", "clock") else "left")
    for result in results:
        cells: list[Any] = [
            result.source,
            f"{result.rows_per_batch:,}",
            result.query,
            f"{result.processor_time_ratio:.3f}",
            f"{result.clock_ratio:.3f}",
            f"{result.promised_processor_us_per_row:.2f} / {result.plain_processor_us_per_row:.2f}",
            " ".join(f"{ratio:.2f}" for ratio in result.processor_time_ratios),
        ]
        table.add_row(*cells)
    return table


if __name__ == "__main__":
    main()
