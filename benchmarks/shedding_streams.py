"""Two promised streams in one query on Spark, with different targets: what each loses, and its delay.

    python benchmarks/shedding_streams.py
    python benchmarks/shedding_streams.py --load 1 0.8 --target 3 6 --seconds 60 --json

A row waits two milliseconds, so two cores process a thousand rows per second, less the fixed cost of micro-batches. The
first stream has the shorter target. Loads are multiples of the capacity; the figures are those of the second half of
each run.
"""

from __future__ import annotations

import json
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path

import click
import numpy as np
from pyspark.sql import SparkSession
from rich.console import Console
from rich.table import Table

import slackwater as sw
from replay_source import replay
from shedding_query import Plant, expensive, identify, recorded_outcomes, start, warm_up
from slackwater.sim.shedding import rows_from_rates
from slackwater.spark.command.session import local_session
from slackwater.spark.timeliness.tracker import BatchOutcome

STREAMS = ("urgent", "patient")
CASES = ((1.5, 0.5), (1.0, 1.0), (0.5, 1.5))
CALM_S = 8
CALM_RATIO = 0.2
"""The load at the start, for a few seconds, as a share of the load."""
TRIGGER = "100 milliseconds"


@dataclass
class Figures:
    """One stream in one run, after it has settled."""

    stream: str
    load: float
    other_load: float
    target_s: float
    mean_delay_s: float
    loss_ratio: float
    batches: int


def settled(history: list[BatchOutcome], after_s: float) -> list[BatchOutcome]:
    """The micro-batches with a delay that began after a time."""
    return [o for o in history if o.batch.started_s >= after_s and o.decision.delay_s is not None and o.batch.kept]


def run(
    spark: SparkSession, loads: tuple[float, ...], targets_s: tuple[float, ...], plant: Plant, seconds: int, to: Path
) -> list[Figures]:
    """One run of both streams."""
    to.mkdir(parents=True)
    start_s = time.time() + 3.0
    capacity_per_s = plant.capacity_per_s(targets_s[0])
    promised = []
    for name, load, target_s in zip(STREAMS, loads, targets_s, strict=True):
        rates = np.full(seconds, load * capacity_per_s)
        rates[:CALM_S] *= CALM_RATIO
        np.save(to / f"{name}.npy", rows_from_rates(rates))
        source = replay(spark, to / f"{name}.npy", int(start_s * 1e6), partitions=1)
        promised.append(sw.with_max_delay(source, target_s, arrival="arrived", name=f"{to.name}-{name}"))
    # both streams in each of the two tasks
    both = promised[0].unionByName(promised[1]).repartition(2)
    history = recorded_outcomes()
    query = start(both, expensive(0, start_s), to, True, TRIGGER)
    query.awaitTermination(start_s + seconds - time.time())  # type: ignore[arg-type]  # Spark takes fractions
    targets = {delay.name: delay.promise.max_delay_s for delay in sw.report(query).timeliness}
    query.stop()
    assert targets == {f"{to.name}-{name}": target_s for name, target_s in zip(STREAMS, targets_s, strict=True)}
    found = []
    for number, name in enumerate(STREAMS):
        of_stream = settled(history[f"{to.name}-{name}"], start_s + seconds / 2)
        kept = np.array([outcome.batch.kept for outcome in of_stream])
        delays = np.array([outcome.decision.delay_s for outcome in of_stream])
        found.append(
            Figures(
                name,
                loads[number],
                loads[1 - number],
                targets_s[number],
                float((delays * kept).sum() / kept.sum()),
                1.0 - float(kept.sum()) / sum(outcome.batch.rows for outcome in of_stream),
                len(of_stream),
            )
        )
    return found


@click.command()
@click.option("--load", "loads", nargs=2, type=float, help="Loads of the two streams.  [default: three cases]")
@click.option("--target", "targets_s", nargs=2, type=float, default=(3.0, 8.0), show_default=True)
@click.option("--seconds", default=50, show_default=True, help="Length of a run.")
@click.option("--warm-up", "warm_up_s", default=20.0, show_default=True, help="Length of the warm-up in seconds.")
@click.option("--json", "as_json", is_flag=True, help="Print the figures as JSON.")
def main(
    loads: tuple[float, float] | None,
    targets_s: tuple[float, float],
    seconds: int,
    warm_up_s: float,
    as_json: bool,
) -> None:
    """Overload a query over two streams with different targets."""
    found: list[Figures] = []
    with local_session("slackwater-bench-streams") as spark, tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        plant = identify(spark, 0, warm_up(spark, 0, warm_up_s, folder), folder)
        for number, case in enumerate(CASES if loads is None else (loads,)):
            found += run(spark, case, targets_s, plant, seconds, folder / f"case-{number}")
    if as_json:
        click.echo(json.dumps({"plant": asdict(plant), "streams": [asdict(one) for one in found]}, indent=2))
        return
    table = Table(title="two streams in one query")
    for column in ("stream", "load", "load of the other", "target", "mean delay", "shed", "micro-batches"):
        table.add_column(column, justify="right")
    for one in found:
        cells = (f"{one.load:g}×", f"{one.other_load:g}×", f"{one.target_s:g} s", f"{one.mean_delay_s:.2f} s")
        table.add_row(one.stream, *cells, f"{one.loss_ratio:.1%}", str(one.batches))
    Console(width=120).print(table)


if __name__ == "__main__":
    main()
