"""A million standing aggregates on Spark, two shards per core: deferred evaluation against evaluation at every tick.

Every micro-batch brings one tick of every stream. The "all due" run has a bound of zero, so that every query is
evaluated at every tick. The deferred run has the bound of ``standing.py``. Times are those that Spark reports.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

import slackwater as sw
from slackwater.spark.command.session import local_session
from standing import portfolios

SCHEMA = "symbol string, ts timestamp, price double"
START_S = 1_700_000_000


def put_weights(folder: Path, queries: int, streams: int, of: int, sigmas: float) -> None:
    """Write the weights: one row per query and stream, with the query's bound."""
    weights = portfolios(queries, streams, of, 1)
    sigma = np.sqrt(np.asarray(weights.power(2).sum(axis=1)).ravel())
    names = pa.array([f"s{number}" for number in range(streams)])
    table = pa.table(
        {
            "portfolio": np.repeat(np.arange(queries), of),
            "symbol": pa.DictionaryArray.from_arrays(pa.array(weights.indices.astype(np.int32)), names).cast("string"),
            "weight": weights.data,
            "within": np.repeat(sigmas * sigma, of),
        }
    )
    folder.mkdir(parents=True)
    pq.write_table(table, folder / "weights.parquet", row_group_size=1 << 20)


def put_ticks(folder: Path, streams: int, history: int, ticks: int) -> None:
    """Write one file per micro-batch: first ``history`` ticks to estimate from, then one tick each."""
    folder.mkdir(parents=True)
    draw = np.random.default_rng(7)
    values = 1000.0 + np.cumsum(draw.standard_normal((history + ticks, streams)), axis=0)
    names = np.array([f"s{number}" for number in range(streams)])
    for batch in range(ticks + 1):
        start, end = (0, history) if batch == 0 else (history + batch - 1, history + batch)
        at = pd.to_datetime(START_S + np.repeat(np.arange(start, end), streams), unit="s", utc=True)
        rows = pd.DataFrame(
            {
                "symbol": np.tile(names, end - start),
                "ts": at.as_unit("us"),
                "price": values[start:end].ravel(),
            }
        )
        rows.to_parquet(folder / f"{batch:05d}.parquet")


def run(root: Path, name: str, within: float | None, ticks: int, streams: int, method: str) -> dict[str, Any]:
    """Run the queries; return medians over the micro-batches after the first."""
    put_ticks(root / f"in-{name}", streams, 40, ticks)
    (root / "clock").write_text("0")
    conf = {"spark.sql.shuffle.partitions": "4", "spark.driver.memory": "3g"}
    with local_session("bench", **conf) as spark:
        cores = spark.sparkContext.defaultParallelism
        prices = spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1).parquet(str(root / f"in-{name}"))
        answers = sw.standing(
            prices, key="symbol", event_time="ts", value="price", weights=str(root / "weights"), query="portfolio",
            within=within, confidence=0.9, deferral=method, shards=2 * cores, _clock_file=str(root / "clock"),
        )  # fmt: skip
        query = (
            answers.writeStream.format("noop").option("checkpointLocation", str(root / f"checkpoint-{name}")).start()
        )
        try:
            query.processAllAvailable()
            progress = [json.loads(entry.json) for entry in query.recentProgress]
        finally:
            query.stop()
    batches = [entry for entry in progress if entry["numInputRows"] > 0]
    spent = [entry["durationMs"]["triggerExecution"] for entry in batches]
    files = [path.stat().st_size for path in (root / f"checkpoint-{name}" / "state").rglob("*.delta")]
    return {
        "first_ms": spent[0],
        "median_ms": float(np.median(spent[1:])),
        "mean_ms": float(np.mean(spent[1:])),
        "slowest_ms": max(spent[1:]),
        "batches": len(batches),
        "shards": 2 * cores,
        "state_mb": progress[-1]["stateOperators"][0]["memoryUsedBytes"] / 1e6,
        "written_mb_per_batch": sum(files) / 1e6 / len(batches),
    }


def main() -> None:
    """Run both and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--queries", type=int, default=1_000_000)
    parser.add_argument("--streams", type=int, default=1_000)
    parser.add_argument("--of", type=int, default=9)
    parser.add_argument("--sigmas", type=float, default=5.0)
    parser.add_argument("--ticks", type=int, default=20)
    parser.add_argument("--naive-ticks", type=int, default=4)
    parser.add_argument("--method", default="calibrated")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="standing-") as folder:
        root = Path(folder)
        put_weights(root / "weights", options.queries, options.streams, options.of, options.sigmas)
        found = {
            "deferred": run(root, "deferred", None, options.ticks, options.streams, options.method),
            "all due": run(root, "naive", 0.0, options.naive_ticks, options.streams, options.method),
        }
    print(f"{options.queries:,} queries of {options.of} of {options.streams:,} streams, {options.method}, on Spark")
    for name, row in found.items():
        print(f"{name:9}", ", ".join(f"{key} {value:,.0f}" for key, value in row.items()))


if __name__ == "__main__":
    main()
