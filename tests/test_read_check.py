"""Signs that a micro-batch was not read exactly once, without a JVM."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from slackwater.spark.runtime import read_check
from slackwater.spark.runtime.read_check import ReadCheck
from slackwater.spark.runtime.row_flow import RowFlow

WHOLE, FILTERED = RowFlow(1, True), RowFlow(1, False)


def progress(delivered: list[int], sink: str = "FileSink", *, run: str = "r", state: bool = False) -> Any:
    sources = [SimpleNamespace(numInputRows=rows) for rows in (1, *delivered)]
    described = SimpleNamespace(description=sink)
    return SimpleNamespace(runId=run, sources=sources, sink=described, stateOperators=["window"] if state else [])


@pytest.mark.parametrize(
    ("sink", "flow", "delivered", "observed", "misread"),
    [
        ("FileSink", WHOLE, [240], 240, False),
        ("FileSink", WHOLE, [480], 240, False),  # the plan reads the source twice
        ("FileSink", WHOLE, [241], 240, True),
        ("FileSink", WHOLE, [240], 0, True),
        ("FileSink", WHOLE, [0], 240, False),  # Spark does not know
        ("FileSink", FILTERED, [241], 240, False),
        ("FileSink", None, [241], 240, False),
        ("FileSink", RowFlow(2, True), [100, 140], 240, False),
        ("FileSink", RowFlow(2, True), [240], 240, False),  # the sources cannot be told
        ("ForeachBatchSink", WHOLE, [240], 240, False),
        ("ForeachBatchSink", WHOLE, [480], 240, True),
        ("ForeachBatchSink", WHOLE, [246], 6, True),
        ("ForeachBatchSink", RowFlow(1, True, scans=2), [480], 240, False),
    ],
)
def test_observed_rows_are_compared_with_delivered_ones(
    sink: str, flow: RowFlow | None, delivered: list[int], observed: int, misread: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(read_check, "_each_task_counts_once", lambda: True)
    assert ReadCheck().misread(progress(delivered, sink), flow, 1, observed) is misread


class Status:
    """A status tracker over jobs of one stage each."""

    def __init__(self, stages: dict[int, tuple[int, int]]) -> None:
        self.stages = stages

    def getJobIdsForGroup(self, _group: str) -> list[int]:
        return list(self.stages)

    def getJobInfo(self, job: int) -> Any:
        return SimpleNamespace(stageIds=[job])

    def getStageInfo(self, stage: int) -> Any:
        attempt, failed = self.stages[stage]
        return SimpleNamespace(currentAttemptId=attempt, numFailedTasks=failed)


def test_before_spark_4_3_a_repeated_task_is_a_sign(monkeypatch: pytest.MonkeyPatch) -> None:
    status = Status({0: (0, 0)})
    context = SimpleNamespace(version="4.2.1", statusTracker=lambda: status)
    monkeypatch.setattr(read_check, "SparkContext", SimpleNamespace(_active_spark_context=context))
    check = ReadCheck()
    assert not check.misread(progress([240]), WHOLE, 1, 240)
    status.stages |= {1: (1, 0)}  # its executor was lost after the first attempt
    assert check.misread(progress([280]), FILTERED, 1, 280)
    status.stages |= {2: (0, 0)}
    assert not check.misread(progress([240]), WHOLE, 1, 240)
    status.stages |= {3: (0, 2)}
    assert check.misread(progress([240]), WHOLE, 1, 240)


@pytest.mark.parametrize(
    ("sink", "state", "misread"),
    [("FileSink", False, False), ("ForeachBatchSink", True, False), ("ForeachBatchSink", False, True)],
)
def test_before_spark_4_3_several_jobs_of_foreach_batch_are_a_sign(
    sink: str, state: bool, misread: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Sources and observed metrics both count what is read twice, so the numbers agree."""
    context = SimpleNamespace(version="4.2.1", statusTracker=lambda: Status({0: (0, 0), 1: (0, 0)}))
    monkeypatch.setattr(read_check, "SparkContext", SimpleNamespace(_active_spark_context=context))
    assert ReadCheck().misread(progress([480], sink, state=state), WHOLE, 1, 480) is misread
