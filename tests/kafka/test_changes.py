"""What happens to a topic while a promise reads it, each thing alone and all together."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import slackwater as sw
from tests.helpers.harness import ORIGIN_S, collected, promise_of, settle, start, timestamp, values
from tests.helpers.kafka import Broker, Message, messages, spread, stream_of, value_of
from tests.helpers.usages import usage

pytestmark = [pytest.mark.spark, pytest.mark.full]
CHANGES = ("added", "emptied", "slow", "idle", "tombstones", "malformed", "aborted", "restarted")
QUERY = """SELECT COUNT(*) AS n, SUM(id) AS total FROM Changing
[RANGE 10 seconds SLIDE 10 seconds ARRIVAL timestamp SOURCE partition DRATIO 5% LATE PANES]"""
STEPS, CHANGED, STEP_S = 9, range(3, 6), 20
"""Each step lasts so many seconds; in some of the steps the topic changes."""


@dataclass
class Topic:
    """A topic of two partitions that gets rows step by step, and changes meanwhile."""

    broker: Broker
    name: str
    changes: tuple[str, ...]
    sent: list[dict[str, Any]] = field(default_factory=list)
    invalid: int = 0
    kept_back: list[Message] = field(default_factory=list)

    def step(self, number: int) -> None:
        changed = number in CHANGED
        if number == CHANGED.start:
            self._change_at_once()
        for partition in (0, 1, 2):
            if partition == 2 and not ("added" in self.changes and number >= CHANGED.start):
                continue
            made = self._rows(number, partition)
            if partition == 1 and changed and "idle" in self.changes:
                continue
            if partition == 0 and "slow" in self.changes:
                self.kept_back += made
                ready = len(self.kept_back) // 2 if changed else len(self.kept_back)
                made, self.kept_back = self.kept_back[:ready], self.kept_back[ready:]
            self._send(made)
        if changed:
            self._send_what_is_no_row(number)

    def _rows(self, number: int, partition: int) -> list[Message]:
        arrivals = spread(60, STEP_S * number, STEP_S * (number + 1))
        return messages(arrivals, 0.5, partition, 1000 * (10 * partition + number), seed=partition)

    def _send(self, made: Iterable[Message]) -> None:
        made = list(made)
        self.broker.send(self.name, made)
        self.sent += [{"value": message.value} for message in made]

    def _change_at_once(self) -> None:
        if "added" in self.changes:
            self.broker.add_partitions(self.name, 3)
        if "emptied" in self.changes:
            self.broker.delete_before(self.name, 0, 60 * CHANGED.start)
        if "restarted" in self.changes:
            self.broker.stop()
            self.broker.start()

    def _send_what_is_no_row(self, number: int) -> None:
        at_ms = 1000 * (ORIGIN_S + STEP_S * (number + 1))
        texts: dict[str, list[str | None]] = {
            "tombstones": [None],
            "malformed": ["no row", "[1]", "", '{"id": 7, "ts": "soon"}', '{"id": 8, "ts": '],
        }
        for change, found in texts.items():
            if change in self.changes:
                self.broker.send(self.name, [Message(text, part, at_ms) for text in found for part in (0, 1)])
                self.invalid += 2 * len(found)
        if "aborted" in self.changes:
            self.broker.send(self.name, [Message(value_of(9, timestamp(0)), 0, at_ms)], transaction=False)
            self.broker.send(self.name, [Message("no row", 1, at_ms)], transaction=True)
            self.invalid += 1


def exact(spark: SparkSession, topic: Topic) -> DataFrame:
    """The windows of all rows that were sent, as a batch job computes them."""
    values = spark.createDataFrame(topic.sent, "value STRING")
    rows = values.select(F.from_json("value", "id LONG, ts TIMESTAMP").alias("r")).select("r.*")
    counted = rows.groupBy(F.window("ts", "10 seconds").alias("w"))
    return counted.agg(F.count("*").alias("n"), F.sum("id").alias("total")).selectExpr(
        "w.start AS window_start", "w.end AS window_end", "n", "total"
    )


@pytest.mark.parametrize("changes", [*((change,) for change in CHANGES), CHANGES], ids=[*CHANGES, "together"])
@usage(
    "Kafka: partitions added, emptied, slow or idle, tombstones, values that are no rows, transactions, a restarted "
    "broker, each alone and all together",
    "right: the ledger has every row that Spark reads, and results with their late panes equal a batch job's",
)
def test_every_row_is_counted_and_windows_equal_batch(
    changes: tuple[str, ...], spark: SparkSession, broker: Broker, tmp_path: Path
) -> None:
    name = "changes-" + (changes[0] if len(changes) == 1 else "together")
    topic = Topic(broker, broker.create(name, 2), changes)
    options = {"kafka__isolation__level": "read_committed", "kafka__metadata__max__age__ms": 1000}
    events = stream_of(spark, broker, name, maxOffsetsPerTrigger=100, **options)
    sw.stream("Changing", events, event_time="ts")
    query = start(sw.sql(spark, QUERY, name=name, location=str(tmp_path / "slackwater")), tmp_path)
    for number in range(STEPS):
        topic.step(number)
        settle(query)
    promise = promise_of(query)
    query.stop()

    ledger = promise.ledger
    assert ledger.exact, ledger.why
    assert (ledger.input, ledger.invalid) == (len(topic.sent) + topic.invalid, topic.invalid)
    published = collected(spark, tmp_path)
    on_time = sw.on_time(published)
    assert on_time.count() == on_time.select("window_end").distinct().count() > STEPS
    newest = on_time.agg(F.max("window_end")).first()
    assert newest is not None
    closed = F.col("window_end") <= F.lit(newest[0])
    assert values(sw.reconcile(published).where(closed).select("window_end", "n", "total")) == values(
        exact(spark, topic).where(closed).select("window_end", "n", "total")
    )
    assert ledger.drop_ratio <= 0.05
