"""``Deferral``: a method and its options, checked when it is made."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pytest

import slackwater as sw
from slackwater.control.deferral import Deferral


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
