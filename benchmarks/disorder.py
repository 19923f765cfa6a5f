"""Every method of disorder control on every trace with two clocks: who keeps the promise, and at what wait.

    python benchmarks/disorder.py [--data DIR] [--only generated|real] [--methods A,B] [--seeds 3] [--batches N]
                                  [--keep FILE] [--json] [--speed [--rows N]]

A cell is one trace at one drop ratio. Recorded traces: each session of ooo_umts, each session of winlog_pipeline
with its sources (host, channel), bike_trips, and nyc_flights by departure and by scheduled arrival; they are left
out where the data is not there. Generated streams: every registered one, three seeds each. Heartbeats move at every
row on traces of up to 10 000 rows, else so that there are at most 10 000 of them (``--batches``). Source heartbeats run
only where a stream carries punctuations. ``--keep`` writes each finished trace to a file and takes up from it.
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

from slackwater.control.disorder import method_names
from slackwater.sim.compare import DEFAULT_RATIOS, Cell, compare, methods_for
from slackwater.sim.driver import Batches
from slackwater.sim.streams import make_stream, stream_names
from slackwater.sim.streams.kim2012 import kim2012_constant
from slackwater.sim.streams.punctuated import punctuated
from slackwater.sim.trace import Trace

DATA = Path(__file__).resolve().parents[1].parent / "shared" / "data"
BATCHES = 10_000
Task = tuple[str, str, tuple[str, ...], str, int]


def _trace(name: str, table: pd.DataFrame, event: str, arrival: str, sources: list[str]) -> Trace:
    table = table.sort_values(arrival, kind="stable")
    codes = table.groupby(sources, sort=False, observed=True).ngroup().to_numpy().astype(np.int64) if sources else None

    def milliseconds(column: str) -> np.ndarray[Any, np.dtype[np.float64]]:
        stamps = table[column].dt.tz_convert(None).to_numpy().astype("datetime64[us]")
        return np.asarray(stamps.astype(np.int64) / 1e3)

    return Trace(name, milliseconds(event), milliseconds(arrival), codes)


def real_traces(data: Path) -> Iterator[Trace]:
    """The recorded traces with two clocks that are there."""
    for name, sources in (("ooo_umts", []), ("winlog_pipeline", ["host", "channel"])):
        path = data / f"{name}.parquet"
        if path.exists():
            for session, rows in pd.read_parquet(path).groupby("session", sort=True):
                yield _trace(f"{name}/{session}", rows, "event_ts", "arrival_ts", sources)
    if (data / "bike_trips.parquet").exists():
        yield _trace("bike_trips", pd.read_parquet(data / "bike_trips.parquet"), "event_ts", "arrival_ts", [])
    if (data / "nyc_flights.parquet").exists():
        flights = pd.read_parquet(data / "nyc_flights.parquet")
        yield _trace("nyc_flights/departure", flights, "dep_ts", "arr_ts", [])
        yield _trace("nyc_flights/scheduled", flights, "sched_arr_ts", "arr_ts", [])


@cache
def _cached(data: str) -> dict[str, Trace]:
    return {trace.name: trace for trace in real_traces(Path(data))}


def run_task(task: Task) -> tuple[Task, list[Cell]]:
    """All cells of one trace."""
    kind, name, methods, data, most = task
    if kind == "generated":
        stream, seed = name.split(":")
        trace = make_stream(stream, int(seed))
    else:
        trace = _cached(data)[name]
    batches = Batches.every(trace, max(1, -(-trace.rows // most)))
    usable = [method for method in methods_for(trace) if not methods or method in methods]
    return task, list(compare(trace, usable, DEFAULT_RATIOS, batches))


def all_tasks(only: str | None, data: Path, methods: tuple[str, ...], seeds: int, batches: int) -> list[Task]:
    """Recorded traces, the short ones first, then generated streams, seed by seed."""
    tasks: list[Task] = []
    if only != "generated":
        sized = sorted((trace.rows, trace.name) for trace in real_traces(data))
        tasks += [("real", name, methods, str(data), batches) for _, name in sized]
    if only != "real":
        names = [f"{stream}:{seed}" for seed in range(seeds) for stream in stream_names()]
        tasks += [("generated", name, methods, "", batches) for name in names]
    return tasks


def as_line(task: Task, cells: list[Cell]) -> str:
    """A finished trace, as ``--keep`` writes it."""
    return json.dumps({"task": task, "cells": [asdict(cell) for cell in cells]})


def finished(tasks: list[Task], processes: int, keep: Path | None) -> Iterator[tuple[Task, list[Cell]]]:
    """Every task with its cells: from the file of finished ones if it is there, else run now."""
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
    """Per method: cells kept, the worst multiple of the bound, waits over the kept cells, speed."""
    lines = []
    for method, cells in sorted(results.items()):
        line: dict[str, Any] = {"method": method}
        for kind in ("real", "generated"):
            of_kind = [cell for which, _, cell in cells if which == kind]
            line[f"{kind}_cells"] = len(of_kind)
            line[f"{kind}_kept"] = sum(cell.kept for cell in of_kind)
            over = [(cell.drop_ratio / cell.target_drop_ratio) for cell in of_kind]
            line[f"{kind}_worst_ratio_to_bound"] = max(over, default=None)
            waits = [cell.wait_ratio for cell in of_kind if cell.kept and cell.wait_ratio is not None]
            line[f"{kind}_median_wait_ratio"] = median(waits) if waits else None
            line[f"{kind}_mean_wait_ratio"] = mean(waits) if waits else None
        waits = [cell.wait_ratio for _, _, cell in cells if cell.kept and cell.wait_ratio is not None]
        line["median_wait_ratio"] = median(waits) if waits else None
        line["mean_wait_ratio"] = mean(waits) if waits else None
        rows_s = sum(cell.rows for _, _, cell in cells), sum(cell.rows / cell.rows_per_s for _, _, cell in cells)
        line["rows_per_s"] = rows_s[0] / rows_s[1] if rows_s[1] else None
        lines.append(line)
    return lines


def speeds(methods: tuple[str, ...]) -> list[dict[str, Any]]:
    """Rows per second of each method at 1 %, with large batches and with a heartbeat at every row."""
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
    """Seconds of processor time of each method at 1 % for so many rows, in batches as the laboratory takes them."""
    trace = kim2012_constant(0, rows)
    lines = []
    for method in methods or methods_for(trace):
        (cell,) = compare(trace, [method], [0.01])
        lines.append({"method": method, "rows": rows, "seconds": rows / cell.rows_per_s, "kept": cell.kept})
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--only", choices=["real", "generated"])
    parser.add_argument("--methods", default="")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--processes", type=int, default=2, choices=[1, 2])
    parser.add_argument("--batches", type=int, default=BATCHES, help="at most so many heartbeats a trace")
    parser.add_argument("--speed", action="store_true", help="only rows per second of each method, on one stream")
    parser.add_argument("--rows", type=int, help="with --speed: seconds for so many rows of a steady stream")
    parser.add_argument("--keep", type=Path, help="a file of finished traces: written, and taken up from")
    parser.add_argument("--json", action="store_true", help="summary and every cell as JSON")
    arguments = parser.parse_args()
    methods = tuple(name for name in arguments.methods.split(",") if name)
    unknown = set(methods) - set(method_names())
    if unknown:
        sys.exit(f"no such method: {', '.join(sorted(unknown))}; use some of: {', '.join(method_names())}")
    if arguments.speed:
        for line in speeds_at(methods, arguments.rows) if arguments.rows else speeds(methods):
            print(json.dumps(line))
        return
    tasks = all_tasks(arguments.only, arguments.data, methods, arguments.seeds, arguments.batches)
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
    console.print("worst: of the bound; waits: of the clairvoyant wait, over the kept cells")


if __name__ == "__main__":
    main()
