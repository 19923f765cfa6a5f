"""A checkpoint is resumed only by the query that wrote it, with or without the promise's folder."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

import slackwater as sw
from tests.helpers.controllers import Trailing
from tests.helpers.harness import FileStream, promise_of, rows, settle

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("known_controllers")]
TRAILING: dict[str, Any] = {"method": sw.Method(Trailing.name, wait_ms=2000.0)}


@pytest.fixture
def source(spark: SparkSession, tmp_path: Path) -> FileStream:
    made = FileStream(spark, tmp_path / "in")
    made.put(rows([1.0, 2.0], [0.0, 0.0]))
    return made


def started(result: DataFrame, folder: Path) -> StreamingQuery:
    """Start a query whose results are discarded."""
    return result.writeStream.format("noop").option("checkpointLocation", str(folder / "checkpoint")).start()


def query_of(source: FileStream, folder: Path, text: str, shards: int | None = None) -> DataFrame:
    sw.stream("Resumed", source.read_stream(), event_time="ts")
    return sw.sql(source.spark, text, name="resumed", shards=shards, location=str(folder / "promise"), **TRAILING)


ORDERED = "SELECT sensor, COUNT(*) AS n FROM Resumed [RANGE 6 seconds ARRIVAL arrived] GROUP BY sensor"
NATIVE = "SELECT sensor, COUNT(*) AS n FROM Resumed [RANGE 6 seconds SLIDE 2 seconds ARRIVAL arrived] GROUP BY sensor"


@pytest.mark.parametrize(
    ("text", "other", "shards", "message"),
    [
        (ORDERED, ORDERED, 3, "shards 2, and this one has shards 3"),
        (
            NATIVE,
            NATIVE.replace("6 s", "8 s"),
            None,
            r"\[RANGE 6 seconds SLIDE .* and this one has .*RANGE 8 seconds SLIDE",
        ),
    ],
    ids=["ordered", "native"],
)
def test_a_checkpoint_of_another_query_is_refused(
    text: str, other: str, shards: int | None, message: str, source: FileStream, tmp_path: Path
) -> None:
    query = started(query_of(source, tmp_path, text), tmp_path)
    query.processAllAvailable()
    query.stop()
    query = started(query_of(source, tmp_path, other, shards), tmp_path)
    with pytest.raises(StreamingQueryException, match=rf"\[other-query\].*{message}"):
        query.processAllAvailable()
    source.put(rows([11.0, 12.0], [0.0, 0.0], first_id=2))
    same = text.replace(" GROUP", " WHERE value >= 0 GROUP")  # a filter before the state may change
    query = started(query_of(source, tmp_path, same), tmp_path)
    query.processAllAvailable()
    query.stop()


def test_ordered_rows_of_another_query_are_refused(source: FileStream, tmp_path: Path) -> None:
    def of(shards: int) -> DataFrame:
        options: dict[str, Any] = {"name": "rows", "location": str(tmp_path / "promise"), **TRAILING}
        return sw.ordered(
            source.read_stream(),
            event_time="ts",
            drop_ratio=0,
            arrival="arrived",
            per="sensor",
            shards=shards,
            **options,
        )

    query = started(of(2), tmp_path)
    query.processAllAvailable()
    query.stop()
    query = started(of(4), tmp_path)
    with pytest.raises(StreamingQueryException, match=r"\[other-query\].* shards 2, and this one has shards 4"):
        query.processAllAvailable()


def test_a_batch_that_is_repeated_without_the_folder(spark: SparkSession, tmp_path: Path) -> None:
    """It is judged by the heartbeat in the checkpoint: no step is published twice, and the ledger is exact."""
    text = "SELECT COUNT(*) AS n FROM Resumed [LANDMARK '2023-11-14 22:13:20' SLIDE 2 seconds ARRIVAL arrived]"
    source, failing = FileStream(spark, tmp_path / "in"), [False]
    found: list[tuple[Any, ...]] = []

    def deliver(result: DataFrame, _batch: int) -> None:
        if failing[0]:
            raise RuntimeError("as if it had been killed")
        found.extend(tuple(row) for row in result.selectExpr("unix_seconds(window_end) % 100", "n").collect())

    def begin() -> StreamingQuery:
        writer = query_of(source, tmp_path, text).writeStream.foreachBatch(deliver)
        return writer.option("checkpointLocation", str(tmp_path / "checkpoint")).start()

    query = begin()
    for first in (0, 10):
        source.put(rows([first + i for i in range(10)], [0.0] * 10, first_id=first))
        settle(query)
    before = promise_of(query)
    assert before.ledger.input == 20 and found[-1] == (16, 16)
    failing[0] = True
    source.put(rows([20.0, 21.0, 22.0], [0.5, 15.0, 0.5], first_id=20))
    with pytest.raises(StreamingQueryException, match="as if it had been killed"):
        query.processAllAvailable()
    shutil.rmtree(tmp_path / "promise")
    failing[0] = False
    query = begin()
    settle(query)
    source.put(rows([30.0], [0.0], first_id=23))
    settle(query)
    after = promise_of(query)
    query.stop()
    assert [end for end, _ in found] == [2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22]
    assert found[-1] == (22, 22), "all rows but the late one"
    assert (after.ledger.on_time, after.ledger.late, after.ledger.unreported_batches) == (23, 1, 0)
    assert before.heartbeat is not None and after.heartbeat is not None and after.heartbeat > before.heartbeat
