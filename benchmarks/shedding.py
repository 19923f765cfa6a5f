"""Load shedding on Spark: overloads an expensive query and gives every law the same input.

    python benchmarks/shedding.py                     # all parts, about fifteen minutes
    python benchmarks/shedding.py --part overload --overload 2 --law ctrl-batch
    python benchmarks/shedding.py --trace counts.parquet --speed 10 --seconds 60

The parts are ``overload`` (delay, violations and loss per law), ``response`` (Spark's response to a step, Tu 2006,
Fig. 5), ``idle`` (the cost of the promise without overload), ``unbiased`` (estimated sums and counts against the exact
ones) and ``step`` (the cost of one controller step). The capacity of the query is measured first, and again before each
overload. Use an idle machine.
"""

from __future__ import annotations

import itertools
import json
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import click
import numpy as np
from numpy.typing import NDArray
from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from rich.console import Console
from rich.table import Table

import slackwater as sw
from recorded_data import data_folder
from shedding_plots import plot_response, plot_runs
from shedding_query import CostRise, FinishedRun, Plant, back_to_back, identify, run_law, warm_up
from slackwater.control.shedding import make_law
from slackwater.control.shedding.microbatch import MicroBatch, MicroBatchController
from slackwater.promises import Timeliness
from slackwater.sim.shedding import step_rates, web_rates
from slackwater.sim.shedding.recorded import read_arrivals
from slackwater.spark.command.session import local_session

Floats = NDArray[np.float64]

PARTS = ("overload", "response", "idle", "unbiased", "step")
LAWS = ("none", "aurora", "baseline", "ctrl", "ctrl-batch")
CALM_S = 5
RISE_S = 4
FULL_S = CALM_S + RISE_S
CALM_RATIO = 0.35
AFTER_S = 2
COST_FACTOR = 1.5
STEP_LOADS = (0.5, 0.8, 1.2, 1.6)
STEP_AT_S, STEP_S = 5, 16
IDLE_TURNS = 10


@dataclass
class Figures:
    """The figures of one law under one overload. Delays are from arrival to commit, of kept rows."""

    law: str
    overload: float
    overload_in_run: float
    mean_delay_s: float
    accumulated_violation_s: float
    delayed_rows: int
    max_overshoot_s: float
    loss_ratio: float
    planned_loss_ratio: float
    least_loss_ratio: float
    rows: int
    unfinished_rows: int
    batches: int
    in_time_ratio: float


def bursts(seconds: int, trace: Path | None, speed: float) -> tuple[Floats, Floats]:
    """Counts per second, each with a mean of one: a calm period, and the busiest period of the trace.

    Without a trace the counts are generated, with bursts like web traffic.
    """
    if trace is None:
        counts = web_rates(np.random.default_rng(2006), 10 * seconds, 100.0, sources=40)
    else:
        counts = np.bincount((read_arrivals(trace) / speed).astype(np.int64)).astype(np.float64)
    sums = np.convolve(counts, np.ones(seconds), mode="valid")
    first = int(sums.argmax())
    calm = counts[first - CALM_S : first] if first >= CALM_S else counts[first + seconds : first + seconds + CALM_S]
    busy = counts[first : first + seconds]
    return calm / calm.mean(), busy / busy.mean()


def overload_rates(
    plant: Plant, target_s: float, overload: float, seconds: int, trace: Path | None, speed: float
) -> tuple[Floats, CostRise]:
    """Rows per second of the input: calm, a rise to ``overload`` times the capacity, overload, and calm again.

    In the middle third of the overload a row costs half as much again; the capacity falls accordingly.
    """
    cost_rise = CostRise(FULL_S + seconds / 3, FULL_S + 2 * seconds / 3, COST_FACTOR)
    calm, busy = bursts(seconds, trace, speed)
    capacity_per_s = plant.capacity_per_s(target_s)
    mean_per_s = capacity_per_s * float(np.mean(1.0 / cost_rise.factors(FULL_S + np.arange(seconds, dtype=np.float64))))
    calm_per_s = CALM_RATIO * capacity_per_s
    rise = np.geomspace(calm_per_s, overload * mean_per_s, RISE_S + 2)[1:-1]
    parts = [calm_per_s * calm, rise, overload * mean_per_s * busy, np.full(AFTER_S, calm_per_s)]
    return np.concatenate(parts), cost_rise


def delays_and_shares(run: FinishedRun) -> tuple[Floats, Floats]:
    """For every row: its delay (NaN if it was never read), and the probability that it was kept."""
    delays_s, shares = np.full(len(run.arrivals_s), np.nan), np.zeros(len(run.arrivals_s))
    first = 0
    for record in run.history:
        batch = record.batch
        rows = slice(first, min(first + batch.rows, len(delays_s)))
        delays_s[rows] = batch.started_s + batch.duration_s - run.start_s - run.arrivals_s[rows]
        shares[rows] = batch.kept / batch.rows
        first += batch.rows
    return delays_s, shares


def capacity_in_run(run: FinishedRun, shares: Floats, plant: Plant, cost_rise: CostRise, target_s: float) -> float:
    """The capacity during the run / the capacity measured before it; assumes that the fixed cost did not change."""
    factors, first, work, spent_s = cost_rise.factors(run.arrivals_s), 0, 0.0, 0.0
    for record in run.history:
        rows = slice(first, first + record.batch.rows)
        first = rows.stop
        if run.arrivals_s[rows][0] >= CALM_S:
            work += float((factors[rows] * shares[rows]).sum())
            spent_s += record.batch.duration_s - plant.fixed_s
    return Plant(plant.fixed_s, spent_s / work).capacity_per_s(target_s) / plant.capacity_per_s(target_s)


def measure(
    law: str, overload: float, run: FinishedRun, plant: Plant, cost_rise: CostRise, target_s: float, seconds: int
) -> Figures:
    """Violations count from the start of the rise; delay and loss are those of the full overload."""
    delays_s, shares = delays_and_shares(run)
    unread = np.isnan(delays_s)
    # an unread row waited at least until the end of the run, and was not shed
    delays_s[unread], shares[unread] = np.maximum(run.end_s - run.arrivals_s[unread], 0.0), 1.0
    since_rise = run.arrivals_s >= CALM_S
    overloaded = (run.arrivals_s >= FULL_S) & (run.arrivals_s < FULL_S + seconds)
    excess_s = np.maximum(delays_s - target_s, 0.0)
    capacity_ratio = capacity_in_run(run, shares, plant, cost_rise, target_s)
    in_time = [abs(a.decision.shed_ratio - b.shed_ratio) < 1e-5 for a, b in itertools.pairwise(run.history)]
    return Figures(
        law=law,
        overload=overload,
        overload_in_run=overload / capacity_ratio,
        mean_delay_s=float((delays_s * shares)[overloaded].sum() / shares[overloaded].sum()),
        accumulated_violation_s=float((excess_s * shares)[since_rise].sum()),  # Tu 2006, §5
        delayed_rows=round(float(shares[since_rise & (excess_s > 0)].sum())),
        max_overshoot_s=float(excess_s[since_rise].max()),
        loss_ratio=float(1.0 - shares[overloaded].sum() / overloaded.sum()),
        planned_loss_ratio=1.0 - 1.0 / overload,
        least_loss_ratio=max(1.0 - capacity_ratio / overload, 0.0),
        rows=len(run.arrivals_s),
        unfinished_rows=int(unread.sum()),
        batches=len(run.history),
        in_time_ratio=float(np.mean(in_time)),
    )


def response(spark: SparkSession, plant: Plant, work: int, target_s: float, folder: Path, out: Path) -> dict[str, Any]:
    """Spark's response to steps of the load, without shedding, against the model D(k+1) = d0 + c·λ·W(k)."""
    runs, before = {}, plant
    for load in STEP_LOADS:
        high_per_s = load / plant.cost_s
        rates = step_rates(STEP_S, 0.2 / plant.cost_s, high_per_s, at_s=STEP_AT_S)
        runs[load] = run_law(spark, "none", rates, target_s, work, folder / f"step-{load:g}")
    # identify the plant from the steps themselves: a line through all batches except the first two of each run
    points = np.array([(r.batch.rows, r.batch.duration_s) for run in runs.values() for r in run.history[2:]])
    cost_s, fixed_s = np.polyfit(points[:, 0], points[:, 1], 1)
    explained = float(np.corrcoef(points[:, 0], points[:, 1])[0, 1] ** 2)
    plant = Plant(float(fixed_s), float(cost_s))
    # rescale the loads to the cost per row found here
    runs = {load * plant.cost_s / before.cost_s: run for load, run in runs.items()}
    plot_response(out / "response.png", runs, plant, STEP_AT_S)
    result: dict[str, Any] = {"plant": asdict(plant), "explained": explained, "batches": len(points), "loads": {}}
    for load, run in runs.items():
        batches = [r.batch for r in run.history if STEP_AT_S < r.batch.started_s - run.start_s - 1 < STEP_S]
        measured = np.array([b.duration_s for b in batches])
        modelled = plant.fixed_s + plant.cost_s * np.array([b.rows for b in batches])
        result["loads"][f"{load:.2f}"] = {
            "duration_s": measured.round(3).tolist(),
            "modelled_s": modelled.round(3).tolist(),
            "rms_error_ratio": float(np.sqrt(np.mean((measured / modelled - 1.0) ** 2))),
        }
    return result


def idle(
    spark: SparkSession, plant: Plant, work: int, rows: int, target_s: float, trace: Path | None, folder: Path
) -> dict[str, Any]:
    """Throughput with the promise / without it, in batches near the target, and the rows shed under half the capacity.

    The two take turns, each first in every other turn; the first two turns do not count. The speed of a query varies by
    up to a tenth from start to start, so this takes many turns.
    """
    seconds: dict[bool, list[float]] = {False: [], True: []}
    pairs, shed = [], 0
    plain_s, _ = back_to_back(spark, work, rows, 7, folder / "idle-probe", promised=False)
    rows = int(rows * target_s / 1.5 / float(np.median(plain_s)))
    for turn in range(IDLE_TURNS + 2):
        turn_s = {}
        for promised in (False, True) if turn % 2 else (True, False):
            durations_s, turn_shed = back_to_back(spark, work, rows, 7, folder / f"idle-{turn}-{promised}", promised)
            shed += turn_shed
            turn_s[promised] = float(np.median(durations_s))
            if turn >= 2:
                seconds[promised] += durations_s.tolist()
        if turn >= 2:
            pairs.append(round(turn_s[False] / turn_s[True], 3))
    without_s, with_s = float(np.median(seconds[False])), float(np.median(seconds[True]))
    calm, busy = bursts(20, trace, 10.0)
    rates = 0.5 * plant.capacity_per_s(target_s) * np.concatenate([calm, busy])
    run = run_law(spark, "ctrl-batch", rates, target_s, work, folder / "half-capacity")
    return {
        "rows_per_batch": rows,
        "without_s": without_s,
        "with_s": with_s,
        "throughput_ratio": without_s / with_s,
        "by_turn": sorted(pairs),
        "shed": shed,
        "half_capacity_rows": sum(r.batch.rows for r in run.history),
        "half_capacity_shed": sum(r.batch.rows - r.batch.kept for r in run.history),
    }


def unbiased(spark: SparkSession, runs: int = 200, rows: int = 2000) -> dict[str, float]:
    """Bias of estimated sums and counts, and coverage of their 95 % intervals, over ``runs`` samples."""
    ratios = [0.0, 0.3, 0.6, 0.8]
    frame = spark.range(runs * rows).selectExpr(
        f"id % {runs} run",
        f"cast(pow(id div {runs} % 100, 2) as double) x",
        f"element_at(array({', '.join(map(str, ratios))}), cast(id div {runs} % {len(ratios)} as int) + 1) ratio",
    )
    truth_n, truth_s = rows, frame.where("run = 0").agg(F.sum("x")).collect()[0][0]
    kept = frame.where(F.rand(2006) >= F.col("ratio")).withColumn("shed_weight", 1 / (1 - F.col("ratio")))
    estimates = (
        kept.groupBy("run")
        .agg(
            sw.estimated_count().alias("n"),
            sw.count_error().alias("n_error"),
            sw.estimated_sum("x").alias("s"),
            sw.sum_error("x").alias("s_error"),
        )
        .toPandas()
    )
    result = {"runs": float(len(estimates))}
    for name, true in (("n", truth_n), ("s", truth_s)):
        result[f"{name}_bias"] = float(estimates[name].mean() / true - 1)
        result[f"{name}_coverage"] = float(((estimates[name] - true).abs() <= 1.96 * estimates[f"{name}_error"]).mean())
    return result


def step_us(law: str = "ctrl-batch", steps: int = 2000) -> float:
    """Microseconds per controller step."""
    controller = MicroBatchController(Timeliness(2.0), make_law(law))
    batches = [
        MicroBatch(k * 1.3, 1.2 + 0.1 * (k % 3), 4000 + 100 * (k % 7), 2000 + 50 * (k % 5)) for k in range(steps)
    ]
    started = time.perf_counter()
    for batch in batches:
        controller.step(batch)
    return (time.perf_counter() - started) / steps * 1e6


@click.command()
@click.option("--part", "parts", multiple=True, type=click.Choice(PARTS), help="Run only this part (repeatable).")
@click.option("--law", "laws", multiple=True, default=LAWS, show_default=True, help="Law to run (repeatable).")
@click.option(
    "--overload",
    "overloads",
    multiple=True,
    type=float,
    default=(2.0, 4.0),
    show_default=True,
    help="Mean load as a multiple of the capacity (repeatable).",
)
@click.option("--seconds", default=30, show_default=True, help="Length of the overload.")
@click.option("--target", "target_s", default=2.0, show_default=True, help="The delay to keep, in seconds.")
@click.option("--work", default=2000, show_default=True, help="Sines per row; with 0 a row waits 2 ms.")
@click.option("--warm-up", "warm_up_s", default=60.0, show_default=True, help="Length of the warm-up in seconds.")
@click.option(
    "--trace",
    type=click.Path(exists=True, path_type=Path),
    help="Recorded arrivals for the bursts.  [default: nasa_rate.parquet of SLACKWATER_DATA, else generated]",
)
@click.option("--speed", default=10.0, show_default=True, help="Speed-up of the trace.")
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    default=Path("bench-shedding"),
    show_default=True,
    help="Folder for report and plots.",
)
@click.option("--json", "as_json", is_flag=True, help="Print the report as JSON on standard output.")
def main(
    parts: tuple[str, ...],
    laws: tuple[str, ...],
    overloads: tuple[float, ...],
    seconds: int,
    target_s: float,
    work: int,
    warm_up_s: float,
    trace: Path | None,
    speed: float,
    out: Path,
    as_json: bool,
) -> None:
    """Overload an expensive query on Spark and compare the load shedding laws."""
    console = Console(width=140, stderr=as_json)
    out.mkdir(parents=True, exist_ok=True)
    chosen = set(parts or PARTS)
    recorded = data_folder() / "nasa_rate.parquet"
    if trace is None and recorded.exists():
        trace = recorded
    report: dict[str, Any] = {"trace": None if trace is None else trace.name, "target_s": target_s}
    if "step" in chosen:
        report["step_us"] = step_us()
        console.print(f"one controller step: {report['step_us']:.0f} µs")
    if chosen - {"step"}:
        with local_session("slackwater-bench-shedding") as spark, tempfile.TemporaryDirectory() as temporary:
            folder = Path(temporary)
            if "unbiased" in chosen:
                report["unbiased"] = unbiased(spark)
                console.print("unbiased:", report["unbiased"])
            if chosen & {"overload", "response", "idle"}:
                rows = warm_up(spark, work, warm_up_s, folder)
                plant = identify(spark, work, rows, folder)
                report["plant"] = {**asdict(plant), "capacity_per_s": plant.capacity_per_s(target_s)}
                console.print("capacity of the query:", report["plant"])
            if "idle" in chosen:
                report["idle"] = idle(spark, plant, work, rows, target_s, trace, folder)
                console.print("idle:", report["idle"])
            if "response" in chosen:
                report["response"] = response(spark, plant, work, target_s, folder, out)
                console.print("response:", report["response"])
            if "overload" in chosen:
                report["overload"] = []
                for overload in overloads:
                    plant = identify(spark, work, rows, folder / f"before-{overload:g}")
                    console.print("capacity of the query now:", asdict(plant), plant.capacity_per_s(target_s))
                    rates, cost_rise = overload_rates(plant, target_s, overload, seconds, trace, speed)
                    runs: dict[str, FinishedRun] = {}
                    for law in laws:
                        run = run_law(spark, law, rates, target_s, work, folder / f"{law}-{overload:g}", cost_rise)
                        figures = measure(law, overload, run, plant, cost_rise, target_s, seconds)
                        runs[law] = run
                        batches = [asdict(record) for record in run.history]
                        (out / f"{law}-{overload:g}.json").write_text(json.dumps(batches, indent=1))
                        report["overload"].append(asdict(figures))
                        console.print(figures)
                    plot_runs(out / f"overload-{overload:g}.png", runs, rates, plant, cost_rise, overload, target_s)
                console.print(_table(report["overload"]))
    (out / "report.json").write_text(json.dumps(report, indent=2))
    if as_json:
        click.echo(json.dumps(report, indent=2))


def _table(runs: list[dict[str, Any]]) -> Table:
    table = Table(title="on Spark")
    for column in (
        "law",
        "load",
        "in run",
        "mean delay",
        "violation",
        "delayed",
        "overshoot",
        "loss",
        "least",
        "unfinished",
    ):
        table.add_column(column, justify="right")
    for run in runs:
        table.add_row(
            run["law"],
            f"{run['overload']:g}×",
            f"{run['overload_in_run']:.1f}×",
            f"{run['mean_delay_s']:.2f} s",
            f"{run['accumulated_violation_s']:,.0f} s",
            f"{run['delayed_rows']:,}",
            f"{run['max_overshoot_s']:.2f} s",
            f"{run['loss_ratio']:.1%}",
            f"{run['least_loss_ratio']:.1%}",
            f"{run['unfinished_rows']:,}",
        )
    return table


if __name__ == "__main__":
    main()
