"""Checks estimated counts of a query that shed load against the exact counts of a batch job."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pandas as pd

from slackwater.spark.timeliness.handler import DELAY_PREFIX


def shed_ratios(query: Any) -> list[float]:
    """The shed ratio of each micro-batch with rows, in order, from Spark's recent progress."""
    return [
        metrics["shed_ratio"]
        for progress in query.recentProgress
        for name, metrics in progress["observedMetrics"].items()
        if name.startswith(DELAY_PREFIX) and metrics["rows"]
    ]


@dataclass(frozen=True)
class Counts:
    """Numbers of windows, by how their count compares with the batch job's.

    A window is ``exact`` if none of its rows was in a micro-batch that shed: its count must then be the batch's, with
    an error of 0. Otherwise the count is an estimate. A row in a micro-batch that shed counts as 0 or as
    1/(1 − shed ratio), so the estimate lies between two bounds whatever the draws. ``near`` estimates are within 1.96
    standard errors, ``far`` ones are not. ``unaware`` estimates are off although their error is 0: the error is
    computed from kept rows, and all rows that could be shed were shed. A window that fits none of these is ``wrong``.
    """

    exact: int
    near: int
    unaware: int
    far: int
    wrong: int

    def __str__(self) -> str:
        estimated = self.near + self.unaware + self.far
        return (
            f"{self.exact} of them equal to the batch's, because none of their rows could be shed, and {estimated} "
            f"estimates: {self.near} within 1.96 standard errors, {self.far} not, {self.unaware} short by a few rows "
            "with an error of 0, because all rows that could be shed were shed"
        )


def compare_counts(found: pd.DataFrame, batch: pd.DataFrame, rows: pd.DataFrame) -> Counts:
    """Compare results with the batch's. ``rows`` has the event time of each row and its micro-batch's shed ratio."""
    sheddable = rows[rows["shed_ratio"] > 0.0]
    counts = {"exact": 0, "near": 0, "unaware": 0, "far": 0, "wrong": 0}
    exact = batch.set_index(["window_start", "window_end"])["count(*)"]
    missing = set(exact.index)
    columns = ["window_start", "window_end", "count(*)", "count(*)_error"]
    for start, end, count, error in found[columns].itertuples(index=False):
        if (start, end) not in missing:  # the batch has no such window, or the result is a duplicate
            counts["wrong"] += 1
            continue
        missing.remove((start, end))
        ratio = sheddable["shed_ratio"][(sheddable["ts"] >= start) & (sheddable["ts"] < end)]
        off = count - exact[start, end]
        if len(ratio) == 0:
            kind = "exact" if off == 0.0 and error == 0.0 else "wrong"
        elif not -len(ratio) - 1e-9 <= off <= (ratio / (1.0 - ratio)).sum() + 1e-9:
            kind = "wrong"
        elif abs(off) <= 1.96 * error + 1e-9:
            kind = "near"
        else:
            kind = "far" if error > 0.0 else "unaware"
        counts[kind] += 1
    # a window may have no result only if all of its rows could be shed
    counts["wrong"] += sum(exact[window] > _rows_in_window(sheddable, *window) for window in missing)
    return Counts(**counts)


def _rows_in_window(rows: pd.DataFrame, start: pd.Timestamp, end: pd.Timestamp) -> int:
    return int(((rows["ts"] >= start) & (rows["ts"] < end)).sum())
