"""The adaptive method of Kim, Kim and Kim (2007): a punctuation from recent delays and arrival intervals."""

from __future__ import annotations

import math
from typing import ClassVar

from slackwater.control.disorder.protocol import Floats
from slackwater.control.disorder.registry import register
from slackwater.control.disorder.support.normal_model import LEAST_ROWS, critical_point, rows_to_hold, span_to_hold
from slackwater.control.disorder.support.sequence import MOST_ROWS, SequenceMethod
from slackwater.promises import Completeness


@register
class VSeq(SequenceMethod):
    """τ_p = t_n − μ − n_p·θ, with n_p from the drop ratio (Kim 2007, Eq. (7), (8), Fig. 3).

    The method assumes normal delays and exponential intervals. Heavier tails, and a σ that changes faster than VSeq is
    replaced, break the promise. Costs the rows of VSeq (30 to ``most_rows``) and a square root per row.

    >>> import numpy as np
    >>> from slackwater.control.disorder import Batch
    >>> method = VSeq(Completeness(0.01))
    >>> arrivals = 100.0 * np.arange(40)
    >>> method.observe(Batch(arrivals - 50.0, arrivals, clock=3900.0))
    >>> method.heartbeat(3900.0)  # t_n = 3900, μ = 50, n_p = 30, θ = 2900/30
    950.0
    """

    name: ClassVar[str] = "vseq"

    def __init__(self, promise: Completeness, *, most_rows: int = MOST_ROWS) -> None:
        super().__init__(promise, most_rows=most_rows)
        self._z = critical_point(promise.drop_ratio)

    def _measure(self, values: Floats, reference: Floats | float) -> Floats:
        return reference - values

    def _estimate(self, mean: float, sd: float, interval: float, at: float) -> tuple[float, float]:
        rows = max(rows_to_hold(self._z, sd, interval), LEAST_ROWS)  # Kim 2007, Eq. (7)
        if math.isfinite(rows):
            rows = max(math.ceil(rows) - 1, LEAST_ROWS)  # the largest natural number that satisfies (7)
            return at - mean - rows * interval, rows  # Kim 2007, Eq. (8)
        # differs: rows that arrive at the same instant have no interval, but n·θ still has a limit.
        return at - mean - span_to_hold(self._z, sd, interval), rows
