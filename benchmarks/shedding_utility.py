"""Semantic against random shedding on Spark: the same overload, shed at random and by the utility of rows.

    python benchmarks/shedding_utility.py
    python benchmarks/shedding_utility.py --overload 2 --utility uniform --work 0 --json

A law decides the loss; for the same loss see ``shedding_equal_loss.py``. Which of a pair runs first alternates.
Utilities are drawn independently of arrivals: ``uniform`` between 0 and 1, ``exponential`` with mean 1, or ``pareto``
with shape 2. The utility kept is the sum over kept rows / the sum over all rows read. The best possible is what keeping
the most useful rows of the whole run would give, as many as were kept. The error is that of the estimated sum of
utilities, relative to the exact sum; the standard error is what the weights say.
"""

from __future__ import annotations

import itertools
import json
import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path

import click
import numpy as np
from pyspark.sql import Column, SparkSession
from pyspark.sql import functions as F
from rich.console import Console
from rich.table import Table

from shedding_query import FinishedRun, identify, run_law, warm_up
from slackwater.spark.command.session import local_session

UTILITIES = ("uniform", "exponential", "pareto")
SEED = 2006
CALM_S = 5
"""Seconds at half the capacity, before the load rises."""
CHOICES = ("random", "by utility")


@dataclass
class Figures:
    """One run. Ratios are those of the rows read after the load has risen."""

    utility: str
    overload: float
    shed: str
    mean_delay_s: float
    loss_ratio: float
    utility_kept_ratio: float
    best_possible_ratio: float
    top_tenth_kept_ratio: float
    error_ratio: float
    standard_error_ratio: float


def utility_column(kind: str) -> Column:
    """The utility of a row, from its ``id``."""
    uniform = (F.pmod(F.xxhash64(F.col("id"), F.lit(SEED)), F.lit(1 << 52)) + 0.5) / float(1 << 52)
    if kind == "uniform":
        return uniform
    return -F.log(uniform) if kind == "exponential" else F.pow(uniform, F.lit(-0.5))


def utilities_of(spark: SparkSession, kind: str, rows: int) -> np.ndarray:
    """The utilities of the first ``rows`` rows, computed by Spark."""
    column = utility_column(kind).alias("u")
    return spark.range(rows).select(column).toPandas()["u"].to_numpy()


def figures(kind: str, overload: float, shed: str, run: FinishedRun, utilities: np.ndarray) -> Figures:
    """The figures of one run; ``utilities`` are those of all rows of the input, in order."""
    calm_rows = int(np.searchsorted(run.arrivals_s, CALM_S))
    first, kept_utility, exact, estimated, variance, top_kept, top = 0, 0.0, 0.0, 0.0, 0.0, 0, 0
    rows = kept = 0
    delay_s = 0.0
    tenth = float(np.quantile(utilities, 0.9))
    for outcome in run.history:
        measured = run.measured[outcome.batch_id]
        batch, part = outcome.batch, utilities[first : first + outcome.batch.rows]
        first += batch.rows
        if first - batch.rows < calm_rows:
            continue
        rows, kept = rows + batch.rows, kept + batch.kept
        exact, top = exact + float(part.sum()), top + int((part > tenth).sum())
        kept_utility += measured["kept"] or 0.0
        estimated += measured["estimated"] or 0.0
        variance += measured["variance"] or 0.0
        top_kept += measured["top"] or 0
        delay_s += batch.kept * (outcome.decision.delay_s or 0.0)
    best = np.sort(utilities[first - rows : first])[::-1][:kept].sum()
    return Figures(
        kind,
        overload,
        shed,
        delay_s / kept,
        1.0 - kept / rows,
        kept_utility / exact,
        float(best) / exact,
        top_kept / top,
        estimated / exact - 1.0,
        float(np.sqrt(variance)) / exact,
    )


@click.command()
@click.option("--utility", "kinds", multiple=True, type=click.Choice(UTILITIES), default=UTILITIES, show_default=True)
@click.option("--overload", "overloads", multiple=True, type=float, default=(2.0, 4.0), show_default=True)
@click.option("--seconds", default=20, show_default=True, help="Length of the overload.")
@click.option("--target", "target_s", default=2.0, show_default=True, help="The delay to keep, in seconds.")
@click.option("--work", default=2000, show_default=True, help="Sines per row; with 0 a row waits 2 ms.")
@click.option("--warm-up", "warm_up_s", default=60.0, show_default=True, help="Length of the warm-up in seconds.")
@click.option("--json", "as_json", is_flag=True, help="Print the figures as JSON.")
def main(
    kinds: tuple[str, ...],
    overloads: tuple[float, ...],
    seconds: int,
    target_s: float,
    work: int,
    warm_up_s: float,
    as_json: bool,
) -> None:
    """Overload a query and compare what is kept of the rows' utility, shed at random and by utility."""
    found: list[Figures] = []
    with local_session("slackwater-bench-utility") as spark, tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        rows = warm_up(spark, work, warm_up_s, folder)
        plant = identify(spark, work, rows, folder)
        capacity_per_s = plant.capacity_per_s(target_s)
        for number, (kind, overload) in enumerate(itertools.product(kinds, overloads)):
            rates = np.full(CALM_S + seconds, overload * capacity_per_s)
            rates[:CALM_S] = 0.5 * capacity_per_s
            utilities = utilities_of(spark, kind, int(rates.sum()) + len(rates))
            utility, weight = utility_column(kind), F.col("shed_weight")
            measures = (
                F.sum(utility).alias("kept"),
                F.sum(weight * utility).alias("estimated"),
                F.sum(weight * (weight - 1.0) * utility * utility).alias("variance"),
                F.count(F.when(utility > float(np.quantile(utilities, 0.9)), 1)).alias("top"),
            )
            for shed in CHOICES if number % 2 == 0 else CHOICES[::-1]:
                run = run_law(
                    spark,
                    "ctrl-batch",
                    rates,
                    target_s,
                    work,
                    folder / f"{kind}-{overload:g}-{shed.replace(' ', '-')}",
                    shed_by=None if shed == CHOICES[0] else utility,
                    measures=measures,
                )
                found.append(figures(kind, overload, shed, run, utilities))
    if as_json:
        click.echo(json.dumps({"plant": asdict(plant), "runs": [asdict(one) for one in found]}, indent=2))
        return
    table = Table(title=f"a target of {target_s:g} s")
    for column in ("utility", "load", "shed", "mean delay", "loss", "utility kept", "best possible", "top tenth kept"):
        table.add_column(column, justify="right")
    table.add_column("error of the sum", justify="right")
    for one in found:
        shares = (one.loss_ratio, one.utility_kept_ratio, one.best_possible_ratio, one.top_tenth_kept_ratio)
        table.add_row(
            one.utility,
            f"{one.overload:g}×",
            one.shed,
            f"{one.mean_delay_s:.2f} s",
            *(f"{share:.1%}" for share in shares),
            f"{one.error_ratio:+.2%} ± {one.standard_error_ratio:.2%}",
        )
    Console(width=140).print(table)


if __name__ == "__main__":
    main()
