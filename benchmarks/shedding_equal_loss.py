"""Semantic against random shedding at equal loss: the same rows, the same fixed shed ratios, at random and by utility.

    python benchmarks/shedding_equal_loss.py
    python benchmarks/shedding_equal_loss.py --utility pareto --ratio 0.5 --rounds 8 --json

The other comparison (``shedding_utility.py``) lets a law choose the loss. Here no law decides: every query sheds the
ratio in the name of its promise. All queries read the same files, one per micro-batch, and take turns in one session
(``turns.py``). The utility kept is the sum over kept rows / the sum over all rows read; the best possible is what
keeping the most useful rows would give, as many as were kept. Costs are processor time per row read. Their difference
is what choosing by utility costs, and under a law that much more load has to be shed.
"""

from __future__ import annotations

import json
import os
import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path

import click
import numpy as np
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from rich.console import Console
from rich.table import Table

import slackwater as sw
from shedding_place import shed_fixed_ratios, sines
from shedding_utility import UTILITIES, utilities_of, utility_column
from slackwater.spark.command.session import local_session
from turns import Round, SteppedQuery, take_turns

CHOICES = ("random", "by utility")
_MEASURED = "measured"
_LEARNING = 3
"""Micro-batches before the histogram of utilities has settled."""


@dataclass
class Figures:
    """One query. The cost is the median over rounds, in microseconds of processor time per row read.

    ``cost_over_random`` has its cost/the cost at random, by round.
    """

    utility: str
    shed: str
    ratio: float
    loss_ratio: float
    utility_kept_ratio: float
    best_possible_ratio: float
    top_tenth_kept_ratio: float
    error_ratio: float
    standard_error_ratio: float
    cost_us: float
    cost_over_random: list[float]


def query(events: DataFrame, name: str, kind: str, shed: str, tenth: float, work: int) -> DataFrame:
    """The rows kept, with what they measure; the ratio to shed is in ``name``."""
    utility, weight = utility_column(kind), F.col("shed_weight")
    kept = sw.with_max_delay(events, "1 hour", name=name, shed_by=None if shed == CHOICES[0] else utility)
    kept = kept.observe(
        _MEASURED,
        F.count(F.lit(1)).alias("rows"),
        F.sum(utility).alias("kept"),
        F.sum(weight * utility).alias("estimated"),
        F.sum(weight * (weight - 1.0) * utility * utility).alias("variance"),
        F.count(F.when(utility > tenth, 1)).alias("top"),
    )
    return kept.select("id", "shed_weight", sines(F.col("value"), work).alias("result"))


def kept_figures(stepped: SteppedQuery, utilities: np.ndarray, tenth: float) -> dict[str, float]:
    """What the query kept, over all micro-batches after the first ones."""
    first = exact = kept = estimated = variance = top = kept_top = 0.0
    rows, kept_rows, best = 0, 0, 0.0
    for progress in stepped.query.recentProgress:
        batch_rows = progress.numInputRows
        part = utilities[int(first) : int(first) + batch_rows]
        first += batch_rows
        if progress.batchId < _LEARNING or not batch_rows:
            continue
        seen = progress.observedMetrics[_MEASURED]
        rows, kept_rows = rows + batch_rows, kept_rows + seen["rows"]
        exact, top = exact + float(part.sum()), top + int((part > tenth).sum())
        best += float(np.sort(part)[::-1][: seen["rows"]].sum())
        kept, estimated, variance = kept + seen["kept"], estimated + seen["estimated"], variance + seen["variance"]
        kept_top += seen["top"]
    return {
        "loss_ratio": 1.0 - kept_rows / rows,
        "utility_kept_ratio": kept / exact,
        "best_possible_ratio": best / exact,
        "top_tenth_kept_ratio": kept_top / top,
        "error_ratio": estimated / exact - 1.0,
        "standard_error_ratio": float(np.sqrt(variance)) / exact,
    }


def compare(
    spark: SparkSession, kind: str, ratios: tuple[float, ...], rows: int, rounds: int, work: int
) -> list[Figures]:
    """Run both choices at every ratio in turns, over files of ``rows`` rows each."""
    console, warm_up = Console(stderr=True), _LEARNING + 2
    files = 1 + warm_up + rounds
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        data = folder / "rows"
        spark.range(0, files * rows, 1, files).select("id", (F.col("id") * 7919 % 1000).cast("double").alias("value")) \
            .write.parquet(str(data))  # fmt: skip
        for number, file in enumerate(sorted(data.glob("*.parquet"))):
            os.utime(file, (1_700_000_000 + number, 1_700_000_000 + number))
        utilities = utilities_of(spark, kind, files * rows)
        tenth = float(np.quantile(utilities, 0.9))
        queries: dict[tuple[str, float], SteppedQuery] = {}
        for shed in CHOICES:
            for ratio in ratios:
                reader = spark.readStream.schema("id long, value double").option("maxFilesPerTrigger", 1)
                name = f"{kind}-{shed.replace(' ', '-')}-{ratio:g}"
                result = query(reader.parquet(str(data)), name, kind, shed, tenth, work)
                queries[shed, ratio] = SteppedQuery(result, folder / name)

        def show(number: int, costs: Round) -> None:
            console.print(number, {name: round(cost.processor, 3) for name, cost in costs.items()})

        by_name = {f"{shed} {ratio:g}": stepped for (shed, ratio), stepped in queries.items()}
        found = take_turns(by_name, os.getpid(), 1, warm_up, rounds, show)
        figures = []
        for (shed, ratio), stepped in queries.items():
            own = [costs[f"{shed} {ratio:g}"].processor for costs in found]
            random = [costs[f"{CHOICES[0]} {ratio:g}"].processor for costs in found]
            over = [mine / other for mine, other in zip(own, random, strict=True)]
            kept = kept_figures(stepped, utilities, tenth)
            figures.append(
                Figures(kind, shed, ratio, **kept, cost_us=float(np.median(own)) / rows * 1e6, cost_over_random=over)
            )
        for stepped in queries.values():
            stepped.query.stop()
    return figures


@click.command()
@click.option("--utility", "kinds", multiple=True, type=click.Choice(UTILITIES), default=UTILITIES, show_default=True)
@click.option("--ratio", "ratios", multiple=True, type=float, default=(0.0, 0.5, 0.75), show_default=True)
@click.option("--rows", default=200_000, show_default=True, help="Rows per micro-batch.")
@click.option("--rounds", default=8, show_default=True)
@click.option("--work", default=100, show_default=True, help="Sines per kept row.")
@click.option("--json", "as_json", is_flag=True, help="Print the figures as JSON.")
def main(kinds: tuple[str, ...], ratios: tuple[float, ...], rows: int, rounds: int, work: int, as_json: bool) -> None:
    """Shed the same share of the same rows at random and by utility."""
    shed_fixed_ratios()
    with local_session("slackwater-bench-equal-loss") as spark:
        found = [one for kind in kinds for one in compare(spark, kind, ratios, rows, rounds, work)]
    if as_json:
        click.echo(json.dumps([asdict(one) for one in found], indent=2))
        return
    table = Table(title=f"{rows:,} rows per micro-batch, {work} sines per kept row")
    for column in ("utility", "shed", "loss", "utility kept", "best possible", "top tenth kept", "error of the sum"):
        table.add_column(column, justify="right")
    table.add_column("cost", justify="right")
    table.add_column("of random", justify="right")
    for one in found:
        shares = (one.loss_ratio, one.utility_kept_ratio, one.best_possible_ratio, one.top_tenth_kept_ratio)
        table.add_row(
            one.utility,
            one.shed,
            *(f"{share:.1%}" for share in shares),
            f"{one.error_ratio:+.2%} ± {one.standard_error_ratio:.2%}",
            f"{one.cost_us:.2f} µs",
            f"{np.median(one.cost_over_random):.2f} "
            f"({min(one.cost_over_random):.2f} to {max(one.cost_over_random):.2f})",
        )
    Console(width=150).print(table)


if __name__ == "__main__":
    main()
