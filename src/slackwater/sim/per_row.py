"""Runs a method over a trace with a heartbeat at every row, as the papers do."""

from __future__ import annotations

import numpy as np

from slackwater.control.disorder.protocol import UNKNOWN
from slackwater.control.disorder.support.row_method import RowMethod
from slackwater.sim.driver import Outcome, count
from slackwater.sim.trace import Trace


def run_per_row(trace: Trace, method: RowMethod) -> Outcome:
    """The outcome of ``run`` with batches of one row, at a fraction of the cost.

    Of the rules of the controller only one applies: the heartbeat does not pass the front. Bounds on the wait and the
    rule for rows from the future are not part of any paper.
    """
    proposed = method.trail(trace.values, trace.arrivals)
    if trace.arrivals is not None:
        front = np.maximum.accumulate(trace.values)
        proposed = np.minimum(proposed, np.minimum(front, trace.arrivals))
    in_force = np.concatenate(([UNKNOWN], np.maximum.accumulate(proposed)[:-1]))[: trace.rows]
    return count(trace, np.arange(1, trace.rows + 1, dtype=np.int64), in_force, [])
