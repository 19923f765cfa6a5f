"""Every law of load shedding runs on real Spark and decides there what it decides without Spark."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import slackwater as sw
from slackwater.cli import run as run_verb
from slackwater.control.shedding import make_law
from slackwater.control.shedding.microbatch import MicroBatch, MicroBatchController
from slackwater.errors import InvalidOption, UnknownName
from slackwater.promises import Timeliness
from slackwater.spark.runtime.progress import parse_ms
from tests.helpers.harness import SCHEMA, FileStream, collected, settle, start
from tests.spark.test_delay import delay_of, numbered
from tests.spark.test_run import invoke, put, shared_session

pytestmark = pytest.mark.spark
__all__ = ["shared_session"]

BATCHES, EACH = 8, 2000


@pytest.mark.parametrize("law", sw.law_names())
def test_a_law_decides_on_spark_as_without_it(
    spark: SparkSession, tmp_path: Path, law: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # micro-batches that run too long raise the ratio at a moment that differs from run to run
    monkeypatch.setattr(MicroBatchController, "overdue_s", lambda *_: 0.0)
    stream = FileStream(spark, tmp_path / "in")
    for batch in range(BATCHES):
        stream.put(numbered(batch, EACH))
    query = start(sw.with_max_delay(stream.read_stream(), "50 milliseconds", law=law, name=f"by-{law}"), tmp_path)
    settle(query)
    delay = delay_of(query)
    progress = [p for p in query.recentProgress if p["numInputRows"]]
    query.stop()
    twin = MicroBatchController(Timeliness(0.05), make_law(law))
    decided = []
    for p in progress:
        seen = p["observedMetrics"][f"slackwater-delay:by-{law}"]
        started_s, duration_s = parse_ms(p["timestamp"]) / 1e3, p["durationMs"]["triggerExecution"] / 1e3
        decided.append(twin.step(MicroBatch(started_s, duration_s, seen["rows"], seen["kept"])))
    assert delay.series is not None
    points = [point for point in delay.series.points if point.cause != "no rows"]
    assert [point.shed_ratio for point in points] == [decision.shed_ratio for decision in decided]
    assert [point.delay_s for point in points] == [decision.delay_s for decision in decided]
    out = collected(spark, tmp_path).toPandas()
    assert len(decided) == BATCHES and out["id"].is_unique
    assert (delay.ledger.input, delay.ledger.on_time) == (BATCHES * EACH, len(out))
    # each micro-batch ran under one of the decisions before it, and its rows carry the weight that belongs to it
    known = {round(1.0 / (1.0 - round(decision.shed_ratio, 6)), 6) for decision in decided} | {1.0}
    assert set(out["shed_weight"].round(6)) <= known


@pytest.mark.usefixtures("shared_session")
def test_the_command_takes_a_law(spark: SparkSession, tmp_path: Path) -> None:
    stream = FileStream(spark, tmp_path / "in")
    stream.put(numbered(0))
    text = "SELECT COUNT(*) AS n FROM Sensors [RANGE 1 second SLIDE 1 second WATTR ts DELAY 1 hour]"
    arguments = ("--source", f"json:{stream.folder}", "--schema", SCHEMA, "--json")
    done = invoke(run_verb.command, put(tmp_path, text), *arguments, "--law", "aurora")
    assert done.exit_code == 0, done.output
    report = json.loads(done.stdout.splitlines()[-1])
    assert [(delay["law"], delay["ledger"]["input"]) for delay in report["timeliness"]] == [("aurora", 500)]


@pytest.mark.parametrize(
    ("law", "clause", "error", "condition"),
    [
        ("magic", "DELAY 1 hour", UnknownName, "unknown-law"),
        ("ctrl", "DRATIO 1%", InvalidOption, "option-not-used"),
    ],
)
def test_the_command_refuses_a_law_without_effect(
    tmp_path: Path, law: str, clause: str, error: type[Exception], condition: str
) -> None:
    text = f"SELECT COUNT(*) AS n FROM Sensors [RANGE 1 second SLIDE 1 second WATTR ts {clause}]"
    arguments = ("--source", f"json:{tmp_path}", "--schema", SCHEMA, "--law", law)
    refused = invoke(run_verb.command, put(tmp_path, text), *arguments)
    assert isinstance(refused.exception, error) and condition in str(refused.exception)
