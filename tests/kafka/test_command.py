"""``slackwater run`` and ``slackwater advise`` on the topics of a real broker."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from slackwater.cli import advise, run
from slackwater.errors import QueryFailed
from slackwater.spark.command import session
from tests.helpers.harness import ORIGIN_S, rows, timestamp, values
from tests.helpers.kafka import Broker, Message, connector_jars
from tests.helpers.processes import environment

pytestmark = [pytest.mark.spark, pytest.mark.full]
SCHEMA = "id LONG, ts TIMESTAMP, arrived TIMESTAMP, sensor STRING, value DOUBLE"
QUERY = """SELECT sensor, COUNT(*) AS n, SUM(value) AS total
FROM Sensors [RANGE 2 seconds SLIDE 1 second WATTR ts ARRIVAL arrived DRATIO 5% LATE {}] GROUP BY sensor"""
ORIGIN_MS = 1000 * ORIGIN_S
RESULTS = "window_start TIMESTAMP, window_end TIMESTAMP, sensor STRING, n LONG, total DOUBLE"


@pytest.fixture
def shared_session(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    """Make the commands use the session of the tests."""

    @contextmanager
    def same(*_: object) -> Iterator[SparkSession]:
        yield spark

    monkeypatch.setattr(session, "local_session", same)


def fill(broker: Broker, topic: str) -> list[dict[str, Any]]:
    """Rows in arrival order, in two partitions, and beside them a tombstone and three values that are no row.

    From the 200th on, each 15th row is late by more than any heartbeat is behind. The last two rows are long after the
    others, so that every window of the others closes.
    """
    broker.create(topic, 2)
    lateness = np.random.default_rng(1).exponential(0.5, 600)
    lateness[200::15] = 60.0
    made = rows([*np.linspace(0, 100, 600), 200.0, 260.0], [*lateness, 0.0, 0.0])
    broker.send(topic, [Message(None, key="k"), Message("no row"), Message('{"id": 7, "ts": "soon"}'), Message("[1]")])
    broker.send(topic, [Message(json.dumps(row), row["id"] % 2) for row in made])
    return made


def read_topic(spark: SparkSession, broker: Broker, topic: str) -> DataFrame:
    return spark.read.format("kafka").options(**{"kafka.bootstrap.servers": broker.address, "subscribe": topic}).load()


def query_file(folder: Path, late: str) -> str:
    path = folder / "query.sql"
    path.write_text(QUERY.format(late))
    return str(path)


def parsed(spark: SparkSession, values: list[dict[str, Any]], schema: str) -> DataFrame:
    texts = spark.createDataFrame([(json.dumps(value),) for value in values], "v STRING")
    return texts.select(F.from_json("v", schema).alias("r")).select("r.*")


def exact(frame: DataFrame) -> DataFrame:
    """All windows of the rows, as a batch job computes them."""
    counted = frame.groupBy(F.window("ts", "2 seconds", "1 second").alias("w"), "sensor")
    sums = counted.agg(F.count("*").alias("n"), F.sum("value").alias("total"))
    return sums.selectExpr("w.start AS window_start", "w.end AS window_end", "sensor", "n", "total")


@pytest.mark.usefixtures("shared_session", "known_controllers")
def test_from_topic_to_topics(spark: SparkSession, broker: Broker, tmp_path: Path) -> None:
    made = fill(broker, "sensors")
    broker.create("counts")
    broker.create("late")
    at = f"kafka://{broker.address}"
    arguments = ["--schema", SCHEMA, "--sink", f"{at}/counts?key=sensor", "--late-sink", f"{at}/late", "--json"]
    arguments += ["--source", f"{at}/sensors?maxOffsetsPerTrigger=40", "--method", "test-trailing"]
    ran = CliRunner().invoke(run.command, [query_file(tmp_path, "PANES"), *arguments])
    assert ran.exit_code in (0, 1), ran.output
    (promise,) = json.loads(ran.stdout.splitlines()[-1])["completeness"]
    ledger = promise["ledger"]
    assert (ledger["input"], ledger["invalid"], ledger["exact"]) == (len(made) + 4, 4, True)
    assert ledger["late"] > 0

    on_time = parsed(spark, broker.values("counts"), RESULTS)
    both = on_time.unionByName(parsed(spark, broker.values("late"), RESULTS))
    closed = on_time.agg(F.max("window_end")).first()
    assert closed is not None
    sums = both.groupBy("window_start", "window_end", "sensor").agg(F.sum("n").alias("n"), F.sum("total").alias("t"))
    until = F.col("window_end") <= F.lit(closed[0])
    assert values(sums.where(until)) == values(exact(parsed(spark, made, SCHEMA)).where(until))


@pytest.mark.usefixtures("shared_session", "known_controllers")
def test_late_rows_say_where_they_are_in_the_topic(spark: SparkSession, broker: Broker, tmp_path: Path) -> None:
    fill(broker, "places")
    source = f"kafka://{broker.address}/places?maxOffsetsPerTrigger=40&prefix=kafka_&schema={SCHEMA}"
    late = tmp_path / "late"
    arguments = ["--source", source, "--late-sink", f"parquet:{late}", "--json", "--method", "test-trailing"]
    ran = CliRunner().invoke(run.command, [query_file(tmp_path, "ROWS"), *arguments])
    assert ran.exit_code in (0, 1), ran.output
    found = spark.read.parquet(str(late)).select("id", "kafka_topic", "kafka_partition", "kafka_offset").collect()
    there = read_topic(spark, broker, "places").selectExpr(
        "from_json(CAST(value AS STRING), 'id LONG').id", "topic", "partition", "offset"
    )
    assert found
    assert set(map(tuple, found)) <= set(map(tuple, there.collect()))


@pytest.mark.usefixtures("shared_session")
def test_advise_on_the_backlog_of_a_topic(broker: Broker) -> None:
    broker.create("backlog")
    seconds = range(700)
    lateness_ms = [1000 * (second % 7) for second in seconds]
    broker.send("backlog", [Message(None, at_ms=ORIGIN_MS)])
    broker.send(
        "backlog",
        [
            Message(json.dumps({"ts": timestamp(second - late_ms / 1000)}), at_ms=ORIGIN_MS + 1000 * second)
            for second, late_ms in zip(seconds, lateness_ms, strict=True)
        ],
    )
    topic = f"kafka://{broker.address}/backlog?maxOffsetsPerTrigger=5"
    columns = ["--schema", "ts TIMESTAMP", "--event-time", "ts", "--arrival", "timestamp", "--source", "partition"]
    ran = CliRunner().invoke(advise.command, [topic, *columns, "--drop-ratio", "20%", "--json"])
    assert ran.exit_code == 0, ran.output
    advice = json.loads(ran.stdout)
    assert (advice["rows"], advice["invalid_rows"], advice["wait_ms"]) == (701, 1, 5000.0)


def test_a_command_without_the_connector_says_how_to_get_it(broker: Broker, tmp_path: Path) -> None:
    broker.create("few")
    broker.send("few", [Message(json.dumps({"ts": timestamp(0), "sensor": "a", "value": 1.0}))])
    source = f"kafka://{broker.address}/few?schema=ts TIMESTAMP, arrived TIMESTAMP, sensor STRING, value DOUBLE"
    command = [sys.executable, "-m", "slackwater.cli.entry", "run", query_file(tmp_path, "PANES"), "--source", source]

    def run_with(*options: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*command, *options], env=environment(), capture_output=True, text=True, check=False, timeout=300
        )

    missing = run_with()
    assert missing.returncode == 2
    assert "[no-connector] --source kafka://" in missing.stderr
    assert "add --package org.apache.spark:spark-sql-kafka-0-10_2.13:" in missing.stderr
    unknown = run_with("--package", "org.example:nothing_2.13:0.0.0")
    assert unknown.returncode == 2
    assert "[no-package] Spark cannot start with --package org.example:nothing_2.13:0.0.0 (" in unknown.stderr
    found = run_with(*(part for jar in connector_jars() for part in ("--package", jar)), "--json")
    assert found.returncode == 0, found.stderr
    assert json.loads(found.stdout.splitlines()[-1])["ledger"]["input"] == 1


def test_a_topic_that_does_not_exist_is_named(broker: Broker, tmp_path: Path, shared_session: None) -> None:
    source = f"kafka://{broker.address}/nothing?schema={SCHEMA}"
    ran = CliRunner().invoke(run.command, [query_file(tmp_path, "PANES"), "--source", source])
    assert isinstance(ran.exception, QueryFailed), ran.output
    assert "nothing" in str(ran.exception) or "UnknownTopicOrPartition" in str(ran.exception)
