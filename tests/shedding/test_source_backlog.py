"""The controller behind a source that limits its micro-batches, in simulation; the lag that Kafka reports. No JVM."""

from __future__ import annotations

import json

import numpy as np
import pytest
from pyspark.sql.streaming.listener import StreamingQueryProgress

from slackwater.control.shedding import make_law
from slackwater.control.shedding.microbatch import MicroBatch, MicroBatchController, ShedDecision
from slackwater.promises import Timeliness
from slackwater.sim.shedding import rows_from_rates
from slackwater.sim.shedding.microbatch import run_micro_batches
from slackwater.spark.timeliness.source_lag import source_lag

FIXED_S, COST_S, TARGET_S, SECONDS = 0.15, 0.001, 2.0, 60
LAWS = ("ctrl-batch", "ctrl", "baseline", "aurora")


def settled(law: str, rate: float, limit: int, reports_lag: bool, trigger_s: float = 0.1) -> list[ShedDecision]:
    """The decisions in the last third of the input."""
    run = run_micro_batches(
        law,
        rows_from_rates(np.full(SECONDS, rate)),
        target_s=TARGET_S,
        trigger_s=trigger_s,
        fixed_s=FIXED_S,
        cost_s=COST_S,
        noise=0.05,
        limit=limit,
        reports_lag=reports_lag,
    )
    pairs = zip(run.batches, run.decisions, strict=True)
    return [decision for batch, decision in pairs if SECONDS * 2 / 3 < batch.started_s < SECONDS]


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("reports_lag", [True, False])
@pytest.mark.parametrize(("limit", "trigger_s"), [(300, 0.1), (1000, 1.0)])
def test_nothing_is_shed_if_no_batch_is_short_enough(law: str, reports_lag: bool, limit: int, trigger_s: float) -> None:
    # 300 rows per batch of at least 0.15 s, or 1 000 per trigger of 1 s: at most 2 000 rows/s can be read
    decisions = settled(law, 3000.0, limit, reports_lag, trigger_s)
    assert {(decision.shed_ratio, decision.limit_decides) for decision in decisions} == {(0.0, True)}
    last = decisions[-1]
    assert last.load_per_s == pytest.approx(3000.0, rel=0.01)
    assert last.delay_s is not None and last.backlog_rows == pytest.approx(3000.0 * last.delay_s, rel=0.2)


@pytest.mark.parametrize("law", ["ctrl-batch", "ctrl", "baseline"])
@pytest.mark.parametrize("reports_lag", [True, False])
@pytest.mark.parametrize(("rate", "limit"), [(900.0, 800), (3000.0, 1000)])
def test_shedding_goes_on_where_shorter_batches_help(law: str, reports_lag: bool, rate: float, limit: int) -> None:
    """Shorter batches of as many rows read faster, so shedding keeps the delay although the source has a limit."""
    decisions = settled(law, rate, limit, reports_lag)
    assert not any(decision.limit_decides for decision in decisions)
    assert max(decision.shed_ratio for decision in decisions) > 0.0
    assert np.mean([decision.delay_s for decision in decisions]) <= TARGET_S


def test_a_limit_that_is_never_reached_changes_nothing() -> None:
    free, limited = (settled("ctrl-batch", 2000.0, limit, True) for limit in (10**9, 10**6))
    assert free == limited and not any(decision.limit_decides for decision in free)


def test_one_small_micro_batch_does_not_look_like_a_limit() -> None:
    """A folder of files hands over what is left of one listing before it lists again, however many files wait."""
    controller = MicroBatchController(Timeliness(3.0), make_law("ctrl-batch"))
    rate, now_s, read, decided = 2000.0, 0.5, 0, []
    for number in range(40):
        rows = min(200 if number % 4 == 3 else 3000, int(rate * now_s) - read)
        read += rows
        kept = round(rows * (1.0 - controller.shed_ratio))
        duration_s = FIXED_S + COST_S * kept
        batch = MicroBatch(now_s, duration_s, rows, kept, waiting_rows=rate * now_s - read)
        decided.append(controller.step(batch).limit_decides)
        now_s += duration_s
    # shedding keeps up: without it, 2300 rows per micro-batch take longer to process than to arrive
    assert rate * now_s - read < 3.0 * rate and controller.shed_ratio > 0.0
    assert not any(decided)


def kafka(start: int, end: int, latest: int | None, metrics: dict[str, str]) -> dict[str, object]:
    """A source as Spark's progress describes Kafka with two partitions; the second has no new rows."""
    offsets = {
        key: None if offset is None else {"clicks": {"0": offset, "1": 5}}
        for key, offset in (("startOffset", start), ("endOffset", end), ("latestOffset", latest))
    }
    return {
        "description": "KafkaV2[Subscribe[clicks]]",
        **offsets,
        "numInputRows": end - start,
        "inputRowsPerSecond": 1.0,
        "processedRowsPerSecond": 1.0,
        "metrics": metrics,
    }


def progress(*sources: dict[str, object]) -> StreamingQueryProgress:
    return StreamingQueryProgress.fromJson(
        {
            "id": "8c4a1b3e-0000-4000-8000-000000000000",
            "runId": "8c4a1b3e-0000-4000-8000-000000000001",
            "name": None,
            "timestamp": "2026-01-01T00:00:00.000Z",
            "batchId": 7,
            "batchDuration": 1000,
            "durationMs": {},
            "eventTime": {},
            "stateOperators": [],
            "sources": [
                {
                    key: json.dumps(value) if isinstance(value, dict) and "Offset" in key else value
                    for key, value in s.items()
                }
                for s in sources
            ],
            "sink": {"description": "noop", "numOutputRows": -1, "metrics": {}},
            "numInputRows": 1,
            "inputRowsPerSecond": 1.0,
            "processedRowsPerSecond": 1.0,
            "observedMetrics": {},
        }
    )


BEHIND = {"minOffsetsBehindLatest": "0", "maxOffsetsBehindLatest": "900", "avgOffsetsBehindLatest": "450.0"}


@pytest.mark.parametrize(("latest", "metrics"), [(1200, {}), (None, BEHIND), (1200, BEHIND)])
def test_the_lag_of_kafka_is_counted_in_rows(latest: int | None, metrics: dict[str, str]) -> None:
    lag = source_lag(progress(kafka(200, 300, latest, metrics)), rows=100)
    assert lag is not None and lag.description == "KafkaV2[Subscribe[clicks]]" and lag.waiting_rows == 900.0
    # half of the offsets hold no row, such as the markers of transactions
    half = source_lag(progress(kafka(200, 300, latest, metrics)), rows=50)
    assert half is not None and half.waiting_rows == 450.0


def test_the_source_of_a_promise_is_found_by_its_rows() -> None:
    one, other = kafka(200, 300, 400, {}), kafka(0, 70, 1000, {})
    found = source_lag(progress(one, other), rows=70)
    assert found is not None and found.waiting_rows == 930.0
    assert source_lag(progress(one, other), rows=5) is None, "which of the two it is cannot be told"
    heartbeat = {**one, "endOffset": {"epoch": "a", "heartbeat": 7}, "startOffset": None, "latestOffset": None}
    alone = source_lag(progress(one, heartbeat), rows=5)
    assert alone is not None and alone.waiting_rows == 100 * 5 / 100


def test_a_source_that_says_nothing_has_an_unknown_lag() -> None:
    silent = {**kafka(200, 300, None, {}), "startOffset": {"logOffset": 1}, "endOffset": {"logOffset": 2}}
    lag = source_lag(progress(silent), rows=100)
    assert lag is not None and lag.waiting_rows is None
