"""``--sink kafka://…``: results as messages of a Kafka topic."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from slackwater.errors import InvalidOption
from slackwater.names import quoted
from slackwater.spark.command.kafka_address import KafkaAddress
from slackwater.spark.command.kafka_connector import require_connector
from slackwater.spark.command.result_rows import Emit, Show

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.readwriter import DataStreamWriter

_OWN = frozenset({"key"})


@dataclass(frozen=True, slots=True)
class KafkaSink:
    """Every result is a message: its value is the row as JSON, its key the column ``key``, if there is one.

    A micro-batch that is repeated after a crash is written again: a result may be there twice, but none is missing.
    """

    address: KafkaAddress
    key: str | None
    options: dict[str, str]

    @classmethod
    def parse(cls, option: str, text: str) -> KafkaSink:
        """A sink from the text of ``option``.

        >>> KafkaSink.parse("--sink", "kafka://localhost:9092/peaks?key=sensor").key
        'sensor'
        """
        address = KafkaAddress.parse(option, text)
        if len(address.topics) > 1:
            raise address.refusal("wrong-address", "results go to one topic", "name one")
        return cls(address, address.parameters.get("key"), address.spark_options(frozenset({"includeHeaders"}), _OWN))

    @property
    def folder(self) -> None:
        """There is none."""

    def check(self, checkpoint: Path | None, option: str) -> None:
        """Raise if no broker can be reached."""
        self.address.check_reachable()

    def stream_writer(self, result: DataFrame) -> DataStreamWriter:
        """Spark's own Kafka sink."""
        writer = self._messages(result).writeStream.format("kafka").option("topic", self.address.topics[0])
        return writer.options(**self.options)

    def write(self, frame: DataFrame, batch: int, emit: Emit, as_json: bool, show: Show) -> None:
        """Write the rows of one micro-batch."""
        writer = self._messages(frame).write.format("kafka").option("topic", self.address.topics[0])
        writer.options(**self.options).save()

    def _messages(self, frame: DataFrame) -> DataFrame:
        from pyspark.sql import functions as F

        require_connector(frame.sparkSession, f"{self.address.option} {self.address.place}")
        value = F.to_json(F.struct(*(F.col(quoted(name)) for name in frame.columns))).alias("value")
        if self.key is None:
            return frame.select(value)
        if self.key not in frame.columns:
            raise InvalidOption(
                "no-such-column",
                f"{self.address.option} {self.address.place}: key={self.key} is not a column of the results",
                f"use one of: {', '.join(frame.columns)}",
            )
        return frame.select(F.col(quoted(self.key)).cast("string").alias("key"), value)
