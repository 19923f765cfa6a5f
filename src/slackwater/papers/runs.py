"""Runs a disorder control method with a heartbeat at every row, as the papers do."""

from __future__ import annotations

from typing import Any

from slackwater.control.disorder import make_method
from slackwater.control.disorder.support.row_method import RowMethod
from slackwater.promises import Completeness
from slackwater.sim.driver import Outcome
from slackwater.sim.per_row import run_per_row
from slackwater.sim.trace import Trace


def outcome_of(trace: Trace, method: str, drop_ratio: float, **options: Any) -> Outcome:
    """Run ``method`` with ``options`` over the trace, one heartbeat per row."""
    row_method = make_method(method, Completeness(drop_ratio), **options)
    assert isinstance(row_method, RowMethod)
    return run_per_row(trace, row_method)
