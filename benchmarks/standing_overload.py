"""Standing queries on an overloaded Spark: missed deadlines and penalty by the order of evaluation.

Every micro-batch brings one tick of every stream. A first run without a limit counts the evaluations that a tick needs,
and measures their processor time. The time between two ticks is then chosen so that the processor has a part of what
they need: at a load of 3, a third. All runs see the same values. The limit is the one that the shards find themselves,
from their own measurements; no capacity is given. Choosing costs processor time too, so fewer queries are evaluated
than the load alone would allow; "evaluated" shows the share of the needed evaluations that was really done.

The orders take turns: a round is one run of each order at each load, and every round begins with another order. The
figures are medians over the rounds, with the least and the largest.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import slackwater as sw
from slackwater.kernel.standing.tick_budget import EVALUATION_RATIO
from slackwater.spark.command.session import local_session
from slackwater.spark.worker.mailbox import replace
from standing import portfolios

SCHEMA = "symbol string, ts timestamp, price double"
START_MS = 1_700_000_000_000
HISTORY = 40
SHARDS = 2
ORDERS = ("fifo", "edf", "least-penalty")


def put_weights(folder: Path, queries: int, streams: int, of: int) -> None:
    """Write the weights: portfolios of different sizes, with bounds of 2 to 8 σ of a tick."""
    draw = np.random.default_rng(2)
    weights = portfolios(queries, streams, of, 1)
    sigma = np.sqrt(np.asarray(weights.power(2).sum(axis=1)).ravel())
    scale = draw.lognormal(0.0, 1.0, queries)
    folder.mkdir(parents=True)
    pd.DataFrame(
        {
            "portfolio": np.repeat(np.arange(queries), of),
            "symbol": [f"s{stream}" for stream in weights.indices],
            "weight": weights.data * np.repeat(scale, of),
            "within": np.repeat(draw.uniform(2.0, 8.0, queries) * sigma * scale, of),
        }
    ).to_parquet(folder / "weights.parquet")


def put_ticks(folder: Path, streams: int, ticks: int, period_ms: float) -> None:
    """Write one file per micro-batch: first ``HISTORY`` ticks to estimate from, then one tick each."""
    folder.mkdir(parents=True)
    values = 1000.0 + np.cumsum(np.random.default_rng(7).standard_normal((HISTORY + ticks, streams)), axis=0)
    names = np.array([f"s{number}" for number in range(streams)])
    for batch in range(ticks + 1):
        some = np.arange(HISTORY) if batch == 0 else np.array([HISTORY + batch - 1])
        at_us = np.repeat(np.round((START_MS + some * period_ms) * 1e3).astype(np.int64), streams)
        at = pd.to_datetime(at_us, unit="us", utc=True).as_unit("us")
        rows = pd.DataFrame({"symbol": np.tile(names, len(some)), "ts": at, "price": values[some].ravel()})
        rows.to_parquet(folder / f"{batch:05d}.parquet")


def run(root: Path, name: str, ticks: int, streams: int, period_ms: float, order: str | None) -> list[dict[str, float]]:
    """What all shards did together in each micro-batch. Without an order, nothing is limited."""
    put_ticks(root / name, streams, ticks, period_ms)
    clock = root / f"clock-{name}"
    replace(clock, str(START_MS))
    conf = {"spark.sql.shuffle.partitions": str(SHARDS), "spark.driver.memory": "2g"}
    with local_session("bench", **conf) as spark:
        prices = spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1).parquet(str(root / name))
        answers = sw.standing(
            prices, key="symbol", event_time="ts", value="price", weights=str(root / "weights"), query="portfolio",
            within=None, confidence=0.9, deferral=sw.Deferral(order=order), shards=SHARDS, tick="1 millisecond",
            name=name, _clock_file=str(clock),
        )  # fmt: skip
        query = answers.writeStream.format("noop").option("checkpointLocation", str(root / f"c-{name}")).start()
        try:
            done = 0
            while done <= ticks:
                time.sleep(0.02)
                if not query.isActive:
                    raise SystemExit(f"the query failed: {query.exception()}")
                last = query.lastProgress
                if last is not None and last["batchId"] + 1 > done:
                    done = last["batchId"] + 1
                    if order is not None:  # the clock keeps pace with the stream
                        replace(clock, str(round(START_MS + (HISTORY + done) * max(period_ms, 1.0))))
            progress = [json.loads(entry.json) for entry in query.recentProgress]
        finally:
            query.stop()
    return [_together(entry["observedMetrics"][f"slackwater-standing:{name}"]["shards"]) for entry in progress]


def _together(shards: list[dict[str, Any]]) -> dict[str, float]:
    names = ("queries", "evaluated", "postponed", "missed", "overdue", "penalty", "evaluation_ms")
    return {name: sum(shard[name] for shard in shards) for name in names}


def summary(batches: list[dict[str, float]], needed: float) -> dict[str, float]:
    """Means and sums over the second half of a run, when the overload lasts."""
    half = batches[len(batches) // 2 :]
    total = {name: sum(batch[name] for batch in half) for name in half[0]}
    return {
        "evaluated_per_tick": total["evaluated"] / len(half),
        "evaluated_ratio": total["evaluated"] / len(half) / needed,
        "missed_per_tick": total["missed"] / len(half),
        "overdue_ratio": total["overdue"] / total["queries"],
        "penalty_per_tick": total["penalty"] / len(half),
        "evaluation_us": 1e3 * total["evaluation_ms"] / max(total["evaluated"], 1.0),
    }


def over_rounds(runs: list[dict[str, float]]) -> dict[str, list[float]]:
    """Each figure as [median, least, largest]."""
    columns = {name: [one[name] for one in runs] for name in runs[0]}
    return {name: [float(np.median(values)), min(values), max(values)] for name, values in columns.items()}


def main() -> None:
    """Run every load and order, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--queries", type=int, default=100_000)
    parser.add_argument("--streams", type=int, default=50)
    parser.add_argument("--of", type=int, default=9)
    parser.add_argument("--ticks", type=int, default=40)
    parser.add_argument("--loads", default="1.5,3")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    runs: dict[str, list[dict[str, float]]] = {}
    with tempfile.TemporaryDirectory(prefix="standing-") as folder:
        root = Path(folder)
        put_weights(root / "weights", options.queries, options.streams, options.of)
        free = run(root, "free", options.ticks, options.streams, 1000.0, None)
        half = free[len(free) // 2 :]
        needed = sum(batch["evaluated"] for batch in half) / len(half)
        needed_ms = sum(batch["evaluation_ms"] for batch in half) / len(half)
        runs["none, no limit"] = [{"period_ms": 0.0, **summary(free, needed)}]
        for number in range(options.rounds):
            first = number % len(ORDERS)
            for load in map(float, options.loads.split(",")):
                period_ms = needed_ms / SHARDS / EVALUATION_RATIO / load
                for order in ORDERS[first:] + ORDERS[:first]:
                    name = f"{order}-{load:g}-{number}"
                    batches = run(root, name, options.ticks, options.streams, period_ms, order)
                    figures = {"period_ms": period_ms, **summary(batches, needed)}
                    runs.setdefault(f"{order}, {load:g}×", []).append(figures)
    found = {case: over_rounds(figures) for case, figures in runs.items()}
    if options.json:
        print(json.dumps({"needed_per_tick": needed, "needed_ms_per_tick": needed_ms, "runs": found}, indent=2))
        return
    print(f"{options.queries:,} queries of {options.of} of {options.streams} streams on Spark, {SHARDS} shards")
    print(f"a tick needs {needed:,.0f} evaluations, {needed_ms:.0f} ms of processor time; {options.rounds} rounds")
    print(f"{'':20} {'evaluated':>10} {'missed a tick':>24} {'overdue':>8} {'penalty a tick':>30} {'processor':>11}")
    for case, row in found.items():
        print(
            f"{case:20} {row['evaluated_ratio'][0]:10.0%} {_spread(row['missed_per_tick']):>24} "
            f"{row['overdue_ratio'][0]:8.1%} {_spread(row['penalty_per_tick']):>30} {row['evaluation_us'][0]:8.2f} µs"
        )


def _spread(figure: list[float]) -> str:
    return "{:,.0f} ({:,.0f} to {:,.0f})".format(*figure)


if __name__ == "__main__":
    main()
