"""Which rows a query judged late, found from Spark's own watermarks, and the windows that it must have closed."""

from __future__ import annotations

import json
from typing import Any

import pandas as pd
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from tests.helpers.harness import watermark_ms

Rows = list[dict[str, Any]]
WINDOW_MS = 5000


def late_ids(progress: list[Any], batches: list[Rows], *, stateless: bool = False) -> list[int]:
    """The rows below the heartbeat of their micro-batch; ties are on time.

    The heartbeat is Spark's own watermark. Of a stateless query, which reports none, it is the offset that the
    heartbeat source began the micro-batch with.
    """
    heartbeat_ms = _offset_ms if stateless else _watermark_heartbeat_ms
    return [
        row["id"]
        for at, batch in zip(_with_rows(progress, batches), batches, strict=True)
        if (in_force_ms := heartbeat_ms(progress[at])) is not None
        for row in batch
        if _event_ms(row) < in_force_ms
    ]


def _watermark_heartbeat_ms(progress: Any) -> float | None:
    mark_ms = watermark_ms(progress)
    return mark_ms + 1 if mark_ms > 0 else None


def _offset_ms(progress: Any) -> float | None:
    start = json.loads(progress["sources"][0]["startOffset"] or "null")
    return None if start is None else start["heartbeat"]


def counts_of_closed_windows(progress: list[Any], batches: list[Rows], events: DataFrame) -> DataFrame:
    """Rows by sensor in each closed window of five seconds, as a batch job counts them in ``events``.

    A closed window has all its rows but those that Spark's filter refused, which goes by the watermark of the
    micro-batch before.
    """
    marks = [watermark_ms(p) for p in progress]
    refused = [
        row["id"]
        for at, batch in zip(_with_rows(progress, batches), batches, strict=True)
        if at > 0
        for row in batch
        if _event_ms(row) // WINDOW_MS * WINDOW_MS + WINDOW_MS <= marks[at - 1]
    ]
    assert set(refused) <= set(late_ids(progress, batches))
    counts = events.where(~F.col("id").isin(refused)).groupBy(F.window("ts", "5 seconds"), "sensor").count()
    return counts.where(F.unix_millis(F.col("window.end")) <= F.lit(int(marks[-1])))


def _with_rows(progress: list[Any], batches: list[Rows]) -> list[int]:
    """The positions of the micro-batches with rows; each of ``batches`` must be one."""
    found = [i for i, p in enumerate(progress) if p["sources"][1]["numInputRows"] > 0]
    assert len(found) == len(batches)
    return found


def _event_ms(row: dict[str, Any]) -> float:
    return float(pd.Timestamp(row["ts"]).timestamp() * 1000)
