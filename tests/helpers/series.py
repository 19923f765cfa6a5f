"""Series of micro-batches with made-up figures."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np

from slackwater.control.ledger import Ledger
from slackwater.kernel.standing.shard_counts import ShardCounts
from slackwater.watching.point import Lateness, Point
from slackwater.watching.precision import PrecisionCounts
from slackwater.watching.series import About, Series
from slackwater.watching.series_file import SeriesWriter, series_path

START_MS = 1.7e12
RATIO = About("6a1b-q", "peaks", "sensors", "completeness", 0.01, "budgeted-quantile", "ts")
DELAY = About("6a1b-q", "peaks", "delay-1", "timeliness", 2.0, "ctrl-batch")


STANDING = About("6a1b-q", "peaks", "portfolios", "precision", 0.9, "calibrated deferral")


def ratio_point(batch: int, late: int = 5, cause: str = "quantile", step_ms: float = 1000.0) -> Point:
    """A micro-batch of 1000 rows, ``late`` of them late, with the totals since the first one."""
    count = batch + 1
    return Point(
        at_ms=START_MS + batch * step_ms,
        batch=batch,
        ledger=Ledger(on_time=count * (1000 - late), late=count * late),
        cause=cause,
        heartbeat_ms=START_MS + batch * step_ms - 4000.0,
        wait_ms=4000.0,
        mean_wait_ms=4000.0,
        lateness=Lateness.of(np.array([100.0, 900.0, 9000.0]), np.array([900, 95, 5])),
        run_lateness_ms=(50.0, 80.0, 700.0, 8500.0),
        recent_lateness_ms=(60.0, 90.0, 800.0, 8000.0),
        span_ms=500.0,
        duration_s=0.5,
        state_rows=40,
        open_rows=120,
        results=20 * count,
        late_panes=count,
        window_ms=(START_MS + batch * step_ms - 6000, START_MS + batch * step_ms - 5000),
    )


def delay_point(batch: int, delay_s: float = 1.0, shed_ratio: float = 0.0) -> Point:
    """A micro-batch of a timeliness promise."""
    return Point(
        at_ms=START_MS + batch * 1000.0,
        batch=batch,
        ledger=Ledger(on_time=900 * (batch + 1), shed=100 * (batch + 1)),
        cause="shedding" if shed_ratio else "nothing shed",
        delay_s=delay_s,
        mean_delay_s=delay_s,
        shed_ratio=shed_ratio,
        load_per_s=1200.0,
        capacity_per_s=1000.0,
        backlog_rows=600.0,
        limit_decides=False,
        row_cost_s=0.001,
    )


def standing_point(batch: int, within: float = 0.975, judged: int = 80) -> Point:
    """A micro-batch of a precision promise: of 1000 queries, 100 were evaluated and 10 are withheld."""
    hits = (judged, round(0.9 * judged), 0.9 * judged)
    counts = ShardCounts(1000, 10, 100, 5, *hits, 400.0, 400.0 * within, 360.0, audits=10)
    standing = PrecisionCounts()
    for _ in range(batch + 1):
        standing = standing.after(counts, whole=True)
    at_ms, cause = START_MS + batch * 1000.0, "answers stand until they are due"
    tested = (("AAPL", 0.4),)
    return Point(at_ms, batch, Ledger(), cause, duration_s=0.4, precision=standing, normality=tested)


def ratio_series(batches: int, late: int = 5, about: About = RATIO) -> Series:
    """A completeness promise after ``batches`` micro-batches."""
    series = Series(about)
    for batch in range(batches):
        series.add(ratio_point(batch, late))
    return series


def ratio_writer(folder: Path, number: int = 0, batches: int = 0) -> SeriesWriter:
    """Write the series of a completeness promise into a folder, as the listener would."""
    about = dataclasses.replace(RATIO, query_id=f"id-{number}", query=f"peaks {number}")
    writer = SeriesWriter(series_path(folder / f"p{number}", about.query_id), about, next_batch=0)
    for batch in range(batches):
        writer.add(ratio_point(batch))
    return writer
