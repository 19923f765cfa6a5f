"""``late=`` marks the rows that the ledger counts as late or invalid, each with its reason, and no other."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.query import StreamingQuery

import slackwater as sw
from slackwater.control.ledger import Ledger
from tests.helpers.harness import FileStream, batches, collected, promise_of, same_rows, settle, start, watermark_ms
from tests.helpers.judged import late_ids

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("known_controllers")]

STAMPS = {"future": "2099-01-01T00:00:00+00:00", "unset clock": "1970-01-01T00:00:01+00:00", "null": None}
GOOD = batches(5, count=6, each=50)
BAD = [
    [{**batch[0], "id": -1 - 3 * number - i, "ts": stamp} for i, stamp in enumerate(STAMPS.values())]
    for number, batch in enumerate(GOOD)
]
REASONS = {row["id"]: reason for bad in BAD for row, reason in zip(bad, STAMPS, strict=True)}
"""The reason of every invalid row."""


def promised(stream: FileStream, **options: Any) -> DataFrame:
    method = sw.Method("test-trailing", wait_ms=3000.0)
    return sw.with_drop_ratio(stream.read_stream(), "ts", "5%", method=method, late="problem", **options)


def put_one_by_one(stream: FileStream, numbers: range, query: StreamingQuery) -> None:
    """Add files, each once the heartbeat from the one before is in force."""
    for number in numbers:
        stream.put([*GOOD[number], *BAD[number]])
        settle(query)


@pytest.mark.parametrize(
    "options",
    [
        {"arrival": "arrived"},
        pytest.param({"arrival": "arrived", "source": "sensor"}, marks=pytest.mark.full),
        pytest.param({}, marks=pytest.mark.full),
    ],
)
def test_dead_letters_of_a_stateless_query(options: dict[str, Any], spark: SparkSession, tmp_path: Path) -> None:
    stream = FileStream(spark, tmp_path / "in")
    main, dead = tmp_path / "main", tmp_path / "dead"

    def deliver(batch: DataFrame, number: int) -> None:
        batch.persist()
        batch.where("problem IS NULL").drop("problem").write.mode("overwrite").parquet(f"{main}/batch={number}")
        batch.where("problem IS NOT NULL").write.mode("overwrite").parquet(f"{dead}/batch={number}")
        batch.unpersist()

    progress = []
    ledger = Ledger()
    for run in (range(4), range(4, 6)):  # the second one is a restart
        events = promised(stream, name="letters", location=str(tmp_path / "slackwater"), **options)
        query = (
            events.writeStream.option("checkpointLocation", str(tmp_path / "checkpoint")).foreachBatch(deliver).start()
        )
        put_one_by_one(stream, run, query)
        ledger = promise_of(query).ledger
        progress += query.recentProgress
        query.stop()

    late = late_ids(progress, GOOD, stateless=True)
    found = {row.id: row.problem for row in spark.read.parquet(str(dead)).select("id", "problem").collect()}
    assert late
    assert found == {**REASONS, **dict.fromkeys(late, "late")}
    on_time = spark.read.parquet(str(main)).drop("batch")
    same_rows(on_time, stream.read_batch().where(~F.col("id").isin(list(found))))
    counts = Counter(found.values())
    assert ledger == Ledger(on_time=on_time.count(), late=counts.pop("late"), invalid=counts.total())


def test_windows_over_the_rows_on_time(spark: SparkSession, tmp_path: Path) -> None:
    stream = FileStream(spark, tmp_path / "in")
    on_time = promised(stream, arrival="arrived").where(F.col("problem").isNull())
    query = start(on_time.groupBy(F.window("ts", "5 seconds"), "sensor").count(), tmp_path)
    put_one_by_one(stream, range(len(GOOD)), query)
    progress, ledger = query.recentProgress, promise_of(query).ledger
    query.stop()
    late = late_ids(progress, GOOD)
    assert late
    assert ledger == Ledger(on_time=len(GOOD) * 50 - len(late), late=len(late), invalid=len(REASONS))
    kept = stream.read_batch().where(~F.col("id").isin([*late, *REASONS]))
    counts = kept.groupBy(F.window("ts", "5 seconds"), "sensor").count()
    closed = counts.where(F.unix_millis(F.col("window.end")) <= F.lit(int(watermark_ms(progress[-1]))))
    assert closed.count() > 8
    same_rows(collected(spark, tmp_path), closed)


def test_invalid_rows_can_be_left_out_all_the_same(spark: SparkSession, tmp_path: Path) -> None:
    stream = FileStream(spark, tmp_path / "in")
    stream.put([*GOOD[0], *BAD[0]])
    query = start(promised(stream, arrival="arrived", invalid="exclude"), tmp_path)
    settle(query)
    assert promise_of(query).ledger == Ledger(on_time=50, invalid=3)
    query.stop()
    same_rows(collected(spark, tmp_path).drop("problem"), stream.read_batch().where("id >= 0"))
    assert collected(spark, tmp_path).where("problem IS NOT NULL").count() == 0
