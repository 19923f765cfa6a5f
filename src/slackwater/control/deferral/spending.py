"""Longer deferrals, paid with time that the confidence permits outside the bound and that was not used.

A deferral that ends within its bound as often as the confidence says is within it for more of the time, since the error
grows only towards the end. What the confidence permits and audits do not find used is earned, in ticks, and what is so
beyond a reserve may be added to a deferral: where all that is added lies outside the bound, the share of time within it
still does not fall below the confidence. So nothing is risked on streams that have not been kind so far. It costs one
number a query, and some hundred evaluations until deferrals are as long as the confidence allows.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from slackwater.control.deferral.calibration import lasting_confidence
from slackwater.control.deferral.model import two_sided_quantile

Floats = NDArray[np.float64]

RESERVE = 2.0  # in deferrals: what two that are wrong from the first tick on take back
MOST_EARNED = 5.0  # in deferrals: what was earned in a calm month does not pay for a wild one


@dataclass(frozen=True, slots=True, eq=False)
class Lengthening:
    """How some confidences are spent: the most that a deferral is stretched, and what it then ends with.

    The confidence at the end is a parabola in the share of the deferral that was added, right to 0.2 points.
    """

    most: Floats
    first: Floats
    second: Floats

    @classmethod
    def of(cls, confidence: Floats) -> Lengthening:
        """For each confidence, as far as the share of time allows under exact Brownian motion.

        >>> float(np.round(Lengthening.of(np.array([0.9])).most, 2)[0])
        1.94
        """
        z = two_sided_quantile(confidence)
        end = np.array([lasting_confidence(float(one)) for one in confidence])
        most = np.square(z / two_sided_quantile(end))
        added = 1.0 - 1.0 / most
        whole, half = confidence - end, confidence - (2.0 * ndtr(z * np.sqrt(1.0 - added / 2.0)) - 1.0)
        return cls(most, (4.0 * half - whole) / added, (2.0 * whole - 4.0 * half) / np.square(added))

    def each(self, kind: NDArray[np.int32]) -> Lengthening:
        """One entry a query, from one a confidence."""
        return Lengthening(self.most[kind], self.first[kind], self.second[kind])

    def lengthened(self, wait: Floats, to_spend: Floats) -> Floats:
        """Deferrals as long as the model says, and longer by what there is to spend.

        >>> model, to_spend = np.array([10.0, 10.0, 10.0]), np.array([-5.0, 4.0, 50.0])
        >>> np.round(Lengthening.of(np.array([0.9])).lengthened(model, to_spend), 1).tolist()
        [10.0, 14.0, 19.4]
        """
        return np.asarray(wait + np.clip(to_spend, 0.0, (self.most - 1.0) * wait), dtype=np.float64)

    def end_confidence(self, confidence: Floats, ticks: Floats, to_spend: Floats) -> Floats:
        """How often deferrals that lasted so long, with so much to spend before, should end within the bound."""
        added = np.clip(to_spend / ticks, 0.0, 1.0 - 1.0 / self.most)
        return np.asarray(confidence - added * (self.first + self.second * added), dtype=np.float64)


def to_spend(earned: Floats, mean_ticks: Floats) -> Floats:
    """What there is beyond the reserve."""
    return np.asarray(earned - RESERVE * mean_ticks, dtype=np.float64)


def after(earned: Floats, ticks: Floats, wrong: Floats, confidence: Floats, mean_ticks: Floats, ratio: float) -> Floats:
    """What is earned after deferrals of so many ticks, found wrong at a random one (1) or not (0).

    One in 1/``ratio`` is looked at, and stands for the others.
    """
    added = ticks * (1.0 - confidence - wrong) / ratio
    return np.asarray(np.minimum(earned + added, MOST_EARNED * mean_ticks), dtype=np.float64)
