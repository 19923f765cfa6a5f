"""Shedding behind a limit of the source, on Spark: load, shed, delay, and what the report names.

    python benchmarks/shedding_limits.py
    python benchmarks/shedding_limits.py --case tight --seconds 60 --json
    python benchmarks/shedding_limits.py --case kafka --case kafka-tight --broker HOST:PORT --package CONNECTOR

A row waits two milliseconds, so two cores process a thousand rows per second. Files of a hundred rows arrive at a
constant rate, after a calm start, in a folder that is read with ``maxFilesPerTrigger``; a row arrives with its
file. The last two cases read a source that hands over a limited number of rows and reports its latest offset, as
Kafka does.

- ``none``: no limit.
- ``wide``: the limit is above what a micro-batch reads, so only the load decides.
- ``near``: at the limit, micro-batches must be shorter than the target allows.
- ``tight``: even the shortest micro-batches read slower than rows arrive.
- ``lag``, ``lag-tight``: as ``near`` and ``tight``, for the source that reports its lag.
- ``kafka``, ``kafka-near``, ``kafka-tight``: a topic of four partitions without a limit, and with
  ``maxOffsetsPerTrigger`` as in ``near`` and ``tight``. They need a broker that creates topics.
- ``kafka-backlog``: as ``kafka-near``, and rows of ten seconds wait in the topic when the query starts.
"""

from __future__ import annotations

import json
import tempfile
import threading
import time
from dataclasses import asdict, dataclass
from pathlib import Path

import click
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from rich.console import Console
from rich.table import Table

import slackwater as sw
from replay_source import replay
from shedding_query import expensive, start, warm_up
from slackwater.sim.shedding import rows_from_rates
from slackwater.spark.command.session import local_session

ROWS_PER_FILE = 100
LOAD_PER_S = 2000
CALM_S = 8.0
CALM_RATIO = 0.1
"""The load at the start, for a few seconds, as a share of the load."""
TRIGGER = "500 milliseconds"


@dataclass(frozen=True)
class Case:
    """A source, its rows per second, and its limit in files or rows; None is no limit."""

    source: str
    load_per_s: int
    limit: int | None


CASES = {
    "none": Case("files", LOAD_PER_S, None),
    "wide": Case("files", LOAD_PER_S, 100),
    "near": Case("files", LOAD_PER_S, 30),
    "tight": Case("files", LOAD_PER_S, 3),
    "lag": Case("lag", LOAD_PER_S, 3000),
    "lag-tight": Case("lag", LOAD_PER_S, 300),
}
KAFKA_CASES = {
    "kafka": Case("kafka", LOAD_PER_S, None),
    "kafka-near": Case("kafka", LOAD_PER_S, 3000),
    "kafka-tight": Case("kafka", LOAD_PER_S, 300),
    "kafka-backlog": Case("kafka", LOAD_PER_S, 3000),
}
PARTITIONS = 4
BACKLOG_S = 10.0


@dataclass
class Figures:
    """One case. Delays are from arrival to commit."""

    case: str
    limit: str
    load_per_s: int
    shed_ratio: float
    mean_delay_s: float
    last_delay_s: float
    backlog_rows: float | None
    waiting_rows: int
    named: str | None
    batches: int


def calm_then_load(passed_s: float) -> float:
    """The seconds at full load that bring as many rows as the time since the start did."""
    return CALM_RATIO * min(passed_s, CALM_S) + max(passed_s - CALM_S, 0.0)


class Files(threading.Thread):
    """Writes files of rows: some at first, then at a constant rate."""

    def __init__(self, folder: Path, per_s: float, seconds: float) -> None:
        super().__init__(daemon=True)
        self.folder, self.per_s, self.seconds = folder, per_s, seconds
        self.written = 0
        folder.mkdir(parents=True)

    def write(self) -> None:
        """Write one file, visible at once and whole."""
        ids = np.arange(self.written * ROWS_PER_FILE, (self.written + 1) * ROWS_PER_FILE)
        table = pa.table({"id": ids, "value": (ids * 7919 % 1000).astype(np.float64)})
        hidden = self.folder / f".{self.written}"
        pq.write_table(table, hidden)
        hidden.rename(self.folder / f"{self.written:08d}.parquet")
        self.written += 1

    def run(self) -> None:
        started = time.monotonic()
        while (passed := time.monotonic() - started) < self.seconds:
            if self.written < self.per_s * calm_then_load(passed):
                self.write()
            else:
                time.sleep(0.01)


class Messages(threading.Thread):
    """Writes rows to a topic: some at first, then at a constant rate. A message is stamped by the client."""

    def __init__(self, broker: str, topic: str, per_s: float, seconds: float, backlog: int) -> None:
        from confluent_kafka import Producer
        from confluent_kafka.admin import AdminClient
        from confluent_kafka.cimpl import NewTopic

        super().__init__(daemon=True)
        self.topic, self.per_s, self.seconds = topic, per_s, seconds
        self.written = 0
        admin = AdminClient({"bootstrap.servers": broker, "log_level": 0})
        (made,) = admin.create_topics([NewTopic(topic, PARTITIONS, 1)]).values()
        made.result(60.0)
        self._producer = Producer({"bootstrap.servers": broker, "linger.ms": 20, "log_level": 0})
        self._backlog = backlog
        self.write(backlog)
        self._producer.flush(60.0)

    def write(self, until: int) -> None:
        """Write the rows up to this number."""
        for number in range(self.written, until):
            value = json.dumps({"id": number, "value": float(number * 7919 % 1000)})
            self._producer.produce(self.topic, value, partition=number % PARTITIONS)
        self._producer.poll(0.0)
        self.written = max(self.written, until)

    def run(self) -> None:
        started = time.monotonic()
        while (passed := time.monotonic() - started) < self.seconds:
            self.write(self._backlog + int(self.per_s * calm_then_load(passed)))
            time.sleep(0.01)
        self._producer.flush(60.0)


def topic_stream(spark: SparkSession, broker: str, topic: str, limit: int | None) -> DataFrame:
    """The rows of a topic as a stream; a row arrives with its message's time."""
    reader = spark.readStream.format("kafka").option("kafka.bootstrap.servers", broker).option("subscribe", topic)
    if limit is not None:
        reader = reader.option("maxOffsetsPerTrigger", limit)
    row = F.from_json(F.col("value").cast("string"), "id bigint, value double").alias("row")
    return reader.option("startingOffsets", "earliest").load().select(row, F.col("timestamp").alias("arrived")) \
        .select("row.*", "arrived")  # fmt: skip


def file_stream(spark: SparkSession, folder: Path, limit: int | None) -> DataFrame:
    """The files of a folder as a stream; a row arrives with its file."""
    reader = spark.readStream.schema("id bigint, value double")
    if limit is not None:
        reader = reader.option("maxFilesPerTrigger", limit)
    return reader.parquet(str(folder)).select("*", F.col("_metadata.file_modification_time").alias("arrived"))


def run(
    spark: SparkSession, name: str, case: Case, target_s: float, seconds: float, folder: Path, broker: str | None
) -> Figures:
    """Run one case for ``seconds``; the figures are those at its end."""
    writer: Files | Messages | None = None
    if case.source == "files":
        writer = Files(folder / "in", case.load_per_s / ROWS_PER_FILE, seconds)
        writer.write()
        events = file_stream(spark, writer.folder, case.limit)
        writer.start()
    elif case.source == "kafka":
        assert broker is not None
        backlog = round(BACKLOG_S * case.load_per_s) if name.endswith("backlog") else 0
        writer = Messages(broker, f"{name}-{time.time_ns()}", case.load_per_s, seconds, backlog)
        events = topic_stream(spark, broker, writer.topic, case.limit)
        writer.start()
    else:
        rates = np.full(round(seconds), float(case.load_per_s))
        rates[: round(CALM_S)] *= CALM_RATIO
        np.save(folder / "arrivals.npy", rows_from_rates(rates))
        begin_us = int((time.time() + 1.0) * 1e6)
        events = replay(spark, folder / "arrivals.npy", begin_us, rows_per_batch=case.limit, report_latest=True)
    promised = sw.with_max_delay(events, target_s, arrival="arrived", name=f"limit-{name}")
    began = time.monotonic()
    query = start(promised, expensive(0, 0.0), folder, True, TRIGGER)
    query.awaitTermination(seconds + 1.0)  # type: ignore[arg-type]  # Spark takes fractions of a second
    (delay,) = sw.report(query).timeliness
    if writer is None:
        arrived = round(case.load_per_s * calm_then_load(min(time.monotonic() - began, seconds)))
    else:
        arrived = writer.written * (ROWS_PER_FILE if isinstance(writer, Files) else 1)
    batches = sum(p["numInputRows"] > 0 for p in query.recentProgress)
    query.stop()
    units = {"files": "maxFilesPerTrigger", "kafka": "maxOffsetsPerTrigger", "lag": "rows per micro-batch"}
    unit = units[case.source]
    limit = "none" if case.limit is None else f"{unit} {case.limit}"
    return Figures(
        name,
        limit,
        case.load_per_s,
        delay.loss_ratio,
        delay.mean_delay_s or 0.0,
        delay.delay_s or 0.0,
        delay.backlog_rows,
        arrived - delay.ledger.input,
        None if delay.limit is None else delay.limit.partition(" of ")[0],
        batches,
    )


@click.command()
@click.option(
    "--case",
    "names",
    multiple=True,
    type=click.Choice([*CASES, *KAFKA_CASES]),
    default=list(CASES),
    show_default=True,
)
@click.option("--broker", help="HOST:PORT of a Kafka broker, for the cases with Kafka.")
@click.option("--package", "packages", multiple=True, help="Jar or Maven package of Spark's Kafka connector.")
@click.option("--target", "target_s", default=3.0, show_default=True, help="The delay to keep, in seconds.")
@click.option("--seconds", default=30, show_default=True, help="Length of a run.")
@click.option("--warm-up", "warm_up_s", default=20.0, show_default=True, help="Length of the warm-up in seconds.")
@click.option("--json", "as_json", is_flag=True, help="Print the figures as JSON.")
def main(
    names: tuple[str, ...],
    broker: str | None,
    packages: tuple[str, ...],
    target_s: float,
    seconds: int,
    warm_up_s: float,
    as_json: bool,
) -> None:
    """Overload a query behind limits of its source."""
    if broker is None and any(name in KAFKA_CASES for name in names):
        raise click.UsageError("the cases with Kafka need --broker and --package")
    found = []
    with local_session("slackwater-bench-limits", packages) as spark, tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        warm_up(spark, 0, warm_up_s, folder)
        for name in names:
            (folder / name).mkdir()
            case = {**CASES, **KAFKA_CASES}[name]
            found.append(run(spark, name, case, target_s, float(seconds), folder / name, broker))
    if as_json:
        click.echo(json.dumps([asdict(one) for one in found], indent=2))
        return
    table = Table(title=f"a target of {target_s:g} s, {seconds} s each")
    for column in (
        "case",
        "limit",
        "load",
        "shed",
        "mean delay",
        "last delay",
        "backlog",
        "unread",
        "the report names",
    ):
        table.add_column(column, justify="right")
    for one in found:
        table.add_row(
            one.case,
            one.limit,
            f"{one.load_per_s}/s",
            f"{one.shed_ratio:.1%}",
            f"{one.mean_delay_s:.1f} s",
            f"{one.last_delay_s:.1f} s",
            "unknown" if one.backlog_rows is None else f"{one.backlog_rows:,.0f}",
            f"{one.waiting_rows:,}",
            one.named or "–",
        )
    Console(width=140).print(table)


if __name__ == "__main__":
    main()
