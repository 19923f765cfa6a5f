"""``report`` waits for the last micro-batch that was committed, not for the numbers that an idle query reports."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest
from pyspark.sql.streaming.query import StreamingQuery

from slackwater.errors import UnknownName
from slackwater.spark import report as report_module
from slackwater.spark.report import report

COMMITTED, IDLE = {"addBatch": 5, "triggerExecution": 9}, {"latestOffset": 2, "triggerExecution": 2}


def query_of(*progress: tuple[int, dict[str, int]]) -> StreamingQuery:
    made = [{"batchId": batch, "durationMs": durations} for batch, durations in progress]
    return cast(StreamingQuery, SimpleNamespace(id="q", recentProgress=made))


@pytest.fixture
def waited(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    batches: list[Any] = []
    monkeypatch.setattr(report_module, "wait_for_batch", lambda query, batch: batches.append((query, batch)))
    return batches


def test_it_waits_for_a_committed_micro_batch(waited: list[Any]) -> None:
    with pytest.raises(UnknownName, match=r"\[no-promise\] query q"):
        report(query_of((6, COMMITTED), (7, COMMITTED), (8, IDLE)))
    assert waited == [("q", 7)]


@pytest.mark.parametrize("query", [query_of(), query_of((8, IDLE))])
def test_it_does_not_wait_for_a_query_that_has_found_nothing(query: StreamingQuery, waited: list[Any]) -> None:
    found = report(query)
    assert found.as_json()["ledger"]["input"] == 0
    assert (found.kept, found.as_json()["verdict"]) == (False, "nothing published yet")
    assert str(found) == "nothing published yet: no micro-batch had rows"
    assert waited == []
