"""Overload on Spark: the order of evaluation, the measured limit, and the missed deadlines on the report."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from pyspark.sql import SparkSession

import slackwater as sw
from slackwater.control.deferral.scheduler import order_names
from slackwater.kernel.standing.options import EvaluatorOptions
from slackwater.kernel.standing.shard import Shard
from slackwater.kernel.standing.shard_counts import ShardCounts
from slackwater.spark.worker.atomic_files import replace
from slackwater.spark.worker.weights_table import WeightsTable
from tests.helpers.harness import ORIGIN_S, FileStream
from tests.helpers.standing import (
    SCHEMA,
    SHARDS,
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


@pytest.mark.parametrize("order", order_names())
def test_each_order_gives_the_kernel_s_answers_and_counts_across_a_restart(
    order: str, spark: SparkSession, tmp_path: Path
) -> None:
    put_weights(tmp_path / "weights", queries=12)
    (tmp_path / "clock").write_text("0")
    batches = micro_batches(26, warm_up=20)
    stream = FileStream(spark, tmp_path / "in", SCHEMA)
    deferral = sw.Deferral(capacity=2, order=order)
    for half in (batches[:4], batches[4:]):
        for batch in half:
            stream.put(batch)
        result = updates(spark, tmp_path, deferral=deferral, name=f"{order}-{tmp_path.name}")
        query = run_batches(spark, tmp_path, result)
    got, expected = answers(spark, tmp_path), twin(tmp_path, batches, capacity=2, order=order)
    assert [row[:2] for row in got] == [row[:2] for row in expected]
    exact = truth(tmp_path, batches)
    assert np.allclose([row[2] for row in got], [exact[row[0], row[1]] for row in got], rtol=1e-12)
    (report,) = sw.report(query).precision
    counts = kernel_counts(tmp_path, batches, capacity=2, order=order)
    assert counts.missed > 0
    assert (report.counts.missed, report.counts.postponed) == (counts.missed, counts.postponed)
    assert report.counts.overdue == sum(shard.overdue for shard in last_counts(tmp_path, batches, order))
    assert report.counts.penalty == pytest.approx(counts.penalty, rel=1e-12)
    assert f"{counts.missed:,} missed" in str(report)
    assert report.as_json()["deadlines"]["missed"] == counts.missed


def every_count(root: Path, batches: list[list[dict[str, object]]], **options: object) -> list[list[ShardCounts]]:
    """What each shard counts in each micro-batch, from the kernel alone."""
    table = WeightsTable(str(root / "weights"), "portfolio", "symbol", "weight", 5.0, 0.9, SHARDS)
    found: list[list[ShardCounts]] = []
    for number in range(SHARDS):
        shard = Shard(table.shard(number), EvaluatorOptions(**options), number, None)  # type: ignore[arg-type]
        found.append([])
        for batch in batches:
            at = np.array([pd.Timestamp(str(row["ts"])).timestamp() * 1000 for row in batch])
            shard.tick([str(row["symbol"]) for row in batch], at, np.array([row["price"] for row in batch]))
            found[-1].append(shard.counts)
    return found


def kernel_counts(root: Path, batches: list[list[dict[str, object]]], **options: object) -> ShardCounts:
    return ShardCounts.together(counts for shard in every_count(root, batches, **options) for counts in shard)


def last_counts(root: Path, batches: list[list[dict[str, object]]], order: str) -> list[ShardCounts]:
    return [shard[-1] for shard in every_count(root, batches, capacity=2, order=order)]


def test_overload_is_found_from_the_processor_time_of_the_evaluations(spark: SparkSession, tmp_path: Path) -> None:
    """A live stream with a micro-batch per millisecond: more evaluations are due than a millisecond can hold."""
    # Costs are learned from ticks of 10 ms and more. This many queries take several times that on any processor.
    queries, ticks = 240_000, 4
    (tmp_path / "weights").mkdir()
    pd.DataFrame(
        {"portfolio": np.arange(queries), "symbol": [f"s{at % 8}" for at in range(queries)], "weight": 1.0}
    ).to_parquet(tmp_path / "weights" / "weights.parquet")
    stream, start_ms = FileStream(spark, tmp_path / "in", SCHEMA), ORIGIN_S * 1000
    draw = np.random.default_rng(3)
    prices = {}
    for tick in range(ticks):
        now_ms = start_ms + tick
        prices[now_ms] = draw.normal(100.0, 5.0, 8)
        rows = [{"symbol": f"s{at}", "ts": iso(now_ms), "price": price} for at, price in enumerate(prices[now_ms])]
        stream.put(rows)
        replace(tmp_path / "clock", str(now_ms))
        result = updates(spark, tmp_path, within=1e-6, deferral=sw.Deferral(order="edf"), name=tmp_path.name)
        query = run_batches(spark, tmp_path, result)
    found = spark.read.parquet(str(tmp_path / "out")).selectExpr("portfolio", "unix_millis(at) AS at", "value")
    frame = found.toPandas()
    exact = [prices[at][portfolio % 8] for portfolio, at in zip(frame["portfolio"], frame["at"], strict=True)]
    assert np.allclose(frame["value"], exact, rtol=1e-12)
    (report,) = sw.report(query).precision
    counts = report.counts
    assert counts.evaluated == len(frame)
    assert counts.evaluation_us is not None and counts.evaluation_us > 0.0
    assert 2 * queries <= counts.evaluated < ticks * queries, "the first two ticks had no period yet"
    assert counts.evaluated + counts.postponed == ticks * queries, "every query was due at every tick"
    assert counts.missed > 0 and counts.overdue > 0
    assert "overloaded" in str(report)
    assert counts.used == ticks * 8
