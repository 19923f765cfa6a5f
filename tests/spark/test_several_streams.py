"""Several promised streams in one query: each has its own target, shed ratio and ledger."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import slackwater as sw
from tests.helpers.harness import SCHEMA, FileStream, collected, settle, start
from tests.spark.test_delay import numbered

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("known_controllers")]

BATCHES = 5


def test_each_stream_of_a_query_is_shed_and_counted_for_itself(spark: SparkSession, tmp_path: Path) -> None:
    streams, ratios = {}, {"orders": (0.5,), "clicks": (0.75,), "alarms": (0.0,)}
    targets = {"orders": 3.0, "clicks": 1.0, "alarms": 7.0}
    promised = []
    for name in ratios:
        streams[name] = FileStream(spark, tmp_path / name)
        events = streams[name].read_stream().withColumn("stream", F.lit(name))
        law = sw.Law("test-scripted", ratios=ratios[name])
        promised.append(sw.with_max_delay(events, targets[name], law=law, name=f"{name}-delay"))
    query = start(promised[0].unionByName(promised[1]).unionByName(promised[2]), tmp_path)
    for batch in range(BATCHES):
        for stream in streams.values():
            stream.put(numbered(batch))
        settle(query)
    report = sw.report(query)
    query.stop()
    out = collected(spark, tmp_path).toPandas()
    each = BATCHES * len(numbered(0))
    by_name = {delay.name.removesuffix("-delay"): delay for delay in report.timeliness}
    assert {name: delay.promise.max_delay_s for name, delay in by_name.items()} == targets
    for name, delay in by_name.items():
        kept = out[out["stream"] == name]
        assert kept["id"].is_unique
        assert (delay.ledger.input, delay.ledger.on_time, delay.ledger.shed) == (each, len(kept), each - len(kept))
        assert set(kept["shed_weight"]) == {1.0, 1.0 / (1.0 - ratios[name][0])}
    assert by_name["alarms"].ledger.shed == 0
    assert report.ledger.input == 3 * each and report.ledger.on_time == len(out)
    estimates = (
        collected(spark, tmp_path)
        .groupBy("stream")
        .agg(sw.estimated_count().alias("n"), sw.count_error().alias("error"))
    )
    for row in estimates.collect():
        assert abs(row["n"] - each) <= 5 * row["error"] + 1e-6


def unlimited(spark: SparkSession, stream: FileStream, name: str) -> DataFrame:
    """All rows of a stream that are there; behind a limit it would be controlled for itself."""
    stream.folder.mkdir(parents=True)
    return spark.readStream.schema(SCHEMA).json(str(stream.folder)).withColumn("stream", F.lit(name))


def test_streams_under_one_law_are_shed_alike(spark: SparkSession, tmp_path: Path) -> None:
    law = sw.Law("test-scripted", ratios=(0.0, 0.5))  # 0.5 from the third micro-batch with rows on
    streams = {name: FileStream(spark, tmp_path / name) for name in ("urgent", "patient")}
    promised = [
        sw.with_max_delay(unlimited(spark, stream, name), target_s, law=law, name=f"{name}-delay")
        for (name, stream), target_s in zip(streams.items(), (2.0, 9.0), strict=True)
    ]
    query = start(promised[0].unionByName(promised[1]), tmp_path)
    for batch in range(4):
        streams["urgent"].put(numbered(batch))
        if batch in (0, 3):
            streams["patient"].put(numbered(batch))
        settle(query)
    report = sw.report(query)
    query.stop()
    shed = {delay.name: delay.ledger.shed for delay in report.timeliness}
    assert shed["urgent-delay"] > 0 and shed["patient-delay"] > 0, "also after two micro-batches without rows"
    out = collected(spark, tmp_path).toPandas()
    assert set(out[out["stream"] == "patient"]["shed_weight"]) == {1.0, 2.0}
    assert [delay.promise.max_delay_s for delay in report.timeliness] == [2.0, 9.0]
