"""``--source kafka://…``: the messages of Kafka topics as rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from slackwater.errors import InvalidOption
from slackwater.names import quoted
from slackwater.plan import Stream
from slackwater.spark.command.columns import spark_schema, stream_of_text
from slackwater.spark.command.kafka_address import KafkaAddress
from slackwater.spark.command.kafka_connector import require_connector

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

METADATA = {
    "key": "STRING",
    "topic": "STRING",
    "partition": "INT",
    "offset": "BIGINT",
    "timestamp": "TIMESTAMP",
}
"""The columns of every message beside those of its value."""
_FORMATS = ("json", "csv")
_OWN = frozenset({"format", "schema", "prefix"})
_SPARK = frozenset(
    {
        *("startingOffsets", "startingTimestamp", "startingOffsetsByTimestamp", "startingOffsetsByTimestampStrategy"),
        *("maxOffsetsPerTrigger", "minOffsetsPerTrigger", "maxTriggerDelay"),
        *("minPartitions", "maxRecordsPerPartition", "failOnDataLoss", "groupIdPrefix"),
        *("kafkaConsumer.pollTimeoutMs", "fetchOffset.numRetries", "fetchOffset.retryIntervalMs"),
    }
)
_STREAM_ONLY = frozenset({"maxOffsetsPerTrigger", "minOffsetsPerTrigger", "maxTriggerDelay"})
_PAYLOAD = "_slackwater_payload"


@dataclass(frozen=True, slots=True)
class KafkaSource:
    """Messages whose values have the columns ``schema``, in JSON or CSV, from the earliest one on.

    The columns of ``METADATA`` are added; their names begin with ``prefix``. A value that cannot be parsed and a
    tombstone are rows without values.
    """

    address: KafkaAddress
    format: str
    schema: str
    prefix: str
    options: dict[str, str]

    @classmethod
    def parse(cls, option: str, text: str, schema: str | None) -> KafkaSource:
        """A source from the text of ``option``.

        >>> KafkaSource.parse("--source", "kafka://localhost:9092/clicks?schema=ts TIMESTAMP", None).schema
        '`ts` TIMESTAMP'
        """
        address = KafkaAddress.parse(option, text)
        given = address.parameters
        options = address.spark_options(_SPARK, _OWN)
        format = given.get("format", "json")
        if format not in _FORMATS:
            raise address.refusal("unknown-format", f"unknown format={format}", f"use {' or '.join(_FORMATS)}")
        if schema is not None and given.get("schema", schema) != schema:
            raise address.refusal("schema-twice", "schema= and --schema differ", "give one of them")
        columns = given.get("schema", schema)
        if columns is None:
            raise address.refusal("no-schema", "the columns are not known", "add --schema 'ts TIMESTAMP'")
        source = cls(address, format, spark_schema(columns), given.get("prefix", ""), options)
        source._check_names()
        return source

    @property
    def event_time(self) -> str | None:
        """No column is known to be the event time."""
        return None

    @property
    def recorded(self) -> bool:
        """A topic may get more messages at any time."""
        return False

    @property
    def ends(self) -> bool:
        """A topic may get more messages at any time."""
        return False

    def check(self) -> None:
        """Raise if no broker can be reached."""
        self.address.check_reachable()

    def stream(self, name: str) -> Stream:
        """The stream under a name of the query."""
        metadata = ", ".join(f"`{self.prefix}{name}` {kind}" for name, kind in METADATA.items())
        return stream_of_text(name, f"{self.schema}, {metadata}")

    def read(self, spark: SparkSession, limit_s: float | None) -> DataFrame:
        """The topics as a streaming DataFrame, by default from their earliest messages."""
        require_connector(spark, f"{self.address.option} {self.address.place}")
        reader = spark.readStream.format("kafka").option("subscribe", ",".join(self.address.topics))
        return self._rows(reader.option("startingOffsets", "earliest").options(**self.options).load())

    def read_backlog(self, spark: SparkSession) -> DataFrame:
        """The messages that the topics have now."""
        require_connector(spark, f"{self.address.option} {self.address.place}")
        options = {name: value for name, value in self.options.items() if name not in _STREAM_ONLY}
        reader = spark.read.format("kafka").option("subscribe", ",".join(self.address.topics))
        return self._rows(reader.options(**options).load())

    def _rows(self, messages: DataFrame) -> DataFrame:
        from pyspark.errors import PySparkException
        from pyspark.sql import functions as F
        from pyspark.sql.types import StructType

        from slackwater.spark.runtime.error_summary import error_summary

        metadata = [
            (F.col(name).cast("string") if name == "key" else F.col(name)).alias(self.prefix + name)
            for name in METADATA
        ]
        try:
            StructType.fromDDL(self.schema)
        except PySparkException as error:
            problem = f"{self.address.option} {self.address.place}: the schema {self.schema!r} is not valid"
            raise InvalidOption("wrong-schema", f"{problem} ({error_summary(error)})", "write name TYPE, …") from error
        value = F.col("value").cast("string")
        parsed = F.from_json(value, self.schema) if self.format == "json" else F.from_csv(value, self.schema)
        return messages.select(parsed.alias(_PAYLOAD), *metadata).select(
            f"{_PAYLOAD}.*", *(quoted(self.prefix + name) for name in METADATA)
        )

    def _check_names(self) -> None:
        """Refuse a schema with a column of the same name as one of the message's."""
        taken = {(self.prefix + name).lower() for name in METADATA}
        for column in stream_of_text("", self.schema).columns:
            if column.lower() in taken:
                raise self.address.refusal(
                    "column-twice",
                    f"the schema has a column {column}, and every message has one",
                    "add prefix=kafka_ to give the columns of the message other names",
                )
