"""Counts over a stream that was thinned in some of its micro-batches, held against the batch's."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pandas as pd

from slackwater.spark.timeliness.handler import DELAY_PREFIX


def shed_ratios(query: Any) -> list[float]:
    """The shed ratio of each micro-batch that had rows, one after another, from those that Spark remembers."""
    return [
        metrics["shed_ratio"]
        for progress in query.recentProgress
        for name, metrics in progress["observedMetrics"].items()
        if name.startswith(DELAY_PREFIX) and metrics["rows"]
    ]


@dataclass(frozen=True)
class Counts:
    """How many windows there were whose count is the batch's, is estimated, or cannot be; estimated ones also by kind.

    Where no row of a window came in a thinned micro-batch, its count must be the batch's, with an error of 0. Each row
    that came in one is counted as nothing or as 1/(1 − shed ratio), so that a count lies between two bounds whatever
    the coins. Its standard error is made of the rows that were kept: it is 0 where all that came so were shed.
    """

    exact: int
    near: int
    unaware: int
    far: int
    wrong: int

    def __str__(self) -> str:
        estimated = self.near + self.unaware + self.far
        return (
            f"{self.exact} of them the same as the batch's, since nothing could be shed of them, and {estimated} "
            f"estimates: {self.near} within 1.96 standard errors, {self.far} not, {self.unaware} short by a few rows "
            "with an error of 0, since of those that could be shed none was kept"
        )


def compared(found: pd.DataFrame, batch: pd.DataFrame, rows: pd.DataFrame) -> Counts:
    """Results against the batch's, by ``rows``: the time of each, and the shed ratio of its micro-batch."""
    thinned = rows[rows["shed_ratio"] > 0.0]
    counts = {"exact": 0, "near": 0, "unaware": 0, "far": 0, "wrong": 0}
    exactly = batch.set_index(["window_start", "window_end"])["count(*)"]
    missing = set(exactly.index)
    columns = ["window_start", "window_end", "count(*)", "count(*)_error"]
    for start, end, count, error in found[columns].itertuples(index=False):
        if (start, end) not in missing:  # not the batch's, or here twice
            counts["wrong"] += 1
            continue
        missing.remove((start, end))
        ratio = thinned["shed_ratio"][(thinned["ts"] >= start) & (thinned["ts"] < end)]
        off = count - exactly[start, end]
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
    counts["wrong"] += sum(exactly[window] > _inside(thinned, *window) for window in missing)
    return Counts(**counts)


def _inside(rows: pd.DataFrame, start: pd.Timestamp, end: pd.Timestamp) -> int:
    return int(((rows["ts"] >= start) & (rows["ts"] < end)).sum())
