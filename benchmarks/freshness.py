"""How fresh results are on real Spark: a promise against plain ``withWatermark`` with the best constant delay.

    python benchmarks/freshness.py                                   # the whole matrix, some hours
    python benchmarks/freshness.py --rates 1000 --triggers 0,1s --ratios 1% --seconds 120 --traces none
    python benchmarks/freshness.py --keep cells.jsonl --json         # resumes from the file

A cell is one stream, one trigger and one drop ratio. First a query runs under the promise. From its rows and its
micro-batches the best constant delay for plain Spark is computed, which nobody knows in advance. Then plain Spark
really runs with that delay, over the same rows from a new start on. Its micro-batches differ, so the delay that was
best in them is computed too (``hindsight``). ``--together`` runs that many drop ratios beside each other, both times.
Both queries count rows per window; a window is about as long as the clairvoyant wait.

The streams are the readings of ``slackwater demo``, and recorded traces replayed in real time (``--traces``), faster
than they were recorded. Figures of both queries are counted in the same way, from the rows, the micro-batches and the
watermark in force in each.
"""

from __future__ import annotations

import itertools
import json
import tempfile
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import click
import numpy as np
from pyspark.sql import SparkSession
from rich.console import Console

from freshness_cells import Cell, Key, append_cells, read_cells, summary, table_of
from freshness_figures import (
    best_delay_ms,
    decision_ages,
    figures_of,
    hindsight_of,
    simulated_wait_s,
)
from freshness_queries import CommitTimes, FinishedRun, Query, Windows, constant, promised, run_together
from freshness_streams import DEFAULT_TRACES, TRACES, Generated, LiveStream, replayed
from recorded_data import data_folder
from slackwater.errors import InvalidOption
from slackwater.sim.driver import clairvoyant_wait
from slackwater.spark.command.session import local_session
from slackwater.spark.worker.generator_source import SHAPES
from slackwater.units import duration_ms, percent, ratio

WARM_UP_S = 45.0
SHORTEST_WINDOW_MS = 100
MEMORY = "2g"
WIDTH = 150


@dataclass(frozen=True, slots=True)
class Selection:
    """The cells to run."""

    shapes: list[str]
    rates_per_s: list[int]
    traces: list[str]
    triggers_ms: list[int]
    ratios: list[float]
    seconds: float
    together: int
    seed: int

    @classmethod
    def parse(
        cls,
        shapes: str,
        rates: str,
        traces: str,
        triggers: str,
        ratios: str,
        seconds: float,
        together: int,
        seed: int,
    ) -> Selection:
        """The selection from the options of the command; raises ``click.BadParameter``."""
        try:
            triggers_ms = [0 if t == "0" else round(duration_ms(t, option="--triggers")) for t in _split(triggers)]
            parsed = [ratio(text, option="--ratios") for text in _split(ratios)]
            rates_per_s = [int(text) for text in _split(rates)]
        except (InvalidOption, ValueError) as error:
            raise click.BadParameter(str(error)) from None
        if 0 in parsed:
            raise click.BadParameter("0 is best effort and promises nothing; give a ratio above 0")
        for given, known in ((_split(shapes), SHAPES), (_split(traces), tuple(TRACES))):
            if unknown := set(given) - set(known):
                raise click.BadParameter(f"unknown {', '.join(sorted(unknown))}; use some of: {', '.join(known)}")
        return cls(_split(shapes), rates_per_s, _split(traces), triggers_ms, parsed, seconds, max(1, together), seed)

    def groups(self, folder: Path, done: set[Key]) -> Iterator[tuple[LiveStream, int, list[float]]]:
        """Stream, trigger in milliseconds, and the drop ratios to run beside each other; without those done."""
        streams: list[LiveStream] = [
            Generated.of(shape, rate_per_s, self.seconds, self.seed)
            for shape in self.shapes
            for rate_per_s in self.rates_per_s
        ]
        streams += replayed(data_folder(), self.traces, self.seconds, folder)
        for stream, trigger_ms in itertools.product(streams, self.triggers_ms):
            left = [r for r in self.ratios if (stream.name, trigger_ms / 1e3, r, self.seconds) not in done]
            for first in range(0, len(left), self.together):
                yield stream, trigger_ms, left[first : first + self.together]


def _split(text: str) -> list[str]:
    return [] if text == "none" else [part.strip() for part in text.split(",") if part.strip()]


class Bench:
    """Runs cells in one Spark session."""

    def __init__(self, spark: SparkSession, folder: Path, batches: Path | None) -> None:
        self._spark = spark
        self._folder = folder
        self._batches = batches
        self._times = CommitTimes.of(spark)

    def warm_up(self) -> None:
        """Run both kinds of query, so that Java compiles what they need."""
        stream, windows = Generated.of("steady", 1000, WARM_UP_S, seed=1), Windows(1000, 0)
        for under in (promised(0.01), constant(1000)):
            self._run(stream, [(under, windows)], WARM_UP_S)

    def cells(self, stream: LiveStream, trigger_ms: int, ratios: list[float], seconds: float) -> Iterator[Cell]:
        """Run the promise at these drop ratios beside each other, then plain Spark with the best constants."""
        rows = stream.trace(0)
        windows = [Windows(_window_ms(clairvoyant_wait(rows, promised_ratio)), trigger_ms) for promised_ratio in ratios]
        promises = self._run(stream, list(zip(map(promised, ratios), windows, strict=True)), seconds)
        delays_ms = [
            best_delay_ms(run, stream.trace(run.start_us), promised_ratio)
            for run, promised_ratio in zip(promises, ratios, strict=True)
        ]
        plains = self._run(stream, list(zip(map(constant, delays_ms), windows, strict=True)), seconds)
        for promised_ratio, delay_ms, promise, plain in zip(ratios, delays_ms, promises, plains, strict=True):
            if self._batches is not None:
                name = f"{stream.name} {trigger_ms} {promised_ratio}.npz".replace("/", " per ")
                _save(self._batches / name, promise, plain)
            trace, plain_trace = stream.trace(promise.start_us), stream.trace(plain.start_us)
            yield Cell(
                stream.name,
                trigger_ms / 1e3,
                promised_ratio,
                seconds,
                len(ratios),
                delay_ms / 1e3,
                promise.window_ms / 1e3,
                figures_of(promise, trace, promised_ratio),
                figures_of(plain, plain_trace, promised_ratio, delay_ms),
                hindsight_of(plain, plain_trace, promised_ratio),
                simulated_wait_s(promise, trace, promised_ratio),
                decision_ages(promise),
            )

    def _run(self, stream: LiveStream, queries: list[Query], seconds: float) -> list[FinishedRun]:
        return run_together(self._spark, self._times, stream, queries, self._folder, seconds)


def _save(path: Path, promise: FinishedRun, plain: FinishedRun) -> None:
    """Write the micro-batches of both queries to a file, for a closer look."""
    columns: dict[str, np.ndarray[Any, Any]] = {}
    for name, run in (("promise", promise), ("plain", plain)):
        parts = run.batches
        fields = {
            "start_us": np.array(run.start_us),
            "ends": parts.ends,
            "planned": parts.planned,
            "committed": parts.committed,
            "watermarks": run.watermarks,
            "chosen_at": run.chosen_at,
            "decided_from": run.decided_from,
            "heard": run.heard,
        }
        columns |= {f"{name}_{column}": values for column, values in (fields | run.phases).items()}
    path.parent.mkdir(parents=True, exist_ok=True)
    np.savez(path, allow_pickle=False, **columns)


def _window_ms(wait_ms: float) -> int:
    """About the clairvoyant wait, in steps of 100 ms."""
    return max(SHORTEST_WINDOW_MS, round(wait_ms / 100) * 100)


def run_all(selection: Selection, keep: Path | None, batches: Path | None, console: Console) -> list[Cell]:
    """Run the selected cells that are not in the file, and return all of the file's and the new ones."""
    cells = read_cells(keep)
    done = {cell.key for cell in cells}
    conf = {
        "spark.driver.memory": MEMORY,
        "spark.sql.streaming.numRecentProgressUpdates": "100000",
        "spark.sql.streaming.pollingDelay": "50ms",  # a query that waits for its first row must not keep a core busy
    }
    prefix = "slackwater-freshness-"
    with tempfile.TemporaryDirectory(prefix=prefix, ignore_cleanup_errors=True) as temporary:
        folder = Path(temporary)
        groups = list(selection.groups(folder / "traces", done))
        if not groups:
            return cells
        with local_session("freshness", **conf) as spark:
            bench = Bench(spark, folder, batches)
            with console.status("warming up"):
                bench.warm_up()
            for number, (stream, trigger_ms, ratios) in enumerate(groups, 1):
                at = ", ".join(map(percent, ratios))
                what = f"{number} of {len(groups)}: {stream.name}, trigger {trigger_ms / 1e3:g} s, {at}"
                with console.status(what):
                    new = list(bench.cells(stream, trigger_ms, ratios, selection.seconds))
                append_cells(keep, new)
                cells += new
                console.print(table_of(new))
    return cells


@click.command(help=(__doc__ or "").split("\n")[0])
@click.option("--shapes", default="tour", show_default=True, help=f"Shapes of the readings: {', '.join(SHAPES)}.")
@click.option("--rates", default="1000,10000,50000", show_default=True, help="Readings per second, or 'none'.")
@click.option("--traces", default=",".join(DEFAULT_TRACES), show_default=True, help="Recorded traces, or 'none'.")
@click.option("--triggers", default="0,1s,5s", show_default=True, help="Trigger intervals; 0: back to back.")
@click.option("--ratios", default="5%,1%,0.1%", show_default=True, help="Drop ratios to promise.")
@click.option("--seconds", default=300.0, show_default=True, help="Length of each run.")
@click.option("--together", default=1, show_default=True, help="Drop ratios beside each other in one session.")
@click.option("--seed", default=0, show_default=True, help="Seed of the readings.")
@click.option("--keep", type=click.Path(path_type=Path), help="File of finished cells: appended to, and resumed from.")
@click.option("--batches", type=click.Path(path_type=Path), help="Folder for the micro-batches of each cell.")
@click.option("--json", "as_json", is_flag=True, help="Print the cells as JSON.")
def main(keep: Path | None, batches: Path | None, as_json: bool, **options: Any) -> None:
    selection = Selection.parse(**options)
    cells = run_all(selection, keep, batches, Console(stderr=True, width=WIDTH))
    if as_json:
        print(json.dumps({"summary": summary(cells), "cells": [asdict(c) | {"ratios": c.ratios} for c in cells]}))
        return
    output = Console(width=WIDTH)
    output.print(table_of(cells))
    output.print(summary(cells))


if __name__ == "__main__":
    main()
