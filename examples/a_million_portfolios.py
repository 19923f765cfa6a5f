"""A million portfolios over a thousand prices: every value stays within a bound, and few are evaluated at each tick.

    python examples/a_million_portfolios.py            # a million portfolios: some minutes, 4 GB of memory
    python examples/a_million_portfolios.py --short    # two thousand portfolios

At the end the latest answer of every portfolio is compared with its exact value.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

import slackwater as sw

SYMBOLS, SHARES = 1_000, 9
NAMES = np.array([f"S{number:03d}" for number in range(SYMBOLS)])


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--short", action="store_true")
    options.add_argument("--watch", action="store_true", help="show a live page while it runs")
    given = options.parse_args()
    portfolios, ticks = (2_000, 12) if given.short else (1_000_000, 40)
    spark = (
        SparkSession.builder.master("local[2]")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.driver.memory", "1g" if given.short else "4g")
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("ERROR")
    spark.conf.set("spark.sql.shuffle.partitions", "2")
    page = sw.watch(spark, port=0) if given.watch else None
    if page is not None:
        print("live page:", page.url)
    with tempfile.TemporaryDirectory() as folder:
        draw = np.random.default_rng(3)
        holdings = put_holdings(Path(folder, "holdings"), portfolios, draw)
        prices = put_prices(Path(folder, "prices"), ticks, draw)

        updates = sw.standing(
            spark.readStream.schema("symbol string, ts timestamp, price double")
            .option("maxFilesPerTrigger", 1)
            .parquet(str(Path(folder, "prices"))),
            key="symbol",
            event_time="ts",
            value="price",
            weights=str(Path(folder, "holdings")),  # portfolio, symbol, weight, and the portfolio's bound: within
            query="portfolio",
            within=None,
            confidence="90%",
            tick="1 hour",  # the prices here never pause
            name="portfolios",
        )
        query = (
            updates.writeStream.format("parquet")
            .option("path", str(Path(folder, "answers")))
            .option("checkpointLocation", str(Path(folder, "checkpoint")))
            .start()
        )
        query.processAllAvailable()
        print(sw.report(query))
        query.stop()

        answers = spark.read.parquet(str(Path(folder, "answers"))).groupBy("portfolio")
        latest = answers.agg(F.max_by("value", "at").alias("value")).toPandas().set_index("portfolio")["value"]
        exact = (holdings["weight"] * prices[holdings["symbol"]].to_numpy()).groupby(holdings["portfolio"]).sum()
        within = (latest - exact).abs() <= holdings.groupby("portfolio")["within"].first()
        print(f"at the end {within.mean():.1%} of {portfolios:,} portfolios are within their bounds; promised 90%")
    if page is not None:
        page.close()
    spark.stop()


def put_holdings(folder: Path, portfolios: int, draw: np.random.Generator) -> pd.DataFrame:
    """Write nine shares per portfolio. The bound is five times the standard deviation of its change per tick."""
    weights = draw.uniform(1.0, 10.0, (portfolios, SHARES))
    table = pd.DataFrame(
        {
            "portfolio": np.repeat(np.arange(portfolios), SHARES),
            "symbol": NAMES[draw.integers(0, SYMBOLS, portfolios * SHARES)],
            "weight": weights.ravel(),
            "within": np.repeat(5.0 * np.sqrt(np.square(weights).sum(axis=1)), SHARES),
        }
    )
    folder.mkdir()
    table.to_parquet(folder / "holdings.parquet")
    return table


def put_prices(folder: Path, ticks: int, draw: np.random.Generator) -> pd.Series:
    """Write one file per micro-batch: first forty ticks to learn from, then one tick each. Returns the last prices."""
    history = 40
    values = 1_000.0 + np.cumsum(draw.standard_normal((history + ticks, SYMBOLS)), axis=0)
    at = pd.Timestamp("2024-01-31 09:00", tz="UTC") + pd.to_timedelta(np.arange(history + ticks), unit="s")
    folder.mkdir()
    for number in range(ticks + 1):
        first, last = (0, history) if number == 0 else (history + number - 1, history + number)
        rows = {
            "symbol": np.tile(NAMES, last - first),
            "ts": np.repeat(at[first:last], SYMBOLS).as_unit("us"),
            "price": values[first:last].ravel(),
        }
        pd.DataFrame(rows).to_parquet(folder / f"{number:05d}.parquet")
    return pd.Series(values[-1], index=NAMES)


if __name__ == "__main__":
    main()
