"""The step that Python workers run gives the kernel's answers and keeps the shard's state."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from pyspark.sql.types import LongType, StringType, StructField

from slackwater.kernel.standing.options import EvaluatorOptions
from slackwater.kernel.standing.shard import Shard
from slackwater.kernel.standing.weights import member_name
from slackwater.sim.brownian import brownian_streams
from slackwater.spark.worker.columns import SHARD_COUNTS
from slackwater.spark.worker.standing_step import GroupWeights, StandingStep

GROUPS = GroupWeights(1.0, True, 5.0, 0.9)


class State:
    """A stand-in for Spark's state of one group."""

    def __init__(self) -> None:
        self.get: tuple[str, ...] = ()

    @property
    def exists(self) -> bool:
        return bool(self.get)

    def update(self, new: tuple[str, ...]) -> None:
        self.get = new


def batch(names: list[str], at_ms: float, values: Any, clock_ms: float | None = None) -> list[pd.DataFrame]:
    """The rows of one micro-batch and a tick of the clock, as Spark hands them over."""
    rows = pd.DataFrame({"stream": names, "at_us": at_ms * 1e3, "value": values, "clock_ms": None})
    tick = pd.DataFrame({"stream": [None], "at_us": [None], "value": [None], "clock_ms": [clock_ms]})
    return [rows.astype(object), tick.astype(object)]


def test_the_step_gives_the_kernel_s_answers_from_saved_state() -> None:
    table = brownian_streams(4, 40, seed=1)
    names = [member_name(f"group-{number % 2}", name) for number, name in enumerate(table.names)]
    step, state = StandingStep(GROUPS, EvaluatorOptions(), StructField("query", StringType())), State()
    shard = Shard(GROUPS.shard(0, names), EvaluatorOptions(), 0, None)
    evaluated = 0
    for at, values in zip(table.times, table.values, strict=True):
        expected = shard.tick(names, np.full(4, at), values, at)
        *answers, counts = step.run(0, batch(names, at, values, at), state)  # type: ignore[arg-type]
        assert list(counts.columns) == step.schema.fieldNames()
        assert counts[SHARD_COUNTS][0]["evaluated"] == len(expected)
        assert len(answers) == (len(expected) > 0)
        for frame in answers:
            assert frame["query"].tolist() == expected["query"].tolist()
            assert frame["value"].tolist() == expected["value"].tolist()
            assert frame["drift"].tolist() == pytest.approx((expected["drift"] * 1e3).tolist())
            assert frame["at"].tolist() == [pd.Timestamp(at, unit="ms", tz="UTC")] * len(expected)
            evaluated += len(frame)
    assert 2 <= evaluated < 2 * 40


def test_the_placeholders_beside_the_counts_have_the_columns_own_types() -> None:
    step = StandingStep(GROUPS, EvaluatorOptions(), StructField("portfolio", LongType()))
    (counts,) = step.run(0, batch([], 0.0, [], None), State())  # type: ignore[arg-type]
    assert counts["portfolio"].tolist() == [0]
    assert counts["at"].tolist() == [pd.Timestamp(0, tz="UTC")]
    assert counts["next_evaluation_at"].tolist() == [pd.Timestamp(0, tz="UTC")]
