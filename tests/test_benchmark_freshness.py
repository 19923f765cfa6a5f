"""The freshness benchmark counts a run as the simulator does, and resumes from its file."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from slackwater.sim.driver import count, waits_under
from slackwater.sim.spark_batches import SparkBatches, Trigger, best_constant, mean_publication_delay
from slackwater.sim.streams import make_stream
from slackwater.sim.trace import Trace

RATIO = 0.01
WINDOW_MS = 2000


@pytest.fixture(scope="module")
def trace() -> Trace:
    return make_stream("drifting", 0)


def _run_of(trace: Trace, batches: SparkBatches, watermarks: Any, **changes: Any) -> Any:
    """A finished run of plain Spark: a window is published when the watermark has passed its end."""
    queries: Any = importlib.import_module("freshness_queries")
    ends = (np.floor(trace.values / WINDOW_MS) + 1) * WINDOW_MS
    sizes = np.diff(np.concatenate(([0], batches.ends)))
    open_for = ends > np.repeat(watermarks, sizes)
    published, counts = np.unique(ends[open_for & (ends <= watermarks[-1])], return_counts=True)
    newest = np.searchsorted(published, watermarks, "right")
    fields = {
        "start_us": 0,
        "window_ms": WINDOW_MS,
        "batches": batches,
        "watermarks": watermarks,
        "chosen_at": np.full(len(sizes), np.nan),
        "decided_from": np.full(len(sizes), -1),
        "heard": batches.committed + 20.0,
        "newest_window": np.concatenate(([-np.inf], published))[newest],
        "windows": (published, counts),
        "phases": {"addBatch": batches.committed - batches.planned},
    }
    return queries.FinishedRun(**(fields | changes))


def test_a_run_is_counted_as_in_the_simulator(trace: Trace) -> None:
    figures: Any = importlib.import_module("freshness_figures")
    batches = SparkBatches.of(trace, Trigger(0.0))
    delay_ms, watermarks = best_constant(trace, batches, RATIO)
    run = _run_of(trace, batches, watermarks)
    outcome = count(trace, batches.ends, watermarks, [])
    counted = figures.figures_of(run, trace, RATIO, delay_ms)
    in_force = np.repeat(watermarks, np.diff(np.concatenate(([0], batches.ends))))
    assert counted.late == outcome.late
    assert counted.kept
    assert counted.row_wait_s == pytest.approx(outcome.mean_wait / 1e3)
    assert counted.wait_s >= counted.row_wait_s
    assert counted.row_wait_s == pytest.approx(waits_under(trace, in_force).mean() / 1e3)
    assert counted.missing == np.count_nonzero((np.floor(trace.values / WINDOW_MS) + 1) * WINDOW_MS <= in_force)
    assert counted.reported_after_s == pytest.approx(0.02)
    assert counted.phases_s["addBatch"] == counted.batch_s
    hindsight = figures.hindsight_of(run, trace, RATIO)
    assert hindsight.delay_s * 1e3 == pytest.approx(delay_ms)
    assert hindsight.wait_s == pytest.approx(counted.wait_s)
    published_ms = mean_publication_delay(batches, watermarks, WINDOW_MS)
    assert published_ms is not None
    assert hindsight.publication_delay_s == pytest.approx(published_ms / 1e3)


def test_another_count_of_late_rows_is_refused(trace: Trace) -> None:
    figures: Any = importlib.import_module("freshness_figures")
    batches = SparkBatches.of(trace, Trigger(1000.0))
    watermarks = best_constant(trace, batches, RATIO)[1]
    late = count(trace, batches.ends, watermarks, []).late
    figures.figures_of(_run_of(trace, batches, watermarks, late=late), trace, RATIO)
    with pytest.raises(AssertionError, match="late rows counted"):
        figures.figures_of(_run_of(trace, batches, watermarks, late=late + 1), trace, RATIO)


def test_the_age_of_decisions(trace: Trace) -> None:
    figures: Any = importlib.import_module("freshness_figures")
    batches = SparkBatches.of(trace, Trigger(1000.0))
    watermarks = best_constant(trace, batches, RATIO)[1]
    batch = np.arange(len(watermarks))
    # At the start of batch k the offset is the one chosen when k - 1 was planned, from the decision after k - 2.
    fresh = _run_of(trace, batches, watermarks, decided_from=np.maximum(batch - 2, -1))
    assert figures.decision_ages(fresh) == {1: len(batch) - 2}
    older = _run_of(trace, batches, watermarks, decided_from=np.maximum(batch - 3, -1))
    assert figures.decision_ages(older) == {2: len(batch) - 3}


def test_cells_are_kept_in_a_file(trace: Trace, tmp_path: Path) -> None:
    figures: Any = importlib.import_module("freshness_figures")
    cells: Any = importlib.import_module("freshness_cells")
    batches = SparkBatches.of(trace, Trigger(0.0))
    delay_ms, watermarks = best_constant(trace, batches, RATIO)
    run = _run_of(trace, batches, watermarks)
    plain = figures.figures_of(run, trace, RATIO, delay_ms)
    cell = cells.Cell(
        "drifting", 0.0, RATIO, 60.0, 1, 1.0, 2.0, plain, plain, figures.hindsight_of(run, trace, RATIO), 1.0, {1: 3}
    )
    keep = tmp_path / "cells.jsonl"
    cells.append_cells(keep, [cell])
    assert cells.read_cells(keep) == [cell]
    assert cell.ratios["wait"] == cell.ratios["hindsight_wait"] == pytest.approx(1.0)
    assert cells.summary([cell])["kept"] == 1
    assert cells.table_of([cell]).row_count == 1


def test_a_replayed_trace_keeps_its_shape(trace: Trace, tmp_path: Path) -> None:
    streams: Any = importlib.import_module("freshness_streams")
    assert trace.arrivals is not None
    start_us, speed = 1_000_000_000, 4.0
    span_s = (trace.arrivals[-1] - trace.arrivals[0]) / 1e3
    replayed = streams.Replayed.of(trace, speed, span_s / speed / 2, tmp_path / "rows")
    rows = replayed.trace(start_us)
    assert 0 < rows.rows < trace.rows
    recorded = slice(0, rows.rows)
    # to a microsecond, in milliseconds
    np.testing.assert_allclose(rows.arrivals - 1e6, (trace.arrivals[recorded] - trace.arrivals[0]) / speed, atol=1e-3)
    lateness = (trace.arrivals - trace.values)[recorded] / speed
    np.testing.assert_allclose(rows.arrivals - rows.values, lateness, atol=1e-3)
