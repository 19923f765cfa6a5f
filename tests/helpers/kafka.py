"""A Kafka broker of the test's own, and clients that write to it and read from it.

The jars come from ``scripts/kafka.sh``, which `make test-all` calls.
"""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
import uuid
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewPartitions, NewTopic
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from tests.helpers.harness import ORIGIN_S, timestamp

JARS = Path(sys.prefix, "kafka")
TIMEOUT_S = 60.0


def jars_are_there() -> bool:
    """Whether ``scripts/kafka.sh`` has downloaded broker and connector."""
    return (JARS / "ready").exists()


def connector_jars() -> list[str]:
    """The jars of Spark's Kafka connector."""
    return [str(jar) for jar in sorted((JARS / "connector").glob("*.jar"))]


def connector_settings() -> dict[str, str]:
    """Settings of a Spark session with the connector, if it was downloaded. They copy no files, as spark.jars does."""
    return {"spark.driver.extraClassPath": os.pathsep.join(connector_jars())} if jars_are_there() else {}


@dataclass(frozen=True)
class Message:
    """A message to write; without ``value`` a tombstone. Without ``at_ms`` the client stamps it with its own time."""

    value: str | None
    partition: int = 0
    at_ms: int | None = None
    key: str | None = None


@dataclass
class Broker:
    """One node in KRaft mode with its files in ``folder``, on free ports of the loopback interface."""

    folder: Path
    creates_topics: bool = False
    port: int = field(default_factory=lambda: _free_port())
    _controller_port: int = field(default_factory=lambda: _free_port())
    _process: subprocess.Popen[bytes] | None = None

    @property
    def address(self) -> str:
        """``host:port`` for clients."""
        return f"127.0.0.1:{self.port}"

    def start(self) -> None:
        """Start the broker, on a new log or on the one it had; return when it answers."""
        properties = self.folder / "broker.properties"
        if not properties.exists():
            self.folder.mkdir(parents=True)
            properties.write_text("".join(f"{key}={value}\n" for key, value in self._properties().items()))
            cluster = str(uuid.uuid4())
            self._java("kafka.tools.StorageTool", "format", "-t", cluster, "-c", str(properties)).wait(TIMEOUT_S)
        self._process = self._java("kafka.Kafka", str(properties))
        self.admin().list_topics(timeout=TIMEOUT_S)

    def stop(self) -> None:
        """End the broker as an operator does; its files stay."""
        process, self._process = self._process, None
        if process is not None:
            process.terminate()
            process.wait(TIMEOUT_S)

    def admin(self) -> AdminClient:
        """A client for administration; keep a reference to it until its results are there."""
        return AdminClient({"bootstrap.servers": self.address, "log_level": 0})

    def create(self, topic: str, partitions: int = 1, **config: str) -> str:
        """Create a topic; ``config`` names its settings with underscores. Returns its name."""
        settings = {name.replace("_", "."): value for name, value in config.items()}
        admin = self.admin()
        (made,) = admin.create_topics([NewTopic(topic, partitions, 1, config=settings)]).values()
        made.result(TIMEOUT_S)
        return topic

    def add_partitions(self, topic: str, total: int) -> None:
        """Let a topic have ``total`` partitions."""
        admin = self.admin()
        (made,) = admin.create_partitions([NewPartitions(topic, total)]).values()
        made.result(TIMEOUT_S)

    def delete_before(self, topic: str, partition: int, offset: int) -> None:
        """Delete the messages of a partition below ``offset``, as retention does."""
        admin = self.admin()
        (done,) = admin.delete_records([TopicPartition(topic, partition, offset)]).values()
        done.result(TIMEOUT_S)

    def send(self, topic: str, messages: Iterable[Message], *, transaction: bool | None = None) -> None:
        """Write messages; with ``transaction`` in one transaction, which is committed (True) or aborted (False)."""
        config: dict[str, Any] = {"bootstrap.servers": self.address, "linger.ms": 20, "log_level": 0}
        if transaction is not None:
            config["transactional.id"] = uuid.uuid4().hex
        producer = Producer(config)
        if transaction is not None:
            producer.init_transactions(TIMEOUT_S)
            producer.begin_transaction()
        for message in messages:
            options: dict[str, Any] = {} if message.at_ms is None else {"timestamp": message.at_ms}
            value = None if message.value is None else message.value.encode()
            while True:
                try:
                    producer.produce(topic, value, message.key, message.partition, **options)
                    break
                except BufferError:
                    producer.poll(1.0)
        if transaction is None:
            assert producer.flush(TIMEOUT_S) == 0
        elif transaction:
            producer.commit_transaction(TIMEOUT_S)
        else:
            producer.flush(TIMEOUT_S)  # an aborted message must be in the log to be skipped there
            producer.abort_transaction(TIMEOUT_S)

    def values(self, topic: str) -> list[Any]:
        """The JSON values of all messages of a topic."""
        consumer = Consumer({"bootstrap.servers": self.address, "group.id": uuid.uuid4().hex, "log_level": 0})
        numbers = consumer.list_topics(topic, TIMEOUT_S).topics[topic].partitions
        ends = {number: consumer.get_watermark_offsets(TopicPartition(topic, number), TIMEOUT_S) for number in numbers}
        consumer.assign([TopicPartition(topic, number, low) for number, (low, _) in ends.items()])
        left = sum(high - low for low, high in ends.values())
        found = []
        while left:
            message = consumer.poll(TIMEOUT_S)
            assert message is not None and message.error() is None
            found.append(json.loads(message.value() or b"null"))
            left -= 1
        consumer.close()
        return found

    def _properties(self) -> dict[str, str | int]:
        own = f"127.0.0.1:{self._controller_port}"
        return {
            "process.roles": "broker,controller",
            "node.id": 1,
            "controller.quorum.voters": f"1@{own}",
            "listeners": f"PLAINTEXT://{self.address},CONTROLLER://{own}",
            "advertised.listeners": f"PLAINTEXT://{self.address}",
            "controller.listener.names": "CONTROLLER",
            "log.dirs": str(self.folder / "log"),
            "auto.create.topics.enable": str(self.creates_topics).lower(),
            "offsets.topic.replication.factor": 1,
            "offsets.topic.num.partitions": 1,
            "transaction.state.log.replication.factor": 1,
            "transaction.state.log.min.isr": 1,
            "transaction.state.log.num.partitions": 1,
            "group.initial.rebalance.delay.ms": 0,
            "log.retention.ms": -1,  # the messages of tests have old time stamps
        }

    def _java(self, *arguments: str) -> subprocess.Popen[bytes]:
        home = os.environ.get("JAVA_HOME")
        java = str(Path(home, "bin", "java")) if home else shutil.which("java")
        assert java is not None
        options = ["-Xmx256m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-cp", str(JARS / "broker" / "*")]
        with (self.folder / "output.txt").open("ab") as output:
            return subprocess.Popen(
                [java, *options, *arguments], stdout=output, stderr=output, stdin=subprocess.DEVNULL, cwd=self.folder
            )


VALUE_SCHEMA = "id LONG, ts TIMESTAMP"


def value_of(number: int, ts: str) -> str:
    """The value of a message with a number and an event time."""
    return json.dumps({"id": number, "ts": ts})


def messages(
    arrivals_s: np.ndarray[Any, Any], late_s: float, partition: int, first: int, seed: int = 1
) -> list[Message]:
    """Messages stamped with their arrivals; their event times are ``late_s`` before them on average."""
    lateness = np.random.default_rng(seed).exponential(late_s, len(arrivals_s))
    return [
        Message(value_of(first + i, timestamp(at - late)), partition, round(1000 * (ORIGIN_S + at)))
        for i, (at, late) in enumerate(zip(arrivals_s.tolist(), lateness.tolist(), strict=True))
    ]


def spread(rows: int, begin_s: float, end_s: float) -> np.ndarray[Any, Any]:
    return np.linspace(begin_s, end_s, rows, endpoint=False)


def rows_of(messages: DataFrame) -> DataFrame:
    """The messages as rows: the columns of the value, and those of the message that say where it is."""
    value = F.from_json(F.col("value").cast("string"), VALUE_SCHEMA).alias("v")
    return messages.select(value, "topic", "partition", "offset", "timestamp").select(
        "v.*", "topic", "partition", "offset", "timestamp"
    )


def stream_of(spark: SparkSession, broker: Broker, topic: str, **options: object) -> DataFrame:
    """The rows of a topic from its earliest message on, as a stream."""
    reader = spark.readStream.format("kafka").option("kafka.bootstrap.servers", broker.address)
    reader = reader.option("subscribe", topic).option("startingOffsets", "earliest")
    return rows_of(reader.options(**{name.replace("__", "."): str(value) for name, value in options.items()}).load())


def backlog_of(spark: SparkSession, broker: Broker, topic: str, **options: object) -> DataFrame:
    """The rows of a topic, as a batch."""
    reader = spark.read.format("kafka").option("kafka.bootstrap.servers", broker.address).option("subscribe", topic)
    return rows_of(reader.options(**{name.replace("__", "."): str(value) for name, value in options.items()}).load())


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
