"""The calibration loop: it keeps the confidence even if increments are not normal.

After every deferral the old answer is compared with the true one. The loop multiplies the bound that the model gets by
exp(−x). A miss moves x up by one step, a hit moves it down, weighted so that x rests where the share of misses is one
minus the confidence. This assumes no distribution (adaptive conformal inference, with the score in units of the model's
spread). It costs two numbers per query and needs some tens of evaluations to settle. It fails if the increments change
faster than the query is evaluated.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.special import ndtr

Floats = NDArray[np.float64]

GAIN = 0.05
FIRST_GAIN = 0.2
LOWEST, HIGHEST = -2.0, 4.0


def gain(count: Floats) -> Floats:
    """The step after ``count`` evaluations: large at first, then a small constant."""
    step: Floats = np.maximum(GAIN, FIRST_GAIN / np.sqrt(1.0 + count))
    return step


def moved(caution: Floats, missed: Floats, confidence: Floats, step: Floats) -> Floats:
    """The new x. ``missed`` is 1 for a miss, 0 for a hit, or a share between."""
    return np.clip(caution + step * (missed - (1.0 - confidence)), LOWEST, HIGHEST)


def lasting_confidence(confidence: float) -> float:
    """The confidence at the end of a deferral for which the share of *time* within the bound is ``confidence``.

    It is lower than ``confidence``, because under Brownian motion the error grows towards the end of a deferral.

    >>> round(lasting_confidence(0.9), 3)
    0.762
    """

    def share_outside(z: float) -> float:
        density = float(np.exp(-0.5 * z * z) / np.sqrt(2.0 * np.pi))
        # ∫₀¹ 2 Q(z/√s) ds: the share of time outside ±z for a motion with unit spread at the end
        return 2.0 * ((1.0 + z * z) * float(ndtr(-z)) - z * density)

    z = brentq(lambda z: share_outside(z) - (1.0 - confidence), 0.0, 40.0)
    return float(2.0 * ndtr(z) - 1.0)
