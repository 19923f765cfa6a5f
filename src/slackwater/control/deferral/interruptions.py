"""Silent streams: detect them, guess their values meanwhile, and bound the error of the guess."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from slackwater.control.deferral.estimation import StreamEstimator

Floats = NDArray[np.float64]

PATIENCE = 3.0


def interrupted(estimator: StreamEstimator, now: float, patience: float = PATIENCE) -> NDArray[np.bool_]:
    """Streams silent for longer than ``patience`` times their usual gap (the 90% quantile of their own gaps).

    A stream with exponential gaps is suspected wrongly once in a thousand rows. A stream without an estimate is never
    suspected.
    """
    return (now - estimator.last_time > patience * estimator.usual_gap) & estimator.seen


def best_guess(estimator: StreamEstimator, now: float, silent: NDArray[np.bool_], drift: Floats) -> Floats:
    """Ŝ: the last value, plus the drift since then for a silent stream. NaN for a stream that never had a row."""
    if not np.any(silent):
        return estimator.last_value
    # Zhu 2004, §4.5: Ŝ_i(t) = S_i(t_i) + μ_i·(t − t_i)
    elapsed = np.where(silent, now - estimator.last_time, 0.0)
    return np.asarray(estimator.last_value + np.where(silent, drift, 0.0) * elapsed, dtype=np.float64)


def unknown_spread(estimator: StreamEstimator, now: float, silent: NDArray[np.bool_]) -> Floats:
    """σ_i·√(t − t_i) for every silent stream, zero for the others. Multiplied by z it is the stream's ε_i."""
    elapsed = np.where(silent, now - estimator.last_time, 0.0)
    return np.where(silent, np.where(silent, estimator.diffusion, 0.0) * np.sqrt(elapsed), 0.0)
