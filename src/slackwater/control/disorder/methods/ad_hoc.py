"""The ad hoc method that Kim, Kim and Kim (2007) use as a baseline."""

from __future__ import annotations

import math
from typing import ClassVar, Literal

from slackwater.control.disorder.protocol import Floats
from slackwater.control.disorder.registry import register
from slackwater.control.disorder.support.normal_model import LEAST_ROWS, critical_point
from slackwater.control.disorder.support.sequence import MOST_ROWS, SequenceMethod
from slackwater.errors import InvalidOption
from slackwater.promises import Completeness


@register
class AdHoc(SequenceMethod):
    """τ_p = μ_t − σ_t + 2·σ_t·D over the timestamps in VSeq (Kim 2007, Fig. 4).

    The length of VSeq alone decides the wait. It depends on no delay and has no relation to the drop ratio, so the
    promise is kept only by chance. ``theta="over"`` divides by θ where the paper prints a product; the product
    depends on the unit of time, which is the second here. Costs what ``vseq`` costs.

    >>> import numpy as np
    >>> from slackwater.control.disorder import Batch
    >>> method = AdHoc(Completeness(0.05))
    >>> method.observe(Batch(np.arange(30.0), np.arange(30.0), clock=29.0))
    >>> round(method.heartbeat(29.0), 3)  # 14.5 − 8.655 + 0.1 × 8.655
    6.71
    """

    name: ClassVar[str] = "ad-hoc"

    def __init__(
        self, promise: Completeness, *, theta: Literal["times", "over"] = "times", most_rows: int = MOST_ROWS
    ) -> None:
        super().__init__(promise, most_rows=most_rows)
        if theta not in ("times", "over"):
            raise InvalidOption("invalid-theta", f"unknown theta={theta!r}", "use 'times' or 'over'")
        self._over = theta == "over"
        self._z = critical_point(promise.drop_ratio)

    def _measure(self, values: Floats, reference: Floats | float) -> Floats:
        return values

    def _estimate(self, mean: float, sd: float, interval: float, at: float) -> tuple[float, float]:
        punctuation = mean - sd + sd * self._drop_ratio * 2.0  # Kim 2007, Fig. 4, step 4
        if self._over:
            # differs: the size is a number of rows, so σ_t·z has to be divided by θ.
            extra_rows = sd * self._z / interval if interval > 0 else math.inf
        else:
            extra_rows = (sd / 1e3) * self._z * (interval / 1e3)  # Kim 2007, Fig. 4, step 5, in seconds
        return punctuation, LEAST_ROWS + extra_rows
