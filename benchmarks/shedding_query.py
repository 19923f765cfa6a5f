"""The query that the shedding benchmark overloads: its capacity, and one run of it under a law."""

from __future__ import annotations

import time
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.query import StreamingQuery

import slackwater as sw
from replay_source import replay
from slackwater.sim.shedding import rows_from_rates
from slackwater.spark.runtime.listener import reports_of
from slackwater.spark.timeliness.tracker import BatchOutcome, TimelinessTracker

Floats = NDArray[np.float64]

LEAD_S = 3.0
_FOREVER = "1000 hours"
_MEASURED = "measured"
_UNWARMED_BATCHES = 2

_ON_BATCH = TimelinessTracker.on_batch


@dataclass(frozen=True, slots=True)
class CostRise:
    """A period whose rows cost ``factor`` times as much; in seconds from the start of the input."""

    first_s: float
    last_s: float
    factor: float

    def factors(self, arrivals_s: Floats) -> Floats:
        """The cost factor of each row."""
        inside = (arrivals_s >= self.first_s) & (arrivals_s < self.last_s)
        return np.where(inside, self.factor, 1.0)


NO_RISE = CostRise(0.0, 0.0, 1.0)


@dataclass(frozen=True, slots=True)
class Plant:
    """The duration of a micro-batch: ``fixed_s`` + ``cost_s`` · rows."""

    fixed_s: float
    cost_s: float

    def capacity_per_s(self, target_s: float) -> float:
        """Rows per second when batches run back to back and the mean delay, 1.5 batches, equals the target."""
        return (1.0 - self.fixed_s / (target_s / 1.5)) / self.cost_s


@dataclass(frozen=True, slots=True)
class FinishedRun:
    """One run: its micro-batches, and the arrival of its rows and its end in seconds from ``start_s`` (Unix time).

    ``measured`` has the values of the measures that ``run_law`` was given, by micro-batch.
    """

    history: list[BatchOutcome]
    arrivals_s: Floats
    start_s: float
    end_s: float
    measured: dict[int, dict[str, Any]] = field(default_factory=dict)


def expensive(work: int, start_s: float, rise: CostRise = NO_RISE) -> Column:
    """A value that the JVM computes with ``work`` sines per row, or with more of them during ``rise``.

    Without work a row waits two milliseconds instead, so that its cost does not depend on what else the machine does.
    """
    arrived_s = F.unix_micros("arrived") / 1e6 - start_s
    inside = (arrived_s >= rise.first_s) & (arrived_s < rise.last_s)
    if not work:
        wait_ms = F.when(inside, F.lit(round(2 * rise.factor))).otherwise(F.lit(2)).cast("bigint")
        return F.call_function("reflect", F.lit("java.lang.Thread"), F.lit("sleep"), wait_ms)
    sines = F.when(inside, F.lit(round(work * rise.factor))).otherwise(F.lit(work))
    return F.aggregate(F.sequence(F.lit(1), sines), F.col("value"), lambda a, i: a + F.sin(a + i))


def start(events: DataFrame, value: Column, folder: Path, weighted: bool, trigger: str | None) -> StreamingQuery:
    """Start the query: it computes the expensive value of every row and discards it."""
    result = events.select("id", *(["shed_weight"] if weighted else []), value.alias("c"))
    writer = result.writeStream.format("noop").option("checkpointLocation", str(folder / "checkpoint"))
    return (writer if trigger is None else writer.trigger(processingTime=trigger)).start()


def back_to_back(
    spark: SparkSession, work: int, rows: int, batches: int, folder: Path, promised: bool = True
) -> tuple[Floats, int]:
    """Durations of ``batches`` micro-batches of ``rows`` rows, without the first two, and the number of shed rows."""
    folder.mkdir(parents=True)
    np.save(folder / "arrivals.npy", np.zeros(rows * (batches + 20)))
    events: DataFrame = replay(spark, folder / "arrivals.npy", int(time.time() * 1e6), rows_per_batch=rows)
    if promised:
        events = sw.with_max_delay(events, _FOREVER, arrival="arrived")
    query = start(events, expensive(work, 0.0), folder, promised, None)
    deadline_s = time.monotonic() + 120
    while time.monotonic() < deadline_s and (query.lastProgress is None or query.lastProgress["batchId"] < batches):
        query.awaitTermination(0.1)  # type: ignore[arg-type]  # Spark takes fractions of a second
    progress = [p for p in query.recentProgress if p["numInputRows"] == rows]
    shed = sum(promise.ledger.shed for promise in reports_of(str(query.id)).get("timeliness", []))
    query.stop()
    durations_s = np.array([p["durationMs"]["triggerExecution"] for p in progress[_UNWARMED_BATCHES:]]) / 1e3
    return durations_s, shed


def warm_up(spark: SparkSession, work: int, seconds: float, folder: Path) -> int:
    """Run for ``seconds`` so that Java compiles everything; return the rows of a micro-batch of about 1.2 s."""
    rows, deadline_s, attempt = 4000, time.monotonic() + seconds, 0
    while time.monotonic() < deadline_s:
        durations_s, _ = back_to_back(spark, work, rows, 8, folder / f"warm-up-{attempt}")
        rows = int(rows * min(max(1.2 / float(durations_s[-3:].mean()), 0.3), 4.0))
        attempt += 1
    return rows


def identify(spark: SparkSession, work: int, rows: int, folder: Path, batches: int = 7) -> Plant:
    """Fixed cost and cost per row of a warm query, from back-to-back batches of two sizes."""
    large_s, small_s = (
        float(np.median(back_to_back(spark, work, size, batches, folder / f"identify-{size}")[0]))
        for size in (rows, rows // 4)
    )
    cost_s = (large_s - small_s) / (rows - rows // 4)
    return Plant(fixed_s=large_s - cost_s * rows, cost_s=cost_s)


def recorded_outcomes() -> dict[str, list[BatchOutcome]]:
    """The outcomes of every tracker of this process from now on, by the name of the promise."""
    outcomes: dict[str, list[BatchOutcome]] = defaultdict(list)
    on_batch = _ON_BATCH

    def recording(tracker: TimelinessTracker, *observed: Any, **more: Any) -> BatchOutcome:
        outcome = on_batch(tracker, *observed, **more)
        outcomes[tracker.spec.name].append(outcome)
        return outcome

    TimelinessTracker.on_batch = recording  # type: ignore[method-assign, assignment]
    return outcomes


def run_law(
    spark: SparkSession,
    law: str,
    rates: Floats,
    target_s: float,
    work: int,
    folder: Path,
    rise: CostRise = NO_RISE,
    trigger: str = "1 second",
    targets_s: dict[float, float] | None = None,
    shed_by: str | Column | None = None,
    measures: tuple[Column, ...] = (),
) -> FinishedRun:
    """Run one law on one input. The run ends two targets after the last arrival, even if rows are unprocessed.

    ``targets_s`` are further targets, by the second at which they come into force. ``measures`` are aggregates over the
    kept rows of each micro-batch.
    """
    folder.mkdir(parents=True)
    arrivals_s = rows_from_rates(rates)
    np.save(folder / "arrivals.npy", arrivals_s)
    start_s = time.time() + LEAD_S
    source = replay(spark, folder / "arrivals.npy", int(start_s * 1e6))
    events = sw.with_max_delay(source, target_s, arrival="arrived", law=law, name=folder.name, shed_by=shed_by)
    if measures:
        events = events.observe(_MEASURED, *measures)
    query = start(events, expensive(work, start_s, rise), folder, True, trigger)
    history = recorded_outcomes()[folder.name]
    changes = sorted((targets_s or {}).items())
    while time.time() < start_s + len(rates) + 2 * target_s:
        if changes and time.time() >= start_s + changes[0][0]:
            target_s = changes.pop(0)[1]
            sw.retarget(query, target_s, name=folder.name)
        query.awaitTermination(0.2)  # type: ignore[arg-type]  # Spark takes fractions of a second
        if sum(outcome.batch.rows for outcome in list(history)) >= len(arrivals_s):
            break
    end_s = time.time() - start_s
    progress = query.recentProgress
    query.stop()
    measured = {p.batchId: p.observedMetrics[_MEASURED].asDict() for p in progress if _MEASURED in p.observedMetrics}
    kept = [outcome for outcome in history if outcome.batch.rows]
    return FinishedRun(kept, arrivals_s, start_s, end_s, measured)
