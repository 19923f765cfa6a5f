"""What all queries evaluated at one tick have in common."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from slackwater.kernel.standing.stream_estimates import StreamEstimates

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class Tick:
    """One tick: its time, its number and the estimates of every stream.

    ``loadings`` and ``specific`` describe the covariance of the streams (see ``control.deferral.covariance``).
    ``drift_span`` is the median time that a drift is estimated over. ``max_deferral`` limits every deferral set at this
    tick. ``unseen`` marks streams that never had a row, or is None if there are none. ``random`` is seeded by the
    tick's number, so that a restart draws the same numbers.
    """

    now: float
    number: int
    values: Floats
    drift: Floats
    loadings: list[Floats]
    specific: Floats
    drift_span: float
    max_deferral: float
    unseen: NDArray[np.bool_] | None
    any_silent: bool
    random: np.random.Generator

    def sampled(self, size: int, ratio: float) -> NDArray[np.bool_]:
        """Boolean mask of ``size``, each True with probability ``ratio``."""
        return np.asarray(self.random.random(size, dtype=np.float32) < ratio)

    @classmethod
    def of(cls, estimates: StreamEstimates, max_deferral: float, seed: int) -> Tick:
        """The newest tick of some streams."""
        loadings, specific = estimates.covariance()
        unseen = ~estimates.estimator.seen
        return cls(
            now=estimates.now,
            number=estimates.tick,
            values=estimates.values,
            drift=estimates.estimator.drift,
            loadings=list(np.ascontiguousarray(loadings.T)),
            specific=specific,
            drift_span=estimates.median_span(),
            max_deferral=max_deferral,
            unseen=unseen if np.any(unseen) else None,
            any_silent=bool(np.any(estimates.silent)),
            random=np.random.default_rng((seed, estimates.tick)),
        )
