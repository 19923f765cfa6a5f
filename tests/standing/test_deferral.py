"""``Deferral``: a method and its options, checked when it is made."""

from __future__ import annotations

import dataclasses
import datetime as dt
from typing import Any

import numpy as np
import pytest

import slackwater as sw
from slackwater.control.deferral import Deferral
from slackwater.kernel.standing.evaluator import StandingEvaluator
from slackwater.kernel.standing.options import EvaluatorOptions
from slackwater.kernel.standing.queries import QuerySet
from slackwater.sim.brownian import brownian_streams


def test_a_bare_name_stands_for_the_defaults() -> None:
    assert Deferral.of("economical") == sw.Deferral("economical") == Deferral(method="economical")
    chosen = Deferral("brownian", k=50)
    assert Deferral.of(chosen) is chosen


def test_durations_are_read_as_milliseconds() -> None:
    chosen = Deferral(t_max="1 minute", while_interrupted=dt.timedelta(seconds=5))
    assert (chosen.t_max_ms, chosen.while_interrupted_ms) == (60_000.0, 5_000.0)
    assert (Deferral().t_max_ms, Deferral().while_interrupted_ms) == (None, None)


@pytest.mark.parametrize(
    ("options", "condition"),
    [
        ({"method": "guess"}, "unknown-deferral-method"),
        ({"k": 2}, "invalid-k"),
        ({"t_max": "0 seconds"}, "invalid-t-max"),
        ({"while_interrupted": 0}, "invalid-while-interrupted"),
        ({"capacity": 0}, "invalid-capacity"),
        ({"order": "lottery"}, "unknown-order"),
    ],
)
def test_invalid_options_are_refused(options: dict[str, Any], condition: str) -> None:
    with pytest.raises((sw.InvalidOption, sw.UnknownName), match=rf"\[{condition}\]"):
        Deferral(**options)


OTHER: dict[str, Any] = {
    "method": "brownian",
    "k": 20,
    "t_max": 20.0,
    "while_interrupted": 1.0,
    "capacity": 1,
    "order": "fifo",
    "value_and_drift": True,
    "sum_of_errors": True,
}


def test_every_option_changes_the_answers() -> None:
    """Three queries over four streams, two of which fall silent; limited to one evaluation per tick for the order."""
    assert {option.name for option in dataclasses.fields(Deferral)} == OTHER.keys()
    values = brownian_streams(4, 200, seed=3).values
    weights = np.array([[0.5, 0.5, 0.0, 0.0], [0.0, 1.0, 2.0, -1.0], [0.25, 0.25, 0.25, 0.25]])

    def answers(**options: Any) -> list[list[float]]:
        queries = QuerySet.of(np.arange(3), weights, np.array([0.5, 4.0, 1.0]), 0.9)
        evaluator = StandingEvaluator(queries, EvaluatorOptions(**options))
        found = []
        for tick, row in enumerate(values):
            there = np.arange(4 if tick < 150 else 2)
            made = evaluator.tick(float(tick), there, np.full(len(there), float(tick)), row[there])
            found += [np.column_stack([made.query, made.at, made.error_bound, made.next_at]).tolist()]
        return found

    for option, value in OTHER.items():
        beside: dict[str, Any] = {"capacity": 1} if option == "order" else {}
        assert repr(answers(**beside)) != repr(answers(**beside, **{option: value})), option
