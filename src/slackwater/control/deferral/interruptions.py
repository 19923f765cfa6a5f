"""Streams that have fallen silent: noticing it, the best guess meanwhile, and how wrong that guess may be."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from slackwater.control.deferral.estimation import StreamEstimator

Floats = NDArray[np.float64]

PATIENCE = 3.0


def interrupted(estimator: StreamEstimator, now: float, patience: float = PATIENCE) -> NDArray[np.bool_]:
    """Streams silent for longer than ``patience`` times the gap that nine in ten of their own gaps do not exceed.

    A stream with exponential gaps is suspected wrongly once in a thousand rows. A stream whose rhythm is not known
    yet is not suspected.
    """
    return (now - estimator.last_time > patience * estimator.usual_gap) & estimator.seen


def best_guess(estimator: StreamEstimator, now: float, silent: NDArray[np.bool_], drift: Floats) -> Floats:
    """Ŝ: the last value, moved on by the drift where the stream is silent; NaN where nothing was ever seen."""
    if not np.any(silent):
        return estimator.last_value
    # Zhu 2004, §4.5: Ŝ_i(t) = S_i(t_i) + μ_i·(t − t_i)
    gone = np.where(silent, now - estimator.last_time, 0.0)
    return np.asarray(estimator.last_value + np.where(silent, drift, 0.0) * gone, dtype=np.float64)


def unknown_spread(estimator: StreamEstimator, now: float, silent: NDArray[np.bool_]) -> Floats:
    """σ_i·√(t − t_i) of every silent stream and zero elsewhere; times z it is the stream's ε_i."""
    gone = np.where(silent, now - estimator.last_time, 0.0)
    return np.where(silent, np.where(silent, estimator.diffusion, 0.0) * np.sqrt(gone), 0.0)
