"""Runs every disorder control method on every trace with two clocks: is the promise kept, and at what wait?

    python benchmarks/disorder.py [--data DIR] [--only generated|real] [--methods A,B] [--seeds 3] [--batches N]
                                  [--triggers 0.25,1,4] [--keep FILE] [--json] [--speed [--rows N]]

A cell is one trace at one drop ratio. The recorded traces are the sessions of ooo_umts, the sessions of
winlog_pipeline and winlog_purplesharp_ad_25 with their sources (host, channel), bike_trips, nyc_flights by departure
and by scheduled arrival, lorawan_frames, pge_outages and git_commits. Missing files are skipped. The generated streams
are all registered ones with three seeds each, but for ``drawn``, on which constants are chosen. A trace has at most
10 000 heartbeats (``--batches``), or one per row. The method source-heartbeat runs only on streams with punctuations.
``--triggers`` runs the methods under Spark's conditions instead, with trigger intervals of these multiples of the
clairvoyant wait; waits are then multiples of that under the best constant delay for ``withWatermark``.
``--keep`` writes each finished trace to a file and skips the traces that are in it.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import defaultdict
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict
from functools import cache
from pathlib import Path
from statistics import mean, median
from typing import Any

import numpy as np
import pandas as pd
from rich.console import Console
from rich.progress import track
from rich.table import Table

from recorded_data import data_folder
from slackwater.control.disorder import method_names
from slackwater.sim.compare import DEFAULT_RATIOS, Cell, compare, methods_for
from slackwater.sim.driver import Batches, clairvoyant_wait
from slackwater.sim.spark_batches import SparkBatches, Trigger
from slackwater.sim.streams import make_stream, stream_names
from slackwater.sim.streams.kim2012 import kim2012_constant
from slackwater.sim.streams.punctuated import punctuated
from slackwater.sim.trace import Trace

BATCHES = 10_000
CHOSEN_ON = "drawn"
Task = tuple[str, str, tuple[str, ...], str, int, tuple[float, ...]]


def _trace(name: str, table: pd.DataFrame, event: str, arrival: str, sources: list[str]) -> Trace:
    table = table.sort_values(arrival, kind="stable")
    codes = table.groupby(sources, sort=False, observed=True).ngroup().to_numpy().astype(np.int64) if sources else None

    def milliseconds(column: str) -> np.ndarray[Any, np.dtype[np.float64]]:
        stamps = table[column].dt.tz_convert(None).to_numpy().astype("datetime64[us]")
        return np.asarray(stamps.astype(np.int64) / 1e3)

    return Trace(name, milliseconds(event), milliseconds(arrival), codes)


def real_traces(data: Path) -> Iterator[Trace]:
    """The recorded traces with two clocks, as far as their files exist."""
    for name, sources in (("ooo_umts", []), ("winlog_pipeline", ["host", "channel"])):
        path = data / f"{name}.parquet"
        if path.exists():
            for session, rows in pd.read_parquet(path).groupby("session", sort=True):
                yield _trace(f"{name}/{session}", rows, "event_ts", "arrival_ts", sources)
    if (data / "bike_trips.parquet").exists():
        yield _trace("bike_trips", pd.read_parquet(data / "bike_trips.parquet"), "event_ts", "arrival_ts", [])
    for name, sources in (
        ("lorawan_frames", []),
        ("pge_outages", []),
        ("git_commits", []),
        ("winlog_purplesharp_ad_25", ["host", "channel"]),
    ):
        if (data / f"{name}.parquet").exists():
            rows = pd.read_parquet(data / f"{name}.parquet").dropna(subset=["event_ts", "arrival_ts"])
            yield _trace(name, rows, "event_ts", "arrival_ts", sources)
    if (data / "nyc_flights.parquet").exists():
        flights = pd.read_parquet(data / "nyc_flights.parquet")
        yield _trace("nyc_flights/departure", flights, "dep_ts", "arr_ts", [])
        yield _trace("nyc_flights/scheduled", flights, "sched_arr_ts", "arr_ts", [])


@cache
def _traces_by_name(data: str) -> dict[str, Trace]:
    return {trace.name: trace for trace in real_traces(Path(data))}


def run_task(task: Task) -> tuple[Task, list[Cell]]:
    """Compute all cells of one trace."""
    kind, name, methods, data, max_batches, triggers = task
    if kind == "generated":
        stream, seed = name.split(":")
        trace = make_stream(stream, int(seed))
    else:
        trace = _traces_by_name(data)[name]
    usable = [method for method in methods_for(trace) if not methods or method in methods]
    if triggers:
        return task, list(_under_spark(trace, usable, max_batches, triggers))
    batches = Batches.every(trace, max(1, -(-trace.rows // max_batches)))
    return task, list(compare(trace, usable, DEFAULT_RATIOS, batches))


def _under_spark(trace: Trace, methods: list[str], max_batches: int, triggers: tuple[float, ...]) -> Iterator[Cell]:
    """The cells of a trace with a clock in which at least three rows may be late and the clairvoyant wait is not 0."""
    if trace.arrivals is None:
        return
    for ratio in DEFAULT_RATIOS:
        wait = clairvoyant_wait(trace, ratio)
        if wait <= 0 or ratio * trace.rows < 3:
            continue
        shortest = (trace.arrivals[-1] - trace.arrivals[0]) / max_batches
        for multiple in triggers:
            batches = SparkBatches.of(trace, Trigger(max(multiple * wait, shortest)))
            yield from compare(trace, methods, [ratio], batches)


def all_tasks(
    only: str | None,
    data: Path,
    methods: tuple[str, ...],
    seeds: int,
    batches: int,
    triggers: tuple[float, ...] = (),
) -> list[Task]:
    """Recorded traces, shortest first, then generated streams, seed by seed."""
    tasks: list[Task] = []
    if only != "generated":
        sized = sorted((trace.rows, trace.name) for trace in real_traces(data))
        tasks += [("real", name, methods, str(data), batches, triggers) for _, name in sized]
    if only != "real":
        names = [f"{stream}:{seed}" for seed in range(seeds) for stream in stream_names() if stream != CHOSEN_ON]
        tasks += [("generated", name, methods, "", batches, triggers) for name in names]
    return tasks


def as_line(task: Task, cells: list[Cell]) -> str:
    """The line of the ``--keep`` file for a finished trace."""
    return json.dumps({"task": task, "cells": [asdict(cell) for cell in cells]})


def finished(tasks: list[Task], processes: int, keep: Path | None) -> Iterator[tuple[Task, list[Cell]]]:
    """Yield every task with its cells, read from the ``keep`` file or computed in ``processes`` processes."""
    done = {}
    if keep is not None and keep.exists():
        for line in keep.read_text().splitlines():
            entry = json.loads(line)
            done[json.dumps(entry["task"])] = [Cell(**cell) for cell in entry["cells"]]
    left = []
    for task in tasks:
        cells = done.get(json.dumps(task))
        if cells is None:
            left.append(task)
        else:
            yield task, cells
    if not left:
        return
    with ProcessPoolExecutor(processes) as pool:
        for task, cells in pool.map(run_task, left):
            if keep is not None:
                with keep.open("a") as file:
                    file.write(as_line(task, cells) + "\n")
            yield task, cells


def summary(results: dict[str, list[tuple[str, str, Cell]]]) -> list[dict[str, Any]]:
    """Per method: kept cells, worst multiple of the bound, wait ratios over kept cells, and speed."""
    lines = []
    for method, cells in sorted(results.items()):
        line: dict[str, Any] = {"method": method}
        for kind in ("real", "generated"):
            of_kind = [cell for cell_kind, _, cell in cells if cell_kind == kind]
            line[f"{kind}_cells"] = len(of_kind)
            line[f"{kind}_kept"] = sum(cell.kept for cell in of_kind)
            over = [(cell.drop_ratio / cell.target_drop_ratio) for cell in of_kind]
            line[f"{kind}_worst_ratio_to_bound"] = max(over, default=None)
            waits = [cell.wait_ratio for cell in of_kind if cell.kept and cell.wait_ratio is not None]
            line[f"{kind}_median_wait_ratio"] = median(waits) if waits else None
            line[f"{kind}_mean_wait_ratio"] = mean(waits) if waits else None
            line[f"{kind}_p90_wait_ratio"] = float(np.quantile(waits, 0.9)) if waits else None
            line[f"{kind}_over_3x"] = sum(ratio > 3 for ratio in over)
        waits = [cell.wait_ratio for _, _, cell in cells if cell.kept and cell.wait_ratio is not None]
        line["median_wait_ratio"] = median(waits) if waits else None
        line["mean_wait_ratio"] = mean(waits) if waits else None
        rows_s = sum(cell.rows for _, _, cell in cells), sum(cell.rows / cell.rows_per_s for _, _, cell in cells)
        line["rows_per_s"] = rows_s[0] / rows_s[1] if rows_s[1] else None
        lines.append(line)
    return lines


def speeds(methods: tuple[str, ...]) -> list[dict[str, Any]]:
    """Rows per second of each method at 1 %, with batches of 1 000 rows and of one row."""
    lines = []
    for method in methods or method_names():
        line: dict[str, Any] = {"method": method}
        for rows, every in ((300_000, 1_000), (10_000, 1)):
            trace = punctuated(0, rows)
            (cell,) = compare(trace, [method], [0.01], Batches.every(trace, every))
            line[f"rows_per_s_every_{every}"] = cell.rows_per_s
        lines.append(line)
    return lines


def speeds_at(methods: tuple[str, ...], rows: int) -> list[dict[str, Any]]:
    """Seconds of processor time of each method at 1 % for ``rows`` rows, with the batches of ``slackwater lab``."""
    trace = kim2012_constant(0, rows)
    lines = []
    for method in methods or methods_for(trace):
        (cell,) = compare(trace, [method], [0.01])
        lines.append({"method": method, "rows": rows, "seconds": rows / cell.rows_per_s, "kept": cell.kept})
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=data_folder(), help="folder of recorded traces")
    parser.add_argument("--only", choices=["real", "generated"], help="run only these traces")
    parser.add_argument("--methods", default="", help="run only these methods, comma-separated")
    parser.add_argument("--seeds", type=int, default=3, help="seeds per generated stream")
    parser.add_argument("--processes", type=int, default=2, choices=[1, 2])
    parser.add_argument("--batches", type=int, default=BATCHES, help="maximum number of heartbeats per trace")
    parser.add_argument("--triggers", default="", help="run under Spark's conditions, at these multiples of the wait")
    parser.add_argument("--speed", action="store_true", help="measure only the rows per second of each method")
    parser.add_argument("--rows", type=int, help="with --speed: seconds for this many rows of a steady stream")
    parser.add_argument("--keep", type=Path, help="file of finished traces: appended to, and resumed from")
    parser.add_argument("--json", action="store_true", help="print summary and cells as JSON")
    arguments = parser.parse_args()
    methods = tuple(name for name in arguments.methods.split(",") if name)
    unknown = set(methods) - set(method_names())
    if unknown:
        sys.exit(f"unknown method {', '.join(sorted(unknown))}; use one of: {', '.join(method_names())}")
    if arguments.speed:
        for line in speeds_at(methods, arguments.rows) if arguments.rows else speeds(methods):
            print(json.dumps(line))
        return
    triggers = tuple(float(multiple) for multiple in arguments.triggers.split(",") if multiple)
    tasks = all_tasks(arguments.only, arguments.data, methods, arguments.seeds, arguments.batches, triggers)
    console = Console(stderr=arguments.json)
    results: dict[str, list[tuple[str, str, Cell]]] = defaultdict(list)
    for task, cells in track(
        finished(tasks, arguments.processes, arguments.keep),
        total=len(tasks),
        description="traces",
        console=Console(stderr=True),
    ):
        for cell in cells:
            results[cell.method].append((task[0], task[1], cell))
    lines = summary(results)
    if arguments.json:
        every = [
            {"kind": kind, "trace": trace, "kept": cell.kept, "late": cell.late, **cell.as_json("s", 1e3)}
            for cells in results.values()
            for kind, trace, cell in cells
        ]
        print(json.dumps({"summary": lines, "cells": every}, indent=1))
        return
    table = Table(title=f"{len(tasks)} traces × {len(DEFAULT_RATIOS)} drop ratios")
    table.add_column("method", no_wrap=True)
    for column in ("kept real", "kept gen.", "worst real", "worst gen.", "median wait", "mean wait", "rows/s"):
        table.add_column(column, justify="right", no_wrap=True)

    def times(value: float | None) -> str:
        return "–" if value is None else f"{value:.2f}×"

    for line in lines:
        table.add_row(
            line["method"],
            f"{line['real_kept']}/{line['real_cells']}",
            f"{line['generated_kept']}/{line['generated_cells']}",
            times(line["real_worst_ratio_to_bound"]),
            times(line["generated_worst_ratio_to_bound"]),
            times(line["median_wait_ratio"]),
            times(line["mean_wait_ratio"]),
            f"{line['rows_per_s']:,.0f}",
        )
    console.print(table)
    console.print("worst: multiple of the bound; waits: multiple of the clairvoyant wait, over kept cells")


if __name__ == "__main__":
    main()
