"""Semantic shedding on real Spark: the least useful rows go first, the ratio is met, and estimates stay unbiased."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

import slackwater as sw
from slackwater.control.shedding.utility import UtilityHistogram, least_ratio
from slackwater.errors import InvalidOption, InvalidStream
from slackwater.spark.timeliness.utility import cell_column
from tests.helpers.harness import FileStream, collected, settle, start
from tests.spark.test_delay import delay_of, numbered

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("known_controllers")]

SCHEMA = "id long, priority double, x double"
EACH = 4000


def prioritised(batch: int, each: int = EACH) -> list[dict[str, Any]]:
    """Rows of ten priorities, one of which is null; the value grows with the priority."""
    rng = np.random.default_rng(batch)
    priorities = rng.integers(0, 10, each)
    return [
        {"id": batch * each + i, "priority": None if p == 0 else float(p), "x": float(p) + i % 7}
        for i, p in enumerate(priorities)
    ]


def run(spark: SparkSession, folder: Path, shed_by: str | Column, ratios: tuple[float, ...], batches: int) -> Any:
    stream = FileStream(spark, folder / "in", schema=SCHEMA)
    law = sw.Law("test-scripted", ratios=ratios)
    query = start(sw.with_max_delay(stream.read_stream(), "1 hour", shed_by=shed_by, law=law), folder)
    for batch in range(batches):
        stream.put(prioritised(batch))
        settle(query)
    delay = delay_of(query)
    query.stop()
    return delay, stream.read_batch().toPandas(), collected(spark, folder).toPandas()


@pytest.mark.parametrize("as_column", [False, True])
def test_the_least_useful_rows_are_shed_and_the_ratio_is_met(
    spark: SparkSession, tmp_path: Path, as_column: bool
) -> None:
    shed_by = F.col("priority") * 2 - 30 if as_column else "priority"
    delay, rows, kept = run(spark, tmp_path, shed_by, (0.45, 0.8), 5)
    assert (delay.ledger.input, delay.ledger.on_time) == (len(rows), len(kept))
    assert delay.ledger.shed == len(rows) - len(kept) and kept["id"].is_unique
    rank = rows["priority"].fillna(0.0)
    for batch, ratio in ((2, 0.45), (3, 0.8), (4, 0.8)):
        of_batch = rows[rows["id"] // EACH == batch]
        weights = kept[kept["id"] // EACH == batch].set_index("id")["shed_weight"]
        shed = of_batch[~of_batch["id"].isin(weights.index)]
        highest_shed = float(rank[shed.index].max())
        # every row above the threshold is kept with weight 1, and those below it have the weight of the sample
        above, below = (of_batch["id"][test] for test in (rank > highest_shed, rank < highest_shed))
        above, below = above[above // EACH == batch], below[below // EACH == batch]
        assert set(above) <= set(weights.index) and set(weights[above]) <= {1.0}
        assert set(np.round(weights.reindex(below).dropna(), 6)) <= {round(1 / least_ratio(ratio), 6)}
        # the chances of the rows are known from their weights: the ratio is met within the error of the coins
        chances = 1.0 / weights.groupby(rank[weights.index.to_numpy()].to_numpy()).first()
        counts = rank[of_batch.index].groupby(rank[of_batch.index]).size().reindex(chances.index)
        deviation = float(np.sqrt((counts * chances * (1 - chances)).sum()))
        drift = float(np.sqrt(EACH * ratio * (1 - ratio)))  # the batch differs from those that were counted
        assert abs(len(shed) - ratio * EACH) < 4.5 * np.hypot(deviation, drift)
    assert delay.shed_by == str(shed_by) and delay.shed_below is not None
    assert f", by {shed_by}, now around and below" in str(delay)


def test_counts_and_sums_are_unbiased_by_priority(spark: SparkSession, tmp_path: Path) -> None:
    """Sums per priority against a batch job: the mean over the strata is far from the truth without the weights."""
    _, rows, kept = run(spark, tmp_path, "priority", (0.5, 0.7), 8)
    estimates = spark.createDataFrame(kept.fillna({"priority": 0.0})).groupBy("priority")
    found = estimates.agg(
        sw.estimated_count().alias("n"),
        sw.count_error().alias("n_error"),
        sw.estimated_sum("x").alias("s"),
        sw.sum_error("x").alias("s_error"),
    ).toPandas()
    truth = rows.fillna({"priority": 0.0}).groupby("priority")["x"].agg(n="size", s="sum")
    joined = found.set_index("priority").join(truth, rsuffix="_true")
    assert len(joined) == 10, "no stratum is lost"
    for name in ("n", "s"):
        errors = (joined[name] - joined[f"{name}_true"]).abs()
        # an interval of five standard errors fails by chance once in a million, the least rows of a stratum aside
        assert (errors <= 5 * joined[f"{name}_error"] + 1e-6).all(), joined
        total, total_error = joined[name].sum(), np.sqrt((joined[f"{name}_error"] ** 2).sum())
        assert abs(total - joined[f"{name}_true"].sum()) <= 5 * total_error
    thinned = kept[kept["id"] // EACH >= 2]  # nothing is shed before the second decision
    assert thinned["x"].mean() > 1.2 * rows["x"].mean(), "the kept rows are the useful ones"


@pytest.mark.parametrize("in_text", [True, False])
def test_windows_over_shed_rows_agree_with_a_batch_job(spark: SparkSession, tmp_path: Path, in_text: bool) -> None:
    """SHED BY in a query: the highest value is exact, and counts are within their errors of the batch job's."""
    stream = FileStream(spark, tmp_path / "in")
    law, method = sw.Law("test-scripted", ratios=(0.6,)), sw.Method("test-trailing", wait_ms=100.0)
    if in_text:
        sw.stream("Shedding", stream.read_stream(), event_time="ts")
        text = (
            "SELECT COUNT(*) AS n, MAX(value) AS highest FROM Shedding "
            "[RANGE 1 second SLIDE 1 second DRATIO 1% DELAY 1 hour SHED BY (value + 0)] WITH ERROR"
        )
        result = sw.sql(spark, text, law=law, method=method)
    else:
        windowed = sw.window(
            stream.read_stream(),
            range="1 second",
            slide="1 second",
            event_time="ts",
            drop_ratio="1%",
            max_delay="1 hour",
            shed_by="value + 0",
            error=True,
            law=law,
            method=method,
        )
        result = windowed.agg("COUNT(*) AS n", F.max("value").alias("highest"))
    query = start(result, tmp_path)
    for batch in range(6):
        stream.put(numbered(batch, 3000))
        settle(query)
    delay = delay_of(query)
    query.stop()
    found = collected(spark, tmp_path).toPandas().set_index("window_start")
    window = F.window("ts", "1 second").start.alias("window_start")
    truth = stream.read_batch().groupBy(window).agg(F.count("*").alias("n"), F.max("value").alias("highest"))
    joined = found.join(truth.toPandas().set_index("window_start"), rsuffix="_true")
    assert delay.ledger.input == 6 * 3000 and delay.ledger.shed > 0
    assert delay.shed_by == "value + 0"
    shed = joined[joined["shed_ratio"] > 0]
    assert len(shed) >= 2, "windows after the first decision"
    assert (joined["highest"] == joined["highest_true"]).all()
    assert ((shed["n"] - shed["n_true"]).abs() <= 5 * shed["n_error"]).all()


def test_cells_are_ordered_as_utilities_are(spark: SparkSession) -> None:
    values = [None, float("nan"), -np.inf, -1e15, -7.0, -1e-9, 0.0, 1e-9, 0.5, 1.0, 2.0, 63.0, 64.0, 1e15, np.inf]
    frame = spark.createDataFrame([(i, v) for i, v in enumerate(values)], "i int, v double")
    cells = [row[0] for row in frame.orderBy("i").select(cell_column(F.col("v"))).collect()]
    assert cells == sorted(cells)
    assert cells[0] == cells[1] < cells[2], "a row without a utility is the least useful"
    assert len({*cells[8:13]}) == 5, "whole numbers below 65 are told apart"


@pytest.mark.parametrize("ratio", [0.01, 0.3, 0.77, 0.99])
def test_a_threshold_meets_the_ratio_on_the_rows_it_was_made_from(ratio: float) -> None:
    rng = np.random.default_rng(5)
    cells, counts = np.unique(rng.normal(0, 30, 10_000).astype(int), return_counts=True)
    histogram = UtilityHistogram()
    histogram.observe(zip(cells.tolist(), counts.tolist(), strict=True))
    threshold = histogram.threshold(ratio)
    chances = np.full(len(cells), least_ratio(ratio))
    chances[cells == threshold.cell], chances[cells > threshold.cell] = threshold.keep_ratio, 1.0
    assert 1 - float(counts @ chances) / counts.sum() == pytest.approx(ratio)


def test_a_promise_that_sheds_nothing_changes_no_row(spark: SparkSession, tmp_path: Path) -> None:
    delay, rows, kept = run(spark, tmp_path, "priority", (0.0,), 3)
    assert delay.ledger.shed == 0 and set(kept["shed_weight"]) == {1.0}
    ordered = [frame.sort_values("id", ignore_index=True)[["id", "priority", "x"]] for frame in (rows, kept)]
    pd.testing.assert_frame_equal(*ordered)


def test_a_utility_that_is_no_number_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    stream: DataFrame = FileStream(spark, tmp_path / "in").read_stream()
    for shed_by, condition in (
        ("sensor", "not-a-number"),
        (F.col("ts"), "not-a-number"),
        ("nowhere", "wrong-shed-by"),
        ("value +", "wrong-shed-by"),
        ("sum(value)", "wrong-shed-by"),
    ):
        with pytest.raises(InvalidStream, match=condition):
            sw.with_max_delay(stream, "2 seconds", shed_by=shed_by)
    with pytest.raises(InvalidOption, match="option-not-used"):
        sw.with_max_delay(stream, "2 seconds", shed_by="value", law="none")
