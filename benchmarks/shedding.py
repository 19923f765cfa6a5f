"""Load shedding on real Spark: an expensive query is overloaded, and every law gets the same input.

    python benchmarks/shedding.py                     # all parts, ten minutes or more
    python benchmarks/shedding.py --part overload --overload 2 --law ctrl-batch --seconds 40
    python benchmarks/shedding.py --trace counts.parquet --speed 10

Parts: ``overload`` (delay, violations, loss), ``idle`` (what it costs when there is nothing to shed), ``unbiased``
(shed sums and counts against the truth), ``step`` (the cost of one controller step). On a busy machine timings mean
little.
"""

from __future__ import annotations

import json
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path

import click
import matplotlib

matplotlib.use("Agg")
import itertools

import matplotlib.pyplot as plt
import numpy as np
from numpy.typing import NDArray
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from rich.console import Console
from rich.table import Table

import slackwater as sw
from slackwater.control.shedding import make_law
from slackwater.control.shedding.microbatch import AIM, MicroBatch, MicroBatchController
from slackwater.promises import Timeliness
from slackwater.sim.shedding import rows_from_rates, web_rates
from slackwater.sim.shedding.recorded import read_arrivals
from slackwater.spark.delay_keeper import DelayRecord
from slackwater.spark.replay import replay
from slackwater.spark.session import local_session
from slackwater.spark.supervisor import supervisor_of

Floats = NDArray[np.float64]

PARTS = ("overload", "idle", "unbiased", "step")
LAWS = ("none", "aurora", "baseline", "ctrl-batch")
WARM_UP_S = 15
CALM_RATIO = 0.3
CALIBRATION_S = 15


def expensive(work: int) -> Column:
    """A value that takes ``work`` sines to compute."""
    return F.expr(f"aggregate(sequence(1, {work}), value, (a, i) -> a + sin(a + i))")


@dataclass
class Run:
    """One law under one overload."""

    law: str
    overload: float
    mean_delay_s: float
    settled_delay_s: float
    accumulated_violation_s: float
    batch_violation_s: float
    max_overshoot_s: float
    loss_ratio: float
    least_loss_ratio: float
    rows: int
    unfinished_rows: int
    batches: int
    fixed_s: float
    cost_s: float
    load_per_s: float
    decided_for_next_ratio: float


def rough_capacity_per_s(spark: SparkSession, work: int) -> float:
    """Rows a second that all cores can do in a batch job: where to begin to look for the capacity."""
    rows, best = 4000, 0.0
    for _ in range(3):
        started = time.perf_counter()
        frame = (
            spark.range(rows).selectExpr("cast(id as double) value").repartition(2).select(expensive(work).alias("c"))
        )
        frame.agg(F.sum("c")).collect()
        best = max(best, rows / (time.perf_counter() - started))
    return best


def capacity_per_s(spark: SparkSession, work: int, target_s: float, folder: Path) -> float:
    """Rows a second that the query itself bears, by a saturated run of it: same source, same trigger, nothing shed.

    Batches back to back take d0 + c·rows; a batch may take as long as keeps the mean delay at the target.
    """
    folder.mkdir(parents=True)
    rates = np.full(CALIBRATION_S, 3.0 * rough_capacity_per_s(spark, work))
    history, _, _ = run_law(spark, "none", rates, target_s, work, folder, steady=False)
    points = np.array([(r.batch.kept, r.batch.duration_s) for r in history[2:] if r.batch.kept > 0])
    if len(points) < 3 or np.ptp(points[:, 0]) == 0:
        return float(points[:, 0].sum() / points[:, 1].sum())
    cost_s, fixed_s = np.polyfit(points[:, 0], points[:, 1], 1)
    return sustained_per_s(float(cost_s), float(fixed_s), target_s)


def sustained_per_s(cost_s: float, fixed_s: float, target_s: float) -> float:
    """The capacity while batches take as long as the target lets them: a delay of 1.5 batches, aimed a little below."""
    return (1 - max(fixed_s, 0.0) / (target_s * AIM / 1.5)) / cost_s


def burst_rates(seconds: int, mean_per_s: float, trace: Path | None, speed: float) -> Floats:
    """The overload, second by second: a recorded trace at that mean, or web-like bursts."""
    if trace is None:
        return web_rates(np.random.default_rng(2006), seconds, mean_per_s, sources=40)
    arrivals_s = read_arrivals(trace) / speed
    counts = np.bincount(arrivals_s.astype(np.int64))
    # the busiest stretch of that length
    sums = np.convolve(counts, np.ones(seconds), mode="valid")
    first = int(sums.argmax())
    chosen = counts[first : first + seconds].astype(np.float64)
    return chosen * (mean_per_s / chosen.mean())


def run_law(
    spark: SparkSession, law: str, rates: Floats, target_s: float, work: int, folder: Path, steady: bool
) -> tuple[list[DelayRecord], Floats, float]:
    """The history of one run, when its rows arrived, and when that began."""
    arrivals_s = rows_from_rates(rates)
    start_s = time.time() + 5.0
    source = _steady(spark, rates) if steady else _bursts(spark, arrivals_s, start_s, folder)
    events = sw.with_max_delay(source, target_s, arrival="arrived", law=law)
    result = events.select("shed_weight", expensive(work).alias("c")).agg(
        sw.estimated_count().alias("rows"), F.sum("c").alias("total")
    )
    query = (
        result.writeStream.outputMode("complete")
        .format("memory")
        .queryName("shedding")
        .option("checkpointLocation", str(folder / "checkpoint"))
        .trigger(processingTime="1 second")
        .start()
    )
    deadline_s = start_s + len(rates) + 2 * target_s + 5.0
    keeper = None
    while time.time() < deadline_s:
        query.awaitTermination(0.5)
        keepers = supervisor_of(spark).delay_keepers_of(str(query.id), -1)
        keeper = keepers[0] if keepers else None
        if keeper is not None and keeper.ledger.input >= len(arrivals_s):
            break
    query.stop()
    assert keeper is not None
    history = list(keeper.history)
    if steady:
        # row i arrives at i/rate; the first batch, which is whole, tells when the first row did
        first = history[0].batch
        assert first.mean_arrival_s is not None
        start_s = first.mean_arrival_s - (first.rows - 1) / 2 / float(rates[0])
    return history, arrivals_s, start_s


def _bursts(spark: SparkSession, arrivals_s: Floats, start_s: float, folder: Path) -> DataFrame:
    np.save(folder / "arrivals.npy", arrivals_s)
    return replay(spark, folder / "arrivals.npy", int(start_s * 1e6))


def _steady(spark: SparkSession, rates: Floats) -> DataFrame:
    """Spark's own rate source: needs no Python worker, has no bursts, and offers rows once a second."""
    rows = spark.readStream.format("rate").option("rowsPerSecond", round(float(rates[0]))).load()
    return rows.selectExpr("value id", "timestamp arrived", "cast(value * 7919 % 1000 as double) value")


def warm_up(spark: SparkSession, work: int, folder: Path) -> None:
    """Load and compile everything once, so that the first run does not pay for all."""
    rows = _steady(spark, np.full(1, 100.0))
    result = sw.with_max_delay(rows, "1 hour", arrival="arrived").agg(F.sum(expensive(work)), sw.estimated_count())
    writer = result.writeStream.outputMode("complete").format("memory").queryName("warm_up")
    query = writer.option("checkpointLocation", str(folder)).start()
    patience_s = time.monotonic() + 180
    while time.monotonic() < patience_s and (query.lastProgress is None or query.lastProgress["batchId"] < 8):
        query.awaitTermination(0.2)
    query.stop()


def measure(
    law: str,
    overload: float,
    history: list[DelayRecord],
    arrivals_s: Floats,
    start_s: float,
    target_s: float,
    seconds: int,
) -> Run:
    """The figures of merit, from the arrival of every row and the commit of its batch."""
    delays, weights = np.full(len(arrivals_s), np.nan), np.zeros(len(arrivals_s))
    first, batch_violation_s, shed = 0, 0.0, 0
    for record in history:
        batch = record.batch
        last = min(first + batch.rows, len(arrivals_s))
        committed_s = batch.started_s + batch.duration_s - start_s
        delays[first:last] = committed_s - arrivals_s[first:last]
        weights[first:last] = batch.kept / max(batch.rows, 1)
        if last > first and arrivals_s[last - 1] >= WARM_UP_S:
            mean_s = float(delays[first:last].mean())
            batch_violation_s += max(mean_s - target_s, 0.0) * batch.kept
        first = last
    during = (arrivals_s >= WARM_UP_S) & (arrivals_s < WARM_UP_S + seconds)
    settled = during & (arrivals_s >= WARM_UP_S + seconds / 3)
    known = np.isfinite(delays)
    shed = int(np.round((1 - weights)[during & known].sum()))
    points = np.array([(r.batch.kept, r.batch.duration_s) for r in history[1:] if r.batch.kept > 0])
    cost_s, fixed_s = np.polyfit(points[:, 0], points[:, 1], 1)
    used = [(b.shed_ratio, a.decision.shed_ratio) for a, b in itertools.pairwise(history)]
    load_per_s = float(during.sum() / seconds)
    capacity = sustained_per_s(float(cost_s), float(fixed_s), target_s)
    excess = np.where(known, np.maximum(delays - target_s, 0.0), 0.0) * (arrivals_s >= WARM_UP_S)

    def mean(chosen: NDArray[np.bool_]) -> float:
        chosen = chosen & known
        return float((delays[chosen] * weights[chosen]).sum() / max(weights[chosen].sum(), 1e-9))

    return Run(
        law=law,
        overload=overload,
        mean_delay_s=mean(during),
        settled_delay_s=mean(settled),
        accumulated_violation_s=float((excess * weights).sum()),
        batch_violation_s=batch_violation_s,
        max_overshoot_s=float(excess.max()),
        loss_ratio=shed / max(int((during & known).sum()), 1),
        least_loss_ratio=max(0.0, 1 - capacity / load_per_s),
        rows=len(arrivals_s),
        unfinished_rows=int((~known).sum()),
        batches=len(history),
        fixed_s=float(fixed_s),
        cost_s=float(cost_s),
        load_per_s=load_per_s,
        decided_for_next_ratio=float(np.mean([abs(a - b) < 1e-5 for a, b in used])),
    )


def plot(path: Path, title: str, history: list[DelayRecord], start_s: float, target_s: float) -> None:
    """Delay and shed ratio over time."""
    figure, (above, below) = plt.subplots(2, 1, figsize=(9, 6), sharex=True)
    at = [record.batch.started_s - start_s for record in history if record.decision.delay_s is not None]
    above.plot(at, [r.decision.delay_s for r in history if r.decision.delay_s is not None], marker=".")
    above.axhline(target_s, color="black", linestyle="--", linewidth=0.8)
    above.set_ylabel("mean delay (s)")
    above.set_title(title)
    below.step([r.batch.started_s - start_s for r in history], [r.shed_ratio for r in history], where="post")
    below.set_ylabel("shed ratio")
    below.set_xlabel("time (s)")
    figure.tight_layout()
    figure.savefig(path, dpi=120)
    plt.close(figure)


def idle_ratio(spark: SparkSession, work: int, rows: int, folder: Path) -> dict[str, float]:
    """Throughput with the promise / without, on the same rows, when nothing needs shedding: best of three each."""
    np.save(folder / "all.npy", np.zeros(rows))
    seconds: dict[str, list[float]] = {"without": [], "with": []}
    shed = 0
    for repetition in range(4):
        for kind in seconds:
            events: DataFrame = replay(spark, folder / "all.npy", 0)
            if kind == "with":
                events = sw.with_max_delay(events, "1 hour", arrival=None)
            query = (
                events.select(expensive(work).alias("c"))
                .agg(F.sum("c"))
                .writeStream.outputMode("complete")
                .format("memory")
                .queryName("idle")
                .option("checkpointLocation", str(folder / f"idle-{kind}-{repetition}"))
                .trigger(availableNow=True)
                .start()
            )
            query.awaitTermination()
            progress = query.lastProgress
            assert progress is not None
            if repetition:
                seconds[kind].append(progress["durationMs"]["triggerExecution"] / 1e3)
            if kind == "with":
                (keeper,) = supervisor_of(spark).delay_keepers_of(str(query.id), int(progress["batchId"]))
                shed += keeper.ledger.shed
    best = {kind: min(times) for kind, times in seconds.items()}
    return {**best, "throughput_ratio": best["without"] / best["with"], "shed": float(shed), "rows": float(rows)}


def unbiased(spark: SparkSession, runs: int = 200, rows: int = 2000) -> dict[str, float]:
    """Two hundred shed sums and counts against the truth: bias and the cover of 95 % intervals."""
    ratios = [0.0, 0.3, 0.6, 0.8]
    frame = spark.range(runs * rows).selectExpr(
        f"id % {runs} run",
        f"cast(pow(id div {runs} % 100, 2) as double) x",
        f"element_at(array({', '.join(map(str, ratios))}), cast(id div {runs} % {len(ratios)} as int) + 1) ratio",
    )
    truth_n, truth_s = rows, frame.where("run = 0").agg(F.sum("x")).head()[0]
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
        result[f"{name}_cover"] = float(((estimates[name] - true).abs() <= 1.96 * estimates[f"{name}_error"]).mean())
    return result


def step_us(law: str = "ctrl-batch", steps: int = 2000) -> float:
    """Microseconds of one step of the controller."""
    controller = MicroBatchController(Timeliness(2.0), make_law(law))
    batches = [
        MicroBatch(k * 1.3, 1.2 + 0.1 * (k % 3), 4000 + 100 * (k % 7), 2000 + 50 * (k % 5)) for k in range(steps)
    ]
    started = time.perf_counter()
    for batch in batches:
        controller.step(batch)
    return (time.perf_counter() - started) / steps * 1e6


@click.command()
@click.option("--part", "parts", multiple=True, type=click.Choice(PARTS), help="Only this part (may be repeated).")
@click.option("--law", "laws", multiple=True, default=LAWS, show_default=True)
@click.option("--overload", "overloads", multiple=True, type=float, default=(2.0, 4.0), show_default=True)
@click.option("--seconds", default=60, show_default=True, help="How long the overload lasts.")
@click.option("--target", "target_s", default=2.0, show_default=True, help="The delay to keep, in seconds.")
@click.option("--work", default=1000, show_default=True, help="Sines a row.")
@click.option("--capacity", type=float, help="Rows a second that count as capacity; else a saturated run tells.")
@click.option("--trace", type=click.Path(exists=True, path_type=Path), help="A recorded trace for the bursts.")
@click.option("--steady", is_flag=True, help="A constant overload from Spark's rate source instead of bursts.")
@click.option("--speed", default=1.0, show_default=True, help="Replay the trace so many times as fast.")
@click.option("--out", type=click.Path(path_type=Path), default=Path("bench-shedding"), show_default=True)
def main(
    parts: tuple[str, ...],
    laws: tuple[str, ...],
    overloads: tuple[float, ...],
    seconds: int,
    target_s: float,
    work: int,
    capacity: float | None,
    trace: Path | None,
    steady: bool,
    speed: float,
    out: Path,
) -> None:
    """Overload a genuinely expensive query and see what each law makes of it."""
    console = Console()
    out.mkdir(parents=True, exist_ok=True)
    chosen = parts or PARTS
    report: dict[str, object] = {}
    if "step" in chosen:
        report["step_us"] = step_us()
        console.print(f"one controller step: {report['step_us']:.0f} µs")
    if {"overload", "idle", "unbiased"} & set(chosen):
        with local_session("slackwater-bench-shedding") as spark, tempfile.TemporaryDirectory() as temporary:
            if "unbiased" in chosen:
                report["unbiased"] = unbiased(spark)
                console.print("unbiased:", report["unbiased"])
            if "idle" in chosen:
                report["idle"] = idle_ratio(spark, work, 20_000, Path(temporary))
                console.print("idle:", report["idle"])
            if "overload" in chosen:
                warm_up(spark, work, Path(temporary) / "warm-up")
                calibration = Path(temporary) / "calibration"
                per_s = capacity_per_s(spark, work, target_s, calibration) if capacity is None else capacity
                console.print(f"capacity {per_s:,.0f} rows/s")
                runs = []
                for overload in overloads:
                    calm, burst = np.full(WARM_UP_S, CALM_RATIO * per_s), overload * per_s
                    rates = (
                        np.full(WARM_UP_S + seconds, float(round(burst)))
                        if steady
                        else np.concatenate([calm, burst_rates(seconds, burst, trace, speed), calm])
                    )
                    for law in laws:
                        folder = Path(temporary) / f"{law}-{overload:g}"
                        folder.mkdir()
                        history, arrivals_s, start_s = run_law(spark, law, rates, target_s, work, folder, steady)
                        runs.append(measure(law, overload, history, arrivals_s, start_s, target_s, seconds))
                        title = f"{law} at {overload:g}× capacity, target {target_s:g} s"
                        plot(out / f"{law}-{overload:g}.png", title, history, start_s, target_s)
                        console.print(runs[-1])
                report["overload"] = [asdict(run) for run in runs]
                console.print(_table(runs))
    (out / "report.json").write_text(json.dumps(report, indent=2))


def _table(runs: list[Run]) -> Table:
    table = Table(title="on Spark")
    for column in ("law", "load", "mean delay", "settled", "violation", "of batch means", "overshoot", "loss", "least"):
        table.add_column(column, justify="right")
    for run in runs:
        table.add_row(
            run.law,
            f"{run.overload:g}×",
            f"{run.mean_delay_s:.2f} s",
            f"{run.settled_delay_s:.2f} s",
            f"{run.accumulated_violation_s:,.0f} s",
            f"{run.batch_violation_s:,.0f} s",
            f"{run.max_overshoot_s:.2f} s",
            f"{run.loss_ratio:.1%}",
            f"{run.least_loss_ratio:.1%}",
        )
    return table


if __name__ == "__main__":
    main()
