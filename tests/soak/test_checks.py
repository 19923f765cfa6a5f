"""The checks of a soak find what is wrong; a short soak finds nothing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from tests.helpers.usages import usage
from tests.soak.checkpoint_log import CheckpointLog, LoggedBatch
from tests.soak.checks import check_heartbeats, check_ledger, check_results, check_shed, judged
from tests.soak.faults import FAULTS
from tests.soak.queries import KINDS
from tests.soak.run import Soak, Step, draw_steps
from tests.soak.stream import ACTS, Source

NOW_S = 1_700_000_000.0
EXACT = {"exact": True, "why": [], "on_time": 0, "late": 0, "shed": 0, "invalid": 0}


@pytest.fixture
def rows(tmp_path: Path) -> pd.DataFrame:
    source = Source(tmp_path / "in", np.random.default_rng(3), lambda: NOW_S)
    for act in ("calm", "bad-times"):
        source.act(act)
    return source.table()


def logged(*watermarks_ms: float) -> CheckpointLog:
    """A log with a file in each micro-batch, under these watermarks."""
    batches = {
        number: LoggedBatch(int(ms), int(ms) + 1 if ms else None, number) for number, ms in enumerate(watermarks_ms)
    }
    return CheckpointLog(Path(), batches, {f"{number:06d}.json": number for number in batches})


def test_a_heartbeat_that_goes_back_is_found() -> None:
    assert check_heartbeats(logged(0, 5, 5)) == []
    assert check_heartbeats(logged(0, 5, 4)) == [
        "watermark_ms went back from 5 to 4",
        "heartbeat_ms went back from 6 to 5",
    ]


def test_a_ledger_that_is_wrong_is_found(rows: pd.DataFrame) -> None:
    placed = judged("panes", rows, logged(0, NOW_S * 1000 - 3000, NOW_S * 1000 - 1000))
    late, invalid = int(placed["late"].sum()), int((~placed["valid"]).sum())
    right: dict[str, Any] = EXACT | {"on_time": len(rows) - late - invalid, "late": late, "invalid": invalid}
    assert invalid == 4 and late > 10
    assert check_ledger(right, placed, may_be_inexact=False) == []
    assert check_ledger(right | {"late": late - 1, "on_time": right["on_time"] + 1}, placed, may_be_inexact=True)
    unsure = right | {"late": 0, "exact": False, "why": ["a crash"]}
    assert check_ledger(unsure, placed, may_be_inexact=True) == []
    assert check_ledger(unsure, placed, may_be_inexact=False)
    assert check_ledger(unsure | {"late": late + 1}, placed, may_be_inexact=True)


def test_shed_rows_are_neither_repeated_nor_lost(rows: pd.DataFrame) -> None:
    kept = rows.iloc[:20]
    right = EXACT | {"on_time": 20, "shed": len(rows) - 20}
    assert check_shed(right, rows, kept, may_be_inexact=False) == []
    assert check_shed(right, rows, kept.iloc[1:], may_be_inexact=False)
    assert check_shed(right, rows, pd.concat([kept.iloc[1:], kept.iloc[-1:]]), may_be_inexact=False)


def test_a_result_that_is_missing_is_found(rows: pd.DataFrame) -> None:
    log = logged(0, 0, 0, NOW_S * 1000 + 60_000)
    placed = judged("panes", rows, log)
    valid = placed[placed["valid"]]
    parts = [valid.assign(end=valid["ts"] // 2000 * 2000 + slide) for slide in (2000, 4000, 6000)]
    sums = pd.concat(parts).groupby(["end", "sensor"])["value"].agg(n="count", total="sum").reset_index()
    published = sums.assign(window_end=pd.to_datetime(sums["end"], unit="ms"), late=False)
    assert check_results("panes", placed, log, published) == []
    assert check_results("panes", placed, log, published.iloc[1:])
    assert check_results("panes", placed, log, pd.concat([published, published.iloc[:1]]))


def test_a_seed_draws_the_same_steps_and_all_kinds_of_them() -> None:
    steps = draw_steps(seed=1, count=400)
    assert draw_steps(seed=1, count=7) == steps[:7] != draw_steps(seed=2, count=7)
    assert {step.fault for step in steps} == set(FAULTS)
    assert {step.before for step in steps} == {step.after for step in steps} == set(ACTS)


@pytest.mark.spark
@pytest.mark.full
@usage(
    "kills of the driver and of a heartbeat's process, a full disk, an older snapshot, a pause, under five kinds of "
    "queries (`make soak` draws more of them)",
    "right: results equal a batch job's, each once; a ledger that lacks rows says so",
)
def test_a_short_soak(tmp_path: Path) -> None:
    faults = (
        "none",
        "none",
        "none",
        "none",
        "kill-heartbeat",
        "full-disk",
        "older-snapshot-kill",
        "restart",
        "pause-all",
    )
    steps = [
        Step(number, *(("calm", fault, "calm") if fault == "none" else ("heavy-tail", fault, "bad-times")))
        for number, fault in enumerate(faults)
    ]
    outcomes = list(Soak(1, tmp_path, KINDS).run(steps))
    assert [outcome.problems for outcome in outcomes] == [[]] * len(faults)
    assert sum(outcome.starts for outcome in outcomes) == 2
