"""``report`` waits for the last micro-batch that was committed, not for the numbers that an idle query reports."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import pytest
from pyspark.sql.streaming.query import StreamingQuery

from slackwater.control.ledger import Ledger
from slackwater.errors import UnknownName
from slackwater.kernel.standing.shard_counts import ShardCounts
from slackwater.spark import report as report_module
from slackwater.spark.report import Report, report
from slackwater.spark.standing.report import PrecisionReport
from slackwater.watching.point import Point
from slackwater.watching.precision import PrecisionCounts
from slackwater.watching.series import Series
from tests.helpers.series import STANDING

COMMITTED, IDLE = {"addBatch": 5, "triggerExecution": 9}, {"latestOffset": 2, "triggerExecution": 2}


def query_of(*progress: tuple[int, dict[str, int]]) -> StreamingQuery:
    made = [{"batchId": batch, "durationMs": durations} for batch, durations in progress]
    return cast(StreamingQuery, SimpleNamespace(id="q", recentProgress=made, lastProgress=made[-1] if made else None))


@pytest.fixture
def waited(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    batches: list[Any] = []
    monkeypatch.setattr(report_module, "wait_for_batch", lambda query, batch: batches.append((query, batch)))
    return batches


def test_it_waits_for_a_committed_micro_batch(waited: list[Any]) -> None:
    with pytest.raises(UnknownName, match=r"\[no-promise\] query q"):
        report(query_of((6, COMMITTED), (7, COMMITTED), (8, IDLE)))
    assert waited == [("q", 7)]


def test_it_reads_one_report_of_a_busy_query(waited: list[Any]) -> None:
    last = {"batchId": 7, "durationMs": COMMITTED}
    with pytest.raises(UnknownName, match=r"\[no-promise\] query q"):
        report(cast(StreamingQuery, SimpleNamespace(id="q", lastProgress=last)))
    assert waited == [("q", 7)]


@pytest.mark.parametrize("query", [query_of(), query_of((8, IDLE))])
def test_it_does_not_wait_for_a_query_that_has_found_nothing(query: StreamingQuery, waited: list[Any]) -> None:
    found = report(query)
    assert found.as_json()["ledger"]["input"] == 0
    assert (found.kept, found.as_json()["verdict"]) == (False, "nothing published yet")
    assert str(found) == "nothing published yet: no micro-batch had rows"
    assert waited == []


def test_a_standing_query_says_how_many_audits_and_counts_its_rows() -> None:
    series = Series(STANDING)
    assert PrecisionReport(series).verdict == "nothing published yet" and not PrecisionReport(series).kept
    counts = ShardCounts(queries=10, evaluated=100, judged=500, hits=490, expected=450.0, audited=80.0, within=78.0)
    counts = replace(counts, asked=72.0, audits=16, used=900, out_of_order=60, invalid=40)
    counts = replace(counts, all_used=900, all_out_of_order=60, all_invalid=40)
    made = PrecisionCounts().after(counts, whole=True)
    series.add(Point(0.0, 0, made.ledger, precision=made))
    found = PrecisionReport(series)
    assert found.kept and found.as_json()["audits"] == 16
    assert "97.5% of the time by 16 audits, 98% when next evaluated (kept)" in str(found)
    whole = Report("q", precision=(found,))
    assert whole.as_json()["ledger"]["input"] == 1_000
    assert (whole.ledger.on_time, whole.ledger.late, whole.ledger.invalid) == (900, 60, 40)


def test_a_ledger_of_both_promises_is_as_exact_as_the_less_exact_one() -> None:
    """Two micro-batches were lost; the completeness promise could count one of them again."""
    counted: Any = SimpleNamespace(ledger=Ledger(on_time=90, late=5, unreported_batches=1))
    shedding: Any = SimpleNamespace(ledger=Ledger(on_time=95, shed=40, unreported_batches=2, misread_batches=1))
    ledger = Report("q", completeness=(counted,), timeliness=(shedding,)).ledger
    assert ledger == Ledger(on_time=90, late=5, shed=40, unreported_batches=2, misread_batches=1)


def test_standing_queries_are_not_exact_until_a_micro_batch_brings_all_counts() -> None:
    before = PrecisionCounts().after(ShardCounts(used=10, all_used=10), whole=True)
    part = before.after(ShardCounts(used=1, all_used=31), whole=False, missed=2)
    assert part.ledger == Ledger(on_time=11, unreported_batches=2) and not part.ledger.exact
    series = Series(STANDING)
    series.add(Point(0.0, 3, part.ledger, precision=part))
    assert "not exact   2 micro-batches were committed just before a crash" in str(PrecisionReport(series))
    whole = part.after(ShardCounts(used=1, all_used=32), whole=True)
    assert whole.ledger == Ledger(on_time=32) and whole.ledger.exact
