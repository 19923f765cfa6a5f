"""A method over a trace with a heartbeat at every row, as the papers run theirs."""

from __future__ import annotations

import numpy as np

from slackwater.control.disorder.protocol import UNKNOWN
from slackwater.control.disorder.support.row_method import RowMethod
from slackwater.sim.driver import Outcome, count
from slackwater.sim.trace import Trace


def run_per_row(trace: Trace, method: RowMethod) -> Outcome:
    """What ``run`` counts with batches of a single row, at a fraction of the cost.

    The controller's rule that a stream's heartbeat does not pass its front is kept; its bounds on the wait and
    its distrust of rows from the future are not part of any paper and are left out.
    """
    proposed = method.trail(trace.values, trace.arrivals)
    if trace.arrivals is not None:
        front = np.maximum.accumulate(trace.values)
        proposed = np.minimum(proposed, np.minimum(front, trace.arrivals))
    in_force = np.concatenate(([UNKNOWN], np.maximum.accumulate(proposed)[:-1]))[: trace.rows]
    return count(trace, np.arange(1, trace.rows + 1, dtype=np.int64), in_force, [])
