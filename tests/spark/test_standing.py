"""Standing queries on Spark give the same answers as the kernel in one process, across restarts and kills."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from pyspark.sql import SparkSession

import slackwater as sw
from slackwater.errors import InvalidOption, InvalidStream, UnknownName
from slackwater.spark.runtime.sharding import murmur3, shard_keys
from slackwater.spark.worker.atomic_files import replace
from tests.helpers.harness import ORIGIN_S, FileStream
from tests.helpers.processes import run_on_cluster, start_module
from tests.helpers.standing import (
    SCHEMA,
    TICK_MS,
    answers,
    iso,
    micro_batches,
    put_weights,
    run_batches,
    truth,
    twin,
    updates,
)

pytestmark = pytest.mark.spark


@pytest.mark.parametrize("windowed", [False, True])
def test_answers_equal_the_kernel_s_across_a_restart(windowed: bool, spark: SparkSession, tmp_path: Path) -> None:
    put_weights(tmp_path / "weights")
    (tmp_path / "clock").write_text("0")
    batches = micro_batches(26, warm_up=20)
    stream = FileStream(spark, tmp_path / "in", SCHEMA)
    options = {"aggregate": "max", "window": "7 minutes"} if windowed else {}
    for half in (batches[:4], batches[4:]):
        for batch in half:
            stream.put(batch)
        run_batches(spark, tmp_path, updates(spark, tmp_path, **options))
    kernel = {"aggregate": "max", "window": 7.0 * TICK_MS} if windowed else {}
    got, expected = answers(spark, tmp_path), twin(tmp_path, batches, **kernel)
    assert len(got) < 7 * 6, "some evaluations were deferred"
    assert [row[:2] for row in got] == [row[:2] for row in expected]
    assert np.allclose([row[2:] for row in got], [row[2:] for row in expected], rtol=1e-12)
    if not windowed:
        exact = truth(tmp_path, batches)
        assert np.allclose([row[2] for row in got], [exact[row[0], row[1]] for row in got], rtol=1e-12)


@pytest.mark.parametrize("ticks_per_batch", [10, 60])
def test_no_peak_is_lost_and_every_row_is_counted_across_a_restart(
    ticks_per_batch: int, spark: SparkSession, tmp_path: Path
) -> None:
    put_weights(tmp_path / "weights")
    (tmp_path / "clock").write_text("0")
    ticks = micro_batches(4 * ticks_per_batch)
    for spike in (13, 2 * ticks_per_batch + 1):
        for row in ticks[spike]:
            row["price"] += 94.0
    old = [{**ticks[3][0], "price": 1e6}, {**ticks[-1][0], "symbol": None}, {**ticks[-1][0], "ts": None}]
    batches = [
        [row for tick in ticks[at : at + ticks_per_batch] for row in tick]
        for at in range(0, len(ticks), ticks_per_batch)
    ]
    batches[-1] += old
    stream = FileStream(spark, tmp_path / "in", SCHEMA)
    for half in (batches[:2], batches[2:]):
        for batch in half:
            stream.put(batch)
        result = updates(spark, tmp_path, aggregate="max", landmark=iso(ORIGIN_S * 1000), name=tmp_path.name)
        query = run_batches(spark, tmp_path, result)
    weights = pd.read_parquet(tmp_path / "weights").pivot(index="symbol", columns="portfolio", values="weight")
    rows = pd.DataFrame([row for tick in ticks for row in tick])
    rows["ms"] = [round(pd.Timestamp(ts).timestamp() * 1000) for ts in rows["ts"]]
    prices = rows.pivot(index="ms", columns="symbol", values="price")
    exact = (prices @ weights.reindex(prices.columns).fillna(0.0)).cummax()
    found = answers(spark, tmp_path)
    assert len(found) >= 6
    assert np.allclose([row[2] for row in found], [exact.loc[row[1], row[0]] for row in found], rtol=1e-12)
    (report,) = sw.report(query).precision
    assert report.as_json()["rows"] == {
        "input": len(rows) + 3,
        "used": len(rows),
        "out_of_order": 1,
        "invalid": 2,
        "waiting": 0,
    }


def test_answers_during_a_blackout_and_changed_weights(spark: SparkSession, tmp_path: Path) -> None:
    put_weights(tmp_path / "weights")
    clock = tmp_path / "clock"
    start_ms = ORIGIN_S * 1000 + 13 * TICK_MS + 1000
    replace(clock, str(start_ms))
    stream = FileStream(spark, tmp_path / "in", SCHEMA)
    batches = micro_batches(14, warm_up=13)
    for batch in batches:
        stream.put(batch)
    result = updates(spark, tmp_path)
    query = (
        result.writeStream.format("parquet")
        .option("path", str(tmp_path / "out"))
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .start()
    )
    try:
        query.processAllAvailable()
        for minute in (4, 12):  # nothing but the clock
            replace(clock, str(start_ms + minute * TICK_MS))
            query.processAllAvailable()
        last_row_ms = ORIGIN_S * 1000 + 13 * TICK_MS
        blackout = [row for row in answers(spark, tmp_path) if row[1] > last_row_ms]
        assert {row[0] for row in blackout} == {f"p{number}" for number in range(6)}
        assert any(row[4] == 4 for row in blackout), "all four streams of a query are silent"
        put_weights(tmp_path / "weights", changed=True)
        replace(clock, str(start_ms + 40 * TICK_MS))
        query.processAllAvailable()
        later = {row[0] for row in answers(spark, tmp_path) if row[1] > last_row_ms + 12 * TICK_MS}
        assert later == {"added", "p1", "p2", "p3", "p4", "p5"}
    finally:
        query.stop()


def test_bad_rows_are_left_out_and_unseen_streams_withhold_answers(spark: SparkSession, tmp_path: Path) -> None:
    folder = tmp_path / "weights"
    folder.mkdir()
    rows = [("good", "s0", 1.0), ("waits", "s0", 1.0), ("waits", "ghost", 1.0), ("broken", "s0", float("nan"))]
    pd.DataFrame(rows, columns=["portfolio", "symbol", "weight"]).to_parquet(folder / "w.parquet")
    (tmp_path / "clock").write_text("0")
    stream = FileStream(spark, tmp_path / "in", SCHEMA)
    at = [iso(ORIGIN_S * 1000 + minute * TICK_MS) for minute in range(5)]
    stream.put([{"symbol": "s0", "ts": at[1], "price": 1.0}, {"symbol": "s0", "ts": at[1], "price": 1.0}])
    stream.put([{"symbol": "s0", "ts": at[0], "price": 9.0}, {"symbol": "s0", "ts": at[2], "price": None}])
    stream.put([{"symbol": None, "ts": at[3], "price": 1.0}, {"symbol": "s0", "ts": None, "price": 1.0}])
    stream.put([{"symbol": "ghost", "ts": at[4], "price": 10.0}])
    run_batches(spark, tmp_path, updates(spark, tmp_path))
    found = answers(spark, tmp_path)
    assert {row[2] for row in found if row[0] == "good"} == {1.0}
    waits = [(row[2], row[4]) for row in sorted(found, key=lambda row: row[1]) if row[0] == "waits"]
    assert waits == [(None, 1), (11.0, 0)], "withheld, reported once, and answered when its stream appeared"
    assert not any(row[0] == "broken" for row in found)


def test_an_empty_table_of_weights(spark: SparkSession, tmp_path: Path) -> None:
    table = spark.createDataFrame([], "portfolio long, symbol string, weight double")
    (tmp_path / "clock").write_text("0")
    stream = FileStream(spark, tmp_path / "in", SCHEMA)
    stream.put(micro_batches(1)[0])
    run_batches(spark, tmp_path, updates(spark, tmp_path, weights=table, location=str(tmp_path / "slackwater")))
    assert answers(spark, tmp_path) == []


def test_each_query_may_have_its_own_bound(spark: SparkSession, tmp_path: Path) -> None:
    rows = [(1, "s0", 1.0, "0", 0.9), (2, "s0", 1.0, "50%", 0.9)]
    table = spark.createDataFrame(rows, "portfolio int, symbol string, weight double, within string, confidence double")
    (tmp_path / "clock").write_text("0")
    stream = FileStream(spark, tmp_path / "in", SCHEMA)
    for batch in micro_batches(22, warm_up=20):
        stream.put(batch)
    result = updates(
        spark, tmp_path, weights=table, within=None, confidence=None, location=str(tmp_path / "slackwater")
    )
    run_batches(spark, tmp_path, result)
    found = answers(spark, tmp_path)
    assert sum(row[0] == 1 for row in found) == 3, "a bound of zero: at every tick"
    assert sum(row[0] == 2 for row in found) < 3


def test_invalid_arguments_are_refused(spark: SparkSession, tmp_path: Path) -> None:
    put_weights(tmp_path / "weights")
    for more, condition in (
        ({"within": -1}, "invalid-bound"),
        ({"confidence": 1.0}, "invalid-confidence"),
        ({"confidence": 0.0}, "invalid-confidence"),
        ({"aggregate": "max"}, "window-or-landmark"),
        ({"within": None}, "no-such-column"),
        ({"deferral": "guess"}, "unknown-deferral-method"),
        ({"aggregate": "max", "window": "1 minute", "deferral": sw.Deferral(value_and_drift=True)}, "drift-of-extreme"),
        ({"shards": 0}, "invalid-shards"),
        ({"aggregate": "median"}, "invalid-aggregate"),
        ({"aggregate": "max", "landmark": "yesterday?"}, "invalid-landmark"),
    ):
        with pytest.raises((InvalidOption, InvalidStream, UnknownName), match=condition):
            updates(spark, tmp_path, **more)
    with pytest.raises(InvalidStream, match="not-a-stream"):
        sw.standing(
            spark.range(3), key="a", event_time="b", value="c", weights=str(tmp_path), within=1.0, confidence=0.9
        )


@pytest.mark.full
def test_sigkill_in_the_middle_of_a_batch(spark: SparkSession, tmp_path: Path) -> None:
    put_weights(tmp_path / "weights")
    (tmp_path / "clock").write_text("0")
    stream = FileStream(spark, tmp_path / "in", SCHEMA)
    batches = micro_batches(26, warm_up=21)
    for batch in batches:
        stream.put(batch)
    doomed = start_module("killable_standing", str(tmp_path), "2")
    while not (tmp_path / "hanging").exists():
        with pytest.raises(subprocess.TimeoutExpired):  # it must not end by itself
            doomed.wait(timeout=0.2)
    os.killpg(doomed.pid, signal.SIGKILL)
    doomed.wait()
    assert start_module("killable_standing", str(tmp_path)).wait() == 0
    found = []
    for path in sorted((tmp_path / "out").iterdir()):
        found += [tuple(row) for row in json.loads(path.read_text())]
    expected = [row[:3] for row in twin(tmp_path, batches)]
    assert sorted(row[:2] for row in found) == [row[:2] for row in expected], "no evaluation lost, none repeated"
    assert np.allclose([row[2] for row in sorted(found)], [row[2] for row in expected], rtol=1e-12)


def test_shard_keys_hash_as_spark_hashes(spark: SparkSession) -> None:
    keys = shard_keys(16)
    frame = spark.createDataFrame([(key,) for key in keys], "key int").selectExpr("key", "hash(key) AS h")
    got = {row["key"]: row["h"] for row in frame.collect()}
    assert [got[key] for key in keys] == murmur3(np.array(keys, dtype=np.int32)).tolist()


CLUSTER = """
import json, sys
from pathlib import Path
from slackwater.spark.command.session import local_session
from tests.helpers.standing import answers, micro_batches, put_weights, run_batches, twin, updates, SCHEMA
from tests.helpers.harness import FileStream

root = Path(sys.argv[1])
conf = {"spark.executor.memory": "512m", "spark.executor.cores": "1", "spark.sql.shuffle.partitions": "2"}
with local_session("cluster", **conf) as spark:
    put_weights(root / "weights")
    (root / "clock").write_text("0")
    batches = micro_batches(22, warm_up=20)
    for batch in batches:
        stream = FileStream(spark, root / "in", SCHEMA, files=batches.index(batch))
        stream.put(batch)
    run_batches(spark, root, updates(spark, root))
    assert [row[:2] for row in answers(spark, root)] == [row[:2] for row in twin(root, batches)]
    print(len(answers(spark, root)))
"""


@pytest.mark.full
def test_two_executor_processes(tmp_path: Path) -> None:
    assert int(run_on_cluster(CLUSTER, tmp_path)[-1]) >= 6
