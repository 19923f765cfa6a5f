"""Longer deferrals, paid with time that the belief permits outside the bound and that was not used.

A deferral that ends within its bound as often as the belief says is within it for more of the time, since the error
grows only towards the end. What the belief permits and audits do not find used is earned, in ticks, and what is earned
beyond a reserve may be added to a deferral: where all that is added lies outside the bound, the share of time within it
still does not fall below the belief. So nothing is risked on streams that have not been kind so far. It costs one
number a query, and some hundred evaluations until deferrals are as long as the belief allows.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from slackwater.control.deferral.calibration import lasting_belief
from slackwater.control.deferral.model import two_sided_quantile

Floats = NDArray[np.float64]

RESERVE = 2.0  # in deferrals: what two that are wrong from the first tick on take back
MOST_EARNED = 5.0  # in deferrals: what was earned in a calm month does not pay for a wild one


@dataclass(frozen=True, slots=True, eq=False)
class Lengthening:
    """How some beliefs are spent: the most that a deferral is stretched, and what it then ends with.

    The belief at the end is a parabola in the share of the deferral that was added, right to 0.2 points.
    """

    most: Floats
    first: Floats
    second: Floats

    @classmethod
    def of(cls, belief: Floats) -> Lengthening:
        """For each belief, as far as the share of time allows under exact Brownian motion.

        >>> float(np.round(Lengthening.of(np.array([0.9])).most, 2)[0])
        1.94
        """
        z = two_sided_quantile(belief)
        end = np.array([lasting_belief(float(one)) for one in belief])
        most = np.square(z / two_sided_quantile(end))
        added = 1.0 - 1.0 / most
        whole, half = belief - end, belief - (2.0 * ndtr(z * np.sqrt(1.0 - added / 2.0)) - 1.0)
        return cls(most, (4.0 * half - whole) / added, (2.0 * whole - 4.0 * half) / np.square(added))

    def each(self, kind: NDArray[np.int32]) -> Lengthening:
        """One entry a query, from one a belief."""
        return Lengthening(self.most[kind], self.first[kind], self.second[kind])

    def lengthened(self, wait: Floats, to_spend: Floats) -> Floats:
        """Deferrals as long as the model says, and longer by what there is to spend.

        >>> model, to_spend = np.array([10.0, 10.0, 10.0]), np.array([-5.0, 4.0, 50.0])
        >>> np.round(Lengthening.of(np.array([0.9])).lengthened(model, to_spend), 1).tolist()
        [10.0, 14.0, 19.4]
        """
        return np.asarray(wait + np.clip(to_spend, 0.0, (self.most - 1.0) * wait), dtype=np.float64)

    def end_belief(self, belief: Floats, ticks: Floats, to_spend: Floats) -> Floats:
        """How often deferrals that lasted so long, with so much to spend before, should end within the bound."""
        added = np.clip(to_spend / ticks, 0.0, 1.0 - 1.0 / self.most)
        return np.asarray(belief - added * (self.first + self.second * added), dtype=np.float64)


def to_spend(earned: Floats, mean_ticks: Floats) -> Floats:
    """What there is beyond the reserve."""
    return np.asarray(earned - RESERVE * mean_ticks, dtype=np.float64)


def after(earned: Floats, ticks: Floats, wrong: Floats, belief: Floats, mean_ticks: Floats, ratio: float) -> Floats:
    """What is earned after deferrals of so many ticks, found wrong at a random one (1) or not (0).

    One in 1/``ratio`` is looked at, and stands for the others.
    """
    added = ticks * (1.0 - belief - wrong) / ratio
    return np.asarray(np.minimum(earned + added, MOST_EARNED * mean_ticks), dtype=np.float64)
