"""ε_intr: the error of an answer for which silent streams had to be guessed."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from slackwater.control.deferral import interruptions
from slackwater.control.deferral.estimation import StreamEstimator
from slackwater.kernel.standing.matrices import squared
from slackwater.kernel.standing.tick import Tick

Floats = NDArray[np.float64]


def interruption_error(
    weights: sparse.csr_matrix, estimator: StreamEstimator, silent: NDArray[np.bool_], tick: Tick, sum_of_errors: bool
) -> Floats:
    """The standard error of each query, from its silent streams only. Multiplied by z it is ε_intr.

    :param sum_of_errors: add the errors of the streams (Zhu 2004, §4.5), instead of taking the root of the sum of their
        squares.
    """
    spread = interruptions.unknown_spread(estimator, tick.now, silent)
    if sum_of_errors:
        return np.asarray(abs(weights) @ spread, dtype=np.float64)
    scale = np.divide(spread, estimator.diffusion, out=np.zeros_like(spread), where=spread > 0.0)
    own = np.where(silent, tick.specific, 0.0) * np.square(scale)
    square = squared(weights) @ own
    for loadings in tick.loadings:
        square += np.square(weights @ (loadings * scale))
    return np.asarray(np.sqrt(square), dtype=np.float64)
