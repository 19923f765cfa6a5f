"""A restart from the checkpoint keeps the promise and repeats no result, with and without the promise's folder."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

import slackwater as sw
from tests.helpers.harness import (
    FileStream,
    collected,
    promise_of,
    rows,
    same_rows,
    settle,
    start,
    watermark_ms,
)

pytestmark = pytest.mark.spark

PER_BATCH = 100


def batch_rows(batch: int) -> list[dict[str, Any]]:
    at = batch * 10 + np.linspace(0, 10, PER_BATCH, endpoint=False)
    return rows(at, 0.4 * np.abs(np.sin(at * 5)), first_id=batch * PER_BATCH)


@pytest.mark.parametrize(
    ("location", "name"),
    [
        ("beside the checkpoint", "again"),
        pytest.param("lost", "again", marks=pytest.mark.full),
        pytest.param("kept", None, marks=pytest.mark.full),
    ],
)
def test_a_clean_restart_goes_on(location: str, name: str | None, spark: SparkSession, tmp_path: Path) -> None:
    stream = FileStream(spark, tmp_path / "in")
    beside = str(tmp_path / "slackwater")
    marks: list[float] = []
    ledgers = []
    for run in range(3):
        for batch in range(3):
            stream.put(batch_rows(run * 3 + batch))
        if location == "lost":
            shutil.rmtree(beside, ignore_errors=True)
        events = sw.with_drop_ratio(
            stream.read_stream(), "ts", "5%", arrival="arrived", name=name, min_wait="1 second", location=beside
        )
        query = start(events.groupBy(F.window("ts", "5 seconds"), "sensor").count(), tmp_path)
        settle(query)
        promise = promise_of(query)
        ledgers.append(promise.ledger)
        assert promise.kept
        marks += [watermark_ms(progress) for progress in query.recentProgress]
        query.stop()
    assert marks == sorted(marks), "the heartbeat never retreats"
    assert ledgers[-1].input == 9 * PER_BATCH
    assert name is None or location == "lost" or ledgers[-1].unreported_batches == 0
    truth = stream.read_batch().groupBy(F.window("ts", "5 seconds"), "sensor").count()
    closed = truth.where(F.unix_millis("window.end") <= F.lit(int(marks[-1])))
    assert closed.count() > 10, "windows have closed"
    same_rows(collected(spark, tmp_path), closed)
