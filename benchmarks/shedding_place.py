"""Where to shed on Spark: before a filter or after it. What each place costs, and the rows that each must lose.

    python benchmarks/shedding_place.py
    python benchmarks/shedding_place.py --source json --filter costly --rounds 8 --json

A query keeps one row in ten and computes something costly for it. Its rows are shed right after the source, or after
the filter, at fixed shed ratios. All variants read the same files, one per micro-batch, and take turns in one session
(``turns.py``). The cost is processor time per row read. From it follows which share of the useful rows (those that pass
the filter) each place loses to bring the query down to a given processor time: the less, the better the place. What
``filter_costs`` measures on the same rows is printed beside it.
"""

from __future__ import annotations

import json
import os
import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import click
import numpy as np
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from rich.console import Console
from rich.table import Table

import slackwater as sw
from slackwater.control.shedding.microbatch import MicroBatchController
from slackwater.spark.command.session import local_session
from slackwater.spark.timeliness.tracker import TimelinessSpec
from turns import Round, SteppedQuery, take_turns

SCHEMA = "id long, ts timestamp, kind int, value double, note string"
RATIOS = (0.0, 0.5, 0.9)
PLACES = ("entry", "after")
PASSES = 10
"""One row in this many passes the filter."""
BUDGETS = (0.9, 0.75, 0.5)
"""Processor time to come down to, as shares of what shedding nothing at the entry costs."""


def shed_fixed_ratios() -> None:
    """Make every controller of this process shed the ratio in the name of its promise, such as ``entry-0.5``.

    Under the clock of ``turns.py`` micro-batches take no time, so controllers never decide and keep this ratio.
    """
    made = TimelinessSpec.new_controller

    def fixed(spec: TimelinessSpec) -> MicroBatchController:
        controller = made(spec)
        controller.shed_ratio = float(spec.name.rpartition("-")[2])
        return controller

    TimelinessSpec.new_controller = fixed  # type: ignore[method-assign]


@dataclass
class Figures:
    """One source, filter and stage. Costs are medians over rounds, in microseconds of processor time per row read.

    ``useful_lost`` has for each budget the share of the useful rows that each place must shed; above 1 it cannot.
    ``filter_costs`` is what it measured on the same rows.
    """

    source: str
    filter: str
    sines: int
    plain_us: float
    costs_us: dict[str, dict[str, float]]
    entry_over_after: dict[str, list[float]]
    useful_lost: dict[str, dict[str, float]]
    filter_costs: str


def sines(value: Column, count: int) -> Column:
    """A value that takes ``count`` sines."""
    return F.aggregate(F.sequence(F.lit(1), F.lit(count)), value, lambda a, i: a + F.sin(a + i))


def predicate(kind: str, count: int) -> str:
    """A filter that one row in ten passes: a comparison, functions of a string, or ``count`` sines for every row."""
    before = {
        "cheap": "",
        "string": "upper(note) LIKE '%FEW MORE%' AND ",
        "costly": f"aggregate(sequence(1, {count}), value, (a, i) -> a + sin(a + i)) > -1e9 AND ",
    }
    return f"{before[kind]}kind = 3"


def query(events: DataFrame, place: str, ratio: float, kind: str, work: int, filter_work: int) -> DataFrame:
    """The query with its rows shed at ``place``: before the filter (``entry``), ``after`` it, or nowhere."""
    passes = predicate(kind, filter_work)
    if place != "plain":
        name = f"{place}-{ratio:g}"
        if place == "entry":
            events = sw.with_max_delay(events, "1 hour", name=name).where(passes)
        else:
            events = sw.with_max_delay(events.where(passes), "1 hour", name=name)
    else:
        events = events.where(passes).withColumn("shed_weight", F.lit(1.0))
    return events.select("id", "shed_weight", sines(F.col("value"), work).alias("result"))


def make_rows(spark: SparkSession, rows: int, files: int) -> DataFrame:
    """Rows in arrival order, about 150 bytes each as JSON."""
    identity = F.col("id")
    return spark.range(0, rows, 1, files).select(
        "id",
        F.timestamp_micros(1_700_000_000_000_000 + identity * 20).alias("ts"),
        (identity % PASSES).cast("int").alias("kind"),
        F.rand(1).alias("value"),
        F.lit("a payload has a few more fields than one reads").alias("note"),
    )


def useful_lost(costs_us: dict[float, float], goal_us: float) -> float:
    """The shed ratio at which a place costs ``goal_us`` per row, on the line through its costs."""
    slope, at_zero = np.polyfit(list(costs_us), list(costs_us.values()), 1)
    return float((goal_us - at_zero) / slope)


def _check(variant: str, stepped: SteppedQuery) -> None:
    """Assert that the query has shed its ratio, the first micro-batches and the coins aside."""
    for delay in sw.report(stepped.query).timeliness if not variant.startswith("plain") else ():
        ratio = float(variant.split()[1])
        assert 0.5 * ratio <= delay.loss_ratio <= ratio, (variant, delay.loss_ratio)


def compare(
    spark: SparkSession, source: str, kind: str, work: int, filter_work: int, rows: int, warm_up: int, rounds: int
) -> Figures:
    """Run all variants in turns over files of ``rows`` rows each."""
    console = Console(stderr=True)
    files = 1 + warm_up + rounds
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        getattr(make_rows(spark, files * rows, files).write, source)(str(folder / "rows"))
        variants: list[tuple[str, float]] = [("plain", 0.0)]
        variants += [(place, ratio) for place in PLACES for ratio in RATIOS]
        queries: dict[str, SteppedQuery] = {}
        for place, ratio in variants:
            reader = spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1)
            result = query(getattr(reader, source)(str(folder / "rows")), place, ratio, kind, work, filter_work)
            queries[f"{place} {ratio:g}"] = SteppedQuery(result, folder / f"checkpoint-{len(queries)}")

        def show(number: int, costs: Round) -> None:
            console.print(number, {name: round(cost.processor, 3) for name, cost in costs.items()})

        found = take_turns(queries, os.getpid(), 1, warm_up, rounds, show)
        for variant, stepped in queries.items():
            _check(variant, stepped)
            stepped.query.stop()
        costs_of_filter = str(
            sw.filter_costs(getattr(spark.read, source)(str(folder / "rows")), predicate(kind, filter_work))
        )
    per_row_us = {name: [costs[name].processor * 1e6 / rows for costs in found] for name in queries}
    medians = {name: float(np.median(costs)) for name, costs in per_row_us.items()}
    plain_us = medians["plain 0"]
    by_place = {place: {ratio: medians[f"{place} {ratio:g}"] for ratio in RATIOS} for place in PLACES}
    lost = {
        f"{budget:g}": {place: useful_lost(costs, budget * by_place["entry"][0.0]) for place, costs in by_place.items()}
        for budget in BUDGETS
    }
    pairs = {
        f"{ratio:g}": [costs[f"entry {ratio:g}"].processor / costs[f"after {ratio:g}"].processor for costs in found]
        for ratio in RATIOS
    }
    costs_us = {place: {f"{ratio:g}": cost for ratio, cost in costs.items()} for place, costs in by_place.items()}
    return Figures(source, kind, work, plain_us, costs_us, pairs, lost, costs_of_filter)


@click.command()
@click.option("--source", "sources", multiple=True, default=("parquet", "json"), show_default=True)
@click.option("--filter", "kinds", multiple=True, type=click.Choice(("cheap", "string", "costly")), default=("cheap",))
@click.option("--work", default=200, show_default=True, help="Sines per row that passes.")
@click.option("--filter-work", default=20, show_default=True, help="Sines of the costly filter, per row.")
@click.option("--rows", default=200_000, show_default=True, help="Rows per micro-batch.")
@click.option("--rounds", default=6, show_default=True)
@click.option("--warm-up", default=4, show_default=True, help="Rounds before, which do not count.")
@click.option("--json", "as_json", is_flag=True, help="Print the figures as JSON.")
def main(
    sources: tuple[str, ...],
    kinds: tuple[str, ...],
    work: int,
    filter_work: int,
    rows: int,
    rounds: int,
    warm_up: int,
    as_json: bool,
) -> None:
    """Compare shedding before and after a filter."""
    shed_fixed_ratios()
    with local_session("slackwater-bench-place") as spark:
        found = [
            compare(spark, source, kind, work, filter_work, rows, warm_up, rounds)
            for source in sources
            for kind in kinds
        ]
    if as_json:
        click.echo(json.dumps([asdict(one) for one in found], indent=2))
        return
    table = Table(title="processor time in µs per row read, by shed ratio; useful rows lost to reach a budget")
    columns = ("source", "filter", "sines", "plain", "place", *(f"{r:.0%}" for r in RATIOS))
    for column in (*columns, *(f"lost at {b:.0%}" for b in BUDGETS)):
        table.add_column(column, justify="right")
    for one in found:
        for place, costs in one.costs_us.items():
            cells: list[Any] = [one.source, one.filter, str(one.sines), f"{one.plain_us:.2f}", place]
            cells += [f"{cost:.2f}" for cost in costs.values()]
            cells += [f"{one.useful_lost[f'{budget:g}'][place]:.0%}" for budget in BUDGETS]
            table.add_row(*cells)
    Console(width=140).print(table)


if __name__ == "__main__":
    main()
