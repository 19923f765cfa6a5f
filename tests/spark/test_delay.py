"""Shedding on real Spark: the counts are exact, the weights correct, and nothing is shed without need."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pyspark.sql import DataFrame, SparkSession
from scipy.stats import binomtest

import slackwater as sw
from slackwater.errors import InvalidOption, InvalidStream, UnknownName
from slackwater.spark.runtime.listener import listener_of
from slackwater.spark.timeliness.handler import TimelinessHandler
from slackwater.spark.timeliness.report import TimelinessReport
from tests.helpers.harness import FileStream, collected, rows, same_rows, settle, start

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("known_controllers")]


def delay_of(query: Any) -> TimelinessReport:
    (delay,) = sw.report(query).timeliness
    return delay


def numbered(batch: int, count: int = 500) -> list[dict[str, Any]]:
    at_s = batch + np.arange(count) / count
    return rows(at_s, np.zeros(count), first_id=batch * count)


def run(spark: SparkSession, folder: Path, result: DataFrame, stream: FileStream, batches: int) -> TimelinessReport:
    """Run micro-batches one by one; the decision of each is in force in the next."""
    query = start(result, folder)
    try:
        for batch in range(batches):
            stream.put(numbered(batch))
            settle(query)
        return delay_of(query)
    finally:
        query.stop()


def test_every_row_is_kept_or_counted_as_shed(spark: SparkSession, tmp_path: Path) -> None:
    stream = FileStream(spark, tmp_path / "in")
    events = sw.with_max_delay(stream.read_stream(), "2 seconds", law=sw.Law("test-scripted", ratios=(0.5, 0.75)))
    delay = run(spark, tmp_path, events, stream, 5)
    out = collected(spark, tmp_path).toPandas()
    assert (delay.ledger.input, delay.ledger.on_time) == (2500, len(out))
    assert delay.ledger.shed == 2500 - len(out)
    assert out["id"].is_unique
    # the first two batches are whole (nothing is decided before the second), then one of 50 % and two of 75 %
    weights = out.groupby(out["id"] // 500)["shed_weight"].unique().map(list).tolist()
    assert weights == [[1.0], [1.0], [2.0], [4.0], [4.0]]
    kept = out.groupby(out["id"] // 500).size().to_numpy()
    expected, deviation = np.array([250, 125, 125]), np.sqrt(500 * np.array([0.25, 0.1875, 0.1875]))
    assert (np.abs(kept[2:] - expected) < 4.5 * deviation).all()
    # each batch sheds at other positions
    last_two = [set(out["id"][out["id"] // 500 == batch] % 500) for batch in (3, 4)]
    assert last_two[0] != last_two[1]


def test_nothing_changes_while_nothing_is_shed(spark: SparkSession, tmp_path: Path) -> None:
    stream = FileStream(spark, tmp_path / "in")
    events = sw.with_max_delay(stream.read_stream(), "1 hour", weight=None)
    delay = run(spark, tmp_path, events, stream, 3)
    assert (delay.ledger.input, delay.ledger.shed) == (1500, 0)
    same_rows(collected(spark, tmp_path), stream.read_batch())


@pytest.mark.parametrize("where", ["driver", "file"])
def test_an_empty_shed_row_sheds_nothing(spark: SparkSession, tmp_path: Path, where: str) -> None:
    stream = FileStream(spark, tmp_path / "in")
    spark.conf.set("spark.slackwater.controlRow", where)
    try:
        events = sw.with_max_delay(stream.read_stream(), "1 hour", name="emptied", location=str(tmp_path / "promises"))
    finally:
        spark.conf.unset("spark.slackwater.controlRow")
    listener_of(spark).handler(TimelinessHandler)._specs["emptied"].mailbox.shed_path.write_text("")
    delay = run(spark, tmp_path, events, stream, 1)
    assert (delay.ledger.input, delay.ledger.shed) == (500, 0)
    assert set(collected(spark, tmp_path).toPandas()["shed_weight"]) == {1.0}


def test_no_micro_batch_has_generated_code_of_its_own(spark: SparkSession, tmp_path: Path) -> None:
    """A ratio, time or seed in the generated code would make Spark compile it again in every micro-batch."""
    compiled = spark._jvm.org.apache.spark.metrics.source.CodegenMetrics.METRIC_COMPILATION_TIME()  # type: ignore[union-attr]
    counts, shed = [], 0
    for turn in ("first", "second"):
        stream = FileStream(spark, tmp_path / turn / "in")
        events = sw.with_max_delay(
            stream.read_stream(), "2 seconds", law=sw.Law("test-scripted", ratios=(0.5, 0.0, 0.75))
        )
        shed = run(spark, tmp_path / turn, events, stream, 5).ledger.shed
        counts.append(compiled.getCount())
    assert shed > 0
    assert counts[1] == counts[0]


def test_a_restarted_query_goes_on_with_its_ratio_and_its_ledger(spark: SparkSession, tmp_path: Path) -> None:
    stream = FileStream(spark, tmp_path / "in")

    def events() -> DataFrame:
        return sw.with_max_delay(
            stream.read_stream(),
            "2 seconds",
            name="restarted",
            law=sw.Law("test-scripted", ratios=(0.75,)),
            location=str(tmp_path / "promises"),
        )

    run(spark, tmp_path, events(), stream, 2)
    query = start(events(), tmp_path)
    stream.put(numbered(2))
    settle(query)
    delay = delay_of(query)
    query.stop()
    out = collected(spark, tmp_path).toPandas()
    assert (delay.ledger.input, delay.ledger.on_time) == (1500, len(out))
    assert set(out["shed_weight"][out["id"] >= 1000]) == {4.0}


def test_both_promises_together(spark: SparkSession, tmp_path: Path) -> None:
    stream = FileStream(spark, tmp_path / "in")
    # micro-batches without rows, which only bring a heartbeat, leave the ratio as it is
    shed = sw.with_max_delay(stream.read_stream(), "1 hour", law=sw.Law("test-scripted", ratios=(0.5,)))
    events = sw.with_drop_ratio(shed, "ts", "1%", arrival="arrived")
    query = start(events, tmp_path)
    for batch in range(4):
        stream.put(numbered(batch))
        settle(query)
    report = sw.report(query)
    query.stop()
    (promise,), (delay,) = report.completeness, report.timeliness
    assert delay.ledger.input == 2000 and delay.ledger.shed > 0
    out = collected(spark, tmp_path).toPandas()
    assert out.groupby(out["id"] // 500)["shed_weight"].unique().map(list).tolist() == [[1.0], [1.0], [2.0], [2.0]]
    assert promise.ledger.input == delay.ledger.on_time == len(out)


def covered_by_fair_coins(ratios: list[float], xs: np.ndarray, runs: int = 20_000) -> dict[str, float]:
    """How often 1.96 standard errors cover count, sum and average if independent coins keep the rows.

    This is a little below 95 %, because an estimate that is too low has an error that is too low.
    """
    rng = np.random.default_rng(1)
    w, x = np.repeat(1 / (1 - np.array(ratios)), len(xs)), np.tile(xs, len(ratios))
    hits = dict.fromkeys("nsm", 0)
    for _ in range(runs):
        kept = rng.random(len(w)) < 1 / w
        weights, values = w[kept], x[kept]
        spread = weights * (weights - 1)
        n, s = weights.sum(), weights @ values
        mean = s / n
        for name, estimate, true, variance in (
            ("n", n, len(x), spread.sum()),
            ("s", s, x.sum(), spread @ values**2),
            ("m", mean, x.mean(), spread @ (values - mean) ** 2 / n**2),
        ):
            hits[name] += abs(estimate - true) <= 1.96 * np.sqrt(variance)
    return {name: count / runs for name, count in hits.items()}


@pytest.mark.full
def test_sums_and_counts_are_unbiased_and_their_errors_honest(spark: SparkSession, tmp_path: Path) -> None:
    """400 groups with the same 300 rows per batch stand for 400 runs of the same query."""
    # with these numbers, 1 % of the truth is more than five standard deviations of the means below
    runs, per_batch, batches = 400, 300, 5
    stream = FileStream(spark, tmp_path / "in", schema="run long, x double")
    events = sw.with_max_delay(stream.read_stream(), "2 seconds", law=sw.Law("test-scripted", ratios=(0.3, 0.6, 0.8)))
    query = start(events, tmp_path)
    for _ in range(batches):
        stream.put([{"run": run, "x": float(x)} for run in range(runs) for x in range(per_batch)])
        settle(query)
    query.stop()
    estimates = (
        collected(spark, tmp_path)
        .groupBy("run")
        .agg(
            sw.estimated_count().alias("n"),
            sw.count_error().alias("n_error"),
            sw.estimated_sum("x").alias("s"),
            sw.sum_error("x").alias("s_error"),
            sw.estimated_avg("x").alias("m"),
            sw.avg_error("x").alias("m_error"),
            sw.shed_share().alias("shed"),
        )
        .toPandas()
    )
    assert len(estimates) == runs
    fair = covered_by_fair_coins([0.0, 0.0, 0.3, 0.6, 0.8], np.arange(per_batch, dtype=float))
    truth = {"n": per_batch * batches, "s": batches * sum(range(per_batch)), "m": (per_batch - 1) / 2}
    for name, true in truth.items():
        assert estimates[name].mean() == pytest.approx(true, rel=0.01)
        covered = int((np.abs(estimates[name] - true) <= 1.96 * estimates[f"{name}_error"]).sum())
        # every run draws new coins: one run in a hundred thousand fails by chance
        assert binomtest(covered, runs, fair[name]).pvalue > 1e-5, (name, covered)
    # two whole batches, then 30 %, 60 % and 80 %
    assert estimates["shed"].mean() == pytest.approx((0.3 + 0.6 + 0.8) / batches, abs=0.02)


def test_invalid_arguments_are_refused(spark: SparkSession, tmp_path: Path) -> None:
    stream = FileStream(spark, tmp_path / "in").read_stream()
    with pytest.raises(InvalidStream, match="not-a-stream"):
        sw.with_max_delay(spark.range(3), "2 seconds")
    with pytest.raises(InvalidStream, match="no-such-column"):
        sw.with_max_delay(stream, "2 seconds", arrival="nowhere")
    with pytest.raises(InvalidStream, match="not-a-timestamp"):
        sw.with_max_delay(stream, "2 seconds", arrival="value")
    with pytest.raises(InvalidStream, match="weight-taken"):
        sw.with_max_delay(stream, "2 seconds", weight="value")
    with pytest.raises(UnknownName, match="unknown-law"):
        sw.with_max_delay(stream, "2 seconds", law="magic")
    with pytest.raises(InvalidOption, match="no-delay-at-all"):
        sw.with_max_delay(stream, 0)
