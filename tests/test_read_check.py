"""Signs that a micro-batch was not read exactly once, without a JVM."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from slackwater.spark.runtime import read_check
from slackwater.spark.runtime.read_check import ReadCheck
from slackwater.spark.runtime.row_flow import RowFlow

WHOLE, FILTERED = RowFlow(1, True), RowFlow(1, False)


def misread(
    check: ReadCheck,
    delivered: list[int],
    observed: int,
    *,
    flow: RowFlow | None = WHOLE,
    sink: str = "FileSink",
    state: bool = False,
    batch: int = 0,
) -> bool:
    sources: Any = [SimpleNamespace(numInputRows=rows) for rows in delivered]
    described, operators = SimpleNamespace(description=sink), ["window"] if state else []
    progress: Any = SimpleNamespace(runId="r", batchId=batch, sink=described, stateOperators=operators)
    return check.misread(progress, flow, sources, observed)


@pytest.mark.parametrize(
    ("sink", "flow", "delivered", "observed", "expected"),
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
    ],
)
def test_observed_rows_are_compared_with_delivered_ones(
    sink: str,
    flow: RowFlow | None,
    delivered: list[int],
    observed: int,
    expected: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    running(monkeypatch, "4.3.0", {0: (0, 0)})
    assert misread(ReadCheck(), delivered, observed, flow=flow, sink=sink) is expected


def test_with_state_a_plan_may_read_twice_in_foreach_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    """As with LATE ROWS. What is above the state reads no source again."""
    running(monkeypatch, "4.3.0", {0: (0, 0)})
    assert not misread(ReadCheck(), [480], 240, sink="ForeachBatchSink", state=True)
    assert misread(ReadCheck(), [241], 240, sink="ForeachBatchSink", state=True)


class Status:
    """A status tracker over jobs of one stage each."""

    def __init__(self, stages: dict[int, tuple[int, int]]) -> None:
        self.stages = stages
        self._jtracker = self

    def getJobIdsForGroup(self, _group: str) -> list[int]:
        return list(reversed(self.stages))

    def getJobInfo(self, job: int) -> Any:
        return SimpleNamespace(stageIds=[job])

    def getStageInfo(self, stage: int) -> Any:
        attempt, failed = self.stages[stage]
        return SimpleNamespace(currentAttemptId=attempt, numFailedTasks=failed)


def running(monkeypatch: pytest.MonkeyPatch, version: str, stages: dict[int, tuple[int, int]]) -> Status:
    """Let a Spark of that version have run these jobs: the attempt of each stage and its failed tasks."""
    status = Status(stages)
    jvm = SimpleNamespace(java=SimpleNamespace(util=SimpleNamespace(Arrays=SimpleNamespace(sort=list.sort))))
    context = SimpleNamespace(version=version, statusTracker=lambda: status, _jvm=jvm)
    monkeypatch.setattr(read_check, "SparkContext", SimpleNamespace(_active_spark_context=context))
    return status


def test_before_spark_4_3_a_repeated_task_is_a_sign(monkeypatch: pytest.MonkeyPatch) -> None:
    status = running(monkeypatch, "4.2.1", {0: (0, 0)})
    check = ReadCheck()
    assert not misread(check, [240], 240)
    status.stages |= {1: (1, 0)}  # its executor was lost after the first attempt
    assert misread(check, [280], 280, flow=FILTERED, batch=1)
    status.stages |= {2: (0, 0)}
    assert not misread(check, [240], 240, batch=2)
    status.stages |= {3: (0, 2)}
    assert misread(check, [240], 240, batch=3)
    assert misread(check, [240], 240, batch=3), "also for another promise of the query"


def test_from_spark_4_3_on_only_the_sources_count_a_repeated_task_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    status = running(monkeypatch, "4.3.0", {0: (1, 0)})
    check = ReadCheck()
    assert not misread(check, [360], 240)
    assert not misread(check, [360], 240, sink="ForeachBatchSink", state=True)
    status.stages |= {1: (0, 0)}
    assert misread(check, [360], 240, batch=1), "the repeated task was one of the batch before"
    status.stages |= {2: (1, 0), 3: (0, 0)}
    assert misread(check, [360], 240, sink="ForeachBatchSink", batch=2), "the function used its batch twice as well"


@pytest.mark.parametrize(
    ("sink", "state", "expected"),
    [("FileSink", False, False), ("ForeachBatchSink", True, False), ("ForeachBatchSink", False, True)],
)
def test_before_spark_4_3_several_jobs_of_foreach_batch_are_a_sign(
    sink: str, state: bool, expected: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Sources and observed metrics both count what is read twice, so the numbers agree."""
    running(monkeypatch, "4.2.1", {0: (0, 0), 1: (0, 0)})
    assert misread(ReadCheck(), [480], 480, sink=sink, state=state) is expected
