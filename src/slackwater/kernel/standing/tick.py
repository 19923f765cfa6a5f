"""What is the same for all queries that are evaluated at one tick."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from slackwater.kernel.standing.stream_estimates import StreamEstimates

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class Tick:
    """A tick: its time and number, and of each stream the value, the drift, the loadings and its own variance.

    ``span``: the time that the drift of a usual stream rests on. ``longest``: no answer given now stands longer.
    ``unseen``: streams that never showed a row, if any. ``draw``: the chances of this tick, the same after a restart.
    """

    now: float
    tick: int
    values: Floats
    drift: Floats
    loadings: list[Floats]
    specific: Floats
    span: float
    longest: float
    unseen: NDArray[np.bool_] | None
    any_silent: bool
    draw: np.random.Generator

    def drawn(self, size: int, ratio: float) -> NDArray[np.bool_]:
        """So many lots, that share of them drawn."""
        return np.asarray(self.draw.random(size, dtype=np.float32) < ratio)

    @classmethod
    def of(cls, stream_estimates: StreamEstimates, longest: float, seed: int) -> Tick:
        """The last tick of some streams."""
        loadings, specific = stream_estimates.covariance()
        unseen = ~stream_estimates.estimator.seen
        return cls(
            stream_estimates.now,
            stream_estimates.tick,
            stream_estimates.values,
            stream_estimates.estimator.drift,
            list(np.ascontiguousarray(loadings.T)),
            specific,
            stream_estimates.usual_span(),
            longest,
            unseen if np.any(unseen) else None,
            bool(np.any(stream_estimates.silent)),
            np.random.default_rng((seed, stream_estimates.tick)),
        )
