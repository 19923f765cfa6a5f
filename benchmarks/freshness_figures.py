"""The figures of a finished run of the freshness benchmark, counted from the rows and the micro-batches."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from freshness_queries import FinishedRun
from slackwater.control.disorder import DEFAULT_METHOD, DisorderController, make_method
from slackwater.promises import Completeness
from slackwater.sim.driver import waits_under
from slackwater.sim.spark_batches import SparkBatches, best_constant, mean_publication_delay, run_on_spark
from slackwater.sim.trace import Trace

Floats = NDArray[np.float64]

MINUTE_MS = 60_000.0


@dataclass(frozen=True, slots=True)
class Figures:
    """What one query did. Times are in seconds.

    A row is late if it is below the watermark that is in force in its micro-batch. The wait is the arrival clock at the
    end of a micro-batch − that watermark, averaged over rows. It consists of the slack (the delay of plain Spark, or
    the wait that a promise had chosen) and of the age of the watermark. The publication delay is from the end of a
    window to the commit of the micro-batch that published it. ``missing`` rows are absent from the published windows.
    Times per micro-batch are medians.
    """

    rows: int
    late: int
    kept: bool
    drop_ratio: float
    budget_used: float
    budget_used_from_third_minute: float | None
    worst_drop_ratio_after_minute: float | None
    wait_s: float
    slack_s: float | None
    wait_after_minute_s: float | None
    waits_by_minute_s: list[float]
    row_wait_s: float
    publication_delay_s: float | None
    publication_after_minute_s: float | None
    windows: int
    missing: int
    batches: int
    batch_s: float
    phases_s: dict[str, float]
    reported_after_s: float | None


def figures_of(run: FinishedRun, trace: Trace, ratio: float, slack_ms: float | None = None) -> Figures:
    """Count the figures of a run; ``slack_ms`` is the delay of plain Spark, None for a promise.

    Raises ``AssertionError`` if the promise's own count of late rows is another one.
    """
    trace = _first_rows(trace, run.rows)
    assert trace.arrivals is not None
    sizes = np.diff(np.concatenate(([0], run.batches.ends)))
    in_force = np.repeat(run.watermarks, sizes)
    late = trace.values < in_force
    assert run.late is None or run.late == int(late.sum()), f"{run.late} late rows counted, {int(late.sum())} there"
    since_ms = trace.arrivals - trace.arrivals[0]
    waits = waits_under(_at_batch_ends(trace, run.batches), in_force)
    ratios = np.cumsum(late) / np.arange(1, trace.rows + 1)
    minutes = (since_ms // MINUTE_MS).astype(np.int64)
    ends, delays = publication_delays(run)
    heard = run.heard - run.batches.committed
    return Figures(
        trace.rows,
        int(late.sum()),
        Completeness(ratio).kept_by(int(late.sum()), int((~late).sum())),
        float(late.mean()),
        float(late.mean()) / ratio,
        _mean_from(late, since_ms, 2 * MINUTE_MS, 1.0 / ratio),
        float(ratios[since_ms >= MINUTE_MS].max()) if since_ms[-1] >= MINUTE_MS else None,
        float(waits.mean()) / 1e3,
        _mean_slack_s(run, sizes) if slack_ms is None else slack_ms / 1e3,
        _mean_from(waits, since_ms, MINUTE_MS, 1e-3),
        [float(waits[minutes == minute].mean()) / 1e3 for minute in np.unique(minutes)],
        float(waits_under(trace, in_force).mean()) / 1e3,
        float(delays.mean()) / 1e3 if len(delays) else None,
        _mean_from(delays, ends - trace.arrivals[0], MINUTE_MS, 1e-3),
        len(ends),
        missing_rows(run, trace),
        len(sizes),
        float(np.median(run.batches.committed - run.batches.planned)) / 1e3,
        {name: float(np.median(took)) / 1e3 for name, took in run.phases.items()},
        float(np.nanmedian(heard)) / 1e3 if np.isfinite(heard).any() else None,
    )


def publication_delays(run: FinishedRun) -> tuple[Floats, Floats]:
    """The ends of the published windows, and the time from each to the commit of the batch that published it."""
    ends = run.windows[0]
    published_by = np.searchsorted(run.newest_window, ends, "left")
    return ends, run.batches.committed[published_by] - ends


def missing_rows(run: FinishedRun, trace: Trace) -> int:
    """Rows that are absent from the published windows."""
    ends, counts = run.windows
    true_ends = (np.floor(trace.values / run.window_ms) + 1) * run.window_ms
    return int(np.isin(true_ends, ends).sum() - counts.sum())


def simulated_wait_s(run: FinishedRun, trace: Trace, ratio: float) -> float:
    """The mean wait of the promise that the simulator finds for the same rows in the same micro-batches."""
    trace, promise = _first_rows(trace, run.rows), Completeness(ratio)
    controller = DisorderController(promise, make_method(DEFAULT_METHOD, promise))
    heard = run.heard - run.batches.committed
    outcome = run_on_spark(trace, controller, run.batches, report_ms=float(np.nanmedian(heard)))
    sizes = np.diff(np.concatenate(([0], run.batches.ends)))
    in_force = np.repeat(outcome.heartbeats, sizes)
    return float(waits_under(_at_batch_ends(trace, run.batches), in_force).mean()) / 1e3


def best_delay_ms(run: FinishedRun, trace: Trace, ratio: float) -> int:
    """The best constant delay for plain Spark in the micro-batches of the run, in whole milliseconds."""
    return int(np.ceil(best_constant(_first_rows(trace, run.rows), run.batches, ratio)[0]))


@dataclass(frozen=True, slots=True)
class Hindsight:
    """What plain Spark would have done in its own micro-batches with the delay that was best in them.

    The delay does not change the micro-batches, so this is exact. The delay that plain Spark really ran with was the
    best one in the micro-batches of the promise, which are other ones.
    """

    delay_s: float
    wait_s: float
    wait_after_minute_s: float | None
    publication_delay_s: float | None


def hindsight_of(run: FinishedRun, trace: Trace, ratio: float) -> Hindsight:
    """The figures of plain Spark with the best constant delay in the micro-batches of this run."""
    trace = _first_rows(trace, run.rows)
    assert trace.arrivals is not None
    delay_ms, watermarks = best_constant(trace, run.batches, ratio)
    sizes = np.diff(np.concatenate(([0], run.batches.ends)))
    waits = waits_under(_at_batch_ends(trace, run.batches), np.repeat(watermarks, sizes))
    published_ms = mean_publication_delay(run.batches, watermarks, run.window_ms)
    return Hindsight(
        delay_ms / 1e3,
        float(waits.mean()) / 1e3,
        _mean_from(waits, trace.arrivals - trace.arrivals[0], MINUTE_MS, 1e-3),
        None if published_ms is None else published_ms / 1e3,
    )


def decision_ages(run: FinishedRun) -> dict[int, int]:
    """How many micro-batches were planned with a decision from the batch before (1), the one before that (2), …"""
    batches = np.arange(len(run.decided_from))
    rose = np.flatnonzero(np.diff(run.decided_from) > 0) + 1  # the offset at the start of batch k was chosen for k - 1
    ages, counts = np.unique(batches[rose] - 1 - run.decided_from[rose], return_counts=True)
    return dict(zip(ages.tolist(), counts.tolist(), strict=True))


def _first_rows(trace: Trace, rows: int) -> Trace:
    assert trace.arrivals is not None
    return replace(trace, values=trace.values[:rows], arrivals=trace.arrivals[:rows])


def _at_batch_ends(trace: Trace, batches: SparkBatches) -> Trace:
    """The trace as if all rows of a micro-batch had arrived with its last one."""
    assert trace.arrivals is not None
    sizes = np.diff(np.concatenate(([0], batches.ends)))
    return replace(trace, arrivals=np.repeat(trace.arrivals[np.maximum(batches.ends, 1) - 1], sizes))


def _mean_slack_s(run: FinishedRun, sizes: NDArray[np.int64]) -> float | None:
    """The mean of the clock at which a heartbeat was chosen − that heartbeat."""
    known = np.isfinite(run.chosen_at) & np.isfinite(run.watermarks) & (sizes > 0)
    if not known.any():
        return None
    return float(np.average((run.chosen_at - run.watermarks)[known], weights=sizes[known])) / 1e3


def _mean_from(values: NDArray[np.generic], since_ms: Floats, from_ms: float, scale: float) -> float | None:
    """The scaled mean of the values from a time on; None if there are none."""
    later = values[since_ms >= from_ms]
    return float(later.mean()) * scale if len(later) else None
