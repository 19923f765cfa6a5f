"""Standing queries over eight synthetic prices: rows, weights, the query, and two ways to compute its answers."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from pyspark.sql import SparkSession

import slackwater as sw
from slackwater.kernel.standing.options import EvaluatorOptions
from slackwater.kernel.standing.shard import Shard
from slackwater.sim.brownian import brownian_streams
from slackwater.spark.worker.weights_table import WeightsTable
from tests.helpers.harness import ORIGIN_S, FileStream

SCHEMA = "symbol string, ts timestamp, price double"
TICK_MS = 60_000
SHARDS = 2


def put_weights(folder: Path, queries: int = 6, changed: bool = False) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    draw = np.random.default_rng(1)
    rows = [
        {"portfolio": f"p{query}", "symbol": f"s{stream}", "weight": float(draw.uniform(0.5, 1.5))}
        for query in range(queries)
        for stream in draw.choice(8, 4, replace=False)
    ]
    if changed:
        rows = [row for row in rows if row["portfolio"] != "p0"]
        rows.append({"portfolio": "added", "symbol": "s1", "weight": 1.0})
    hidden = folder / ".weights"
    pd.DataFrame(rows).to_parquet(hidden)
    hidden.rename(folder / "weights.parquet")


def micro_batches(ticks: int, warm_up: int = 1) -> list[list[dict[str, Any]]]:
    """One micro-batch per tick, except that the first one holds ``warm_up`` ticks to estimate from."""
    table = brownian_streams(8, ticks, seed=11)
    every = [
        [
            {"symbol": name, "ts": iso(ORIGIN_S * 1000 + at), "price": price}
            for name, price in zip(table.names, row, strict=True)
        ]
        for at, row in zip(table.times, table.values, strict=True)
    ]
    return [[row for batch in every[:warm_up] for row in batch], *every[warm_up:]]


def iso(ms: float) -> str:
    return dt.datetime.fromtimestamp(ms / 1000, dt.UTC).isoformat()


def updates(spark: SparkSession, root: Path, **more: Any) -> Any:
    stream = FileStream(spark, root / "in", SCHEMA)
    options: dict[str, Any] = {
        "within": 5.0,
        "confidence": 0.9,
        "weights": str(root / "weights"),
        "shards": SHARDS,
        **more,
    }
    return sw.standing(
        stream.read_stream(),
        key="symbol",
        event_time="ts",
        value="price",
        query="portfolio",
        tick="1 millisecond",
        _clock_file=str(root / "clock"),
        **options,
    )


def run_batches(spark: SparkSession, root: Path, result: Any) -> Any:
    """Run until all rows are read; returns the query, which has ended."""
    query = (
        result.writeStream.format("parquet")
        .option("path", str(root / "out"))
        .option("checkpointLocation", str(root / "checkpoint"))
        .start()
    )
    try:
        query.processAllAvailable()
    finally:
        query.stop()
    return query


def answers(spark: SparkSession, root: Path, out: Path | None = None) -> list[tuple[Any, ...]]:
    found = spark.read.parquet(str(out or root / "out")).selectExpr(
        "portfolio", "unix_millis(at)", "value", "error_bound", "interrupted_streams", "unix_micros(next_evaluation_at)"
    )
    return sorted(tuple(row) for row in found.collect())


def twin(root: Path, batches: list[list[dict[str, Any]]], **options: Any) -> list[tuple[Any, ...]]:
    """The answers to the same micro-batches from the kernel alone, with one long-lived evaluator per shard."""
    table = WeightsTable(str(root / "weights"), "portfolio", "symbol", "weight", 5.0, 0.9, SHARDS)
    found: list[tuple[Any, ...]] = []
    for number in range(SHARDS):
        shard = Shard(table.shard(number), EvaluatorOptions(**options), number, None)
        for batch in batches:
            at = np.array([pd.Timestamp(row["ts"]).timestamp() * 1000 for row in batch])
            answer = shard.tick([row["symbol"] for row in batch], at, np.array([row["price"] for row in batch]))
            answer["at"] = answer["at"].astype(int)
            answer["next_evaluation_at"] = (answer["next_evaluation_at"] * 1000).round()
            found += list(answer.drop(columns="drift").itertuples(index=False, name=None))
    return sorted(found)


def truth(root: Path, batches: list[list[dict[str, Any]]]) -> dict[tuple[str, int], float]:
    """The exact sum of every query after every micro-batch, computed from the rows and the weights."""
    weights = pd.read_parquet(root / "weights")
    last: dict[str, float] = {}
    found: dict[tuple[str, int], float] = {}
    for batch in batches:
        last |= {row["symbol"]: row["price"] for row in batch}
        at = max(round(pd.Timestamp(row["ts"]).timestamp() * 1000) for row in batch)
        sums = (weights["weight"] * weights["symbol"].map(last)).groupby(weights["portfolio"]).sum()
        found |= {(str(query), at): float(value) for query, value in sums.items()}
    return found
