"""The closed loop: what keeps the confidence when increments are not normal.

After every deferral the held answer is compared with the true one. The loop scales the bound that the model is
given by exp(−x), and moves x by a step up for a miss and down for a hit, so that it rests exactly where the share
of misses is one minus the confidence: no distribution is assumed (adaptive conformal inference, with the score in units
of the model's own spread). It costs two numbers a query. It needs some tens of evaluations to learn, and no loop
can keep a confidence against increments that change faster than it is evaluated.
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
    """Large steps while little is known, then small ones for ever."""
    step: Floats = np.maximum(GAIN, FIRST_GAIN / np.sqrt(1.0 + count))
    return step


def moved(caution: Floats, missed: Floats, confidence: Floats, step: Floats) -> Floats:
    """The caution x after outcomes (1 missed, 0 kept, or a share between)."""
    return np.clip(caution + step * (missed - (1.0 - confidence)), LOWEST, HIGHEST)


def lasting_confidence(confidence: float) -> float:
    """The confidence at the end of a deferral under which the share of *time* within the bound is ``confidence``.

    Under exact Brownian motion the error grows towards the end of a deferral, so the end may be risked more.

    >>> round(lasting_confidence(0.9), 3)
    0.762
    """

    def out_of_bound(z: float) -> float:
        density = float(np.exp(-0.5 * z * z) / np.sqrt(2.0 * np.pi))
        # ∫₀¹ 2 Q(z/√s) ds, the share of time outside ±z of a motion that has unit spread at the end
        return 2.0 * ((1.0 + z * z) * float(ndtr(-z)) - z * density)

    z = brentq(lambda z: out_of_bound(z) - (1.0 - confidence), 0.0, 40.0)
    return float(2.0 * ndtr(z) - 1.0)
