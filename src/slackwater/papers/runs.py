"""A paper's method over a paper's stream, with a heartbeat at every row."""

from __future__ import annotations

from typing import Any

from slackwater.control.disorder import make_method
from slackwater.control.disorder.support.row_method import RowMethod
from slackwater.promises import Completeness
from slackwater.sim.driver import Outcome
from slackwater.sim.per_row import run_per_row
from slackwater.sim.trace import Trace


def outcome_of(trace: Trace, method: str, drop_ratio: float, **options: Any) -> Outcome:
    """What the method does to the trace, as the papers run it."""
    made = make_method(method, Completeness(drop_ratio), **options)
    assert isinstance(made, RowMethod)
    return run_per_row(trace, made)
