"""Longer deferrals, paid for with unused time outside the bound.

The confidence allows an answer to be outside its bound for some of the time. An answer that is within its bound at the
end of a deferral was within it for even more of the time before, so part of the allowance is never used. Audits measure
the unused part, which is earned, in ticks. Ticks beyond a reserve may lengthen a deferral: even if all added ticks are
outside the bound, the share of time within it stays at the confidence or above. It costs one number per query and takes
about a hundred evaluations until deferrals are as long as the confidence allows.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from slackwater.control.deferral.calibration import lasting_confidence
from slackwater.control.deferral.model import two_sided_quantile

Floats = NDArray[np.float64]

RESERVE = 2.0  # in average deferrals: enough for two that are wrong from their first tick
MOST_EARNED = 5.0  # in average deferrals: a long calm time must not pay for a long wild one


@dataclass(frozen=True, slots=True, eq=False)
class Lengthening:
    """How far deferrals may be stretched at some confidences, and the confidence that remains at their end.

    ``most`` is the largest factor. The confidence at the end is a parabola in the added share of the deferral, with the
    coefficients ``first`` and ``second``; it is exact to 0.2 percentage points.
    """

    most: Floats
    first: Floats
    second: Floats

    @classmethod
    def of(cls, confidence: Floats) -> Lengthening:
        """One entry per confidence: what the share of time allows under exact Brownian motion.

        >>> float(np.round(Lengthening.of(np.array([0.9])).most, 2)[0])
        1.94
        """
        z = two_sided_quantile(confidence)
        end = np.array([lasting_confidence(float(one)) for one in confidence])
        most = np.square(z / two_sided_quantile(end))
        added = 1.0 - 1.0 / most
        whole, half = confidence - end, confidence - (2.0 * ndtr(z * np.sqrt(1.0 - added / 2.0)) - 1.0)
        return cls(most, (4.0 * half - whole) / added, (2.0 * whole - 4.0 * half) / np.square(added))

    def each(self, confidence_index: NDArray[np.int64]) -> Lengthening:
        """One entry per query, given the index of each query's confidence."""
        return Lengthening(self.most[confidence_index], self.first[confidence_index], self.second[confidence_index])

    def lengthened(self, wait: Floats, to_spend: Floats) -> Floats:
        """The model's deferrals, each lengthened by what it has to spend, up to the factor ``most``.

        >>> model, to_spend = np.array([10.0, 10.0, 10.0]), np.array([-5.0, 4.0, 50.0])
        >>> np.round(Lengthening.of(np.array([0.9])).lengthened(model, to_spend), 1).tolist()
        [10.0, 14.0, 19.4]
        """
        return np.asarray(wait + np.clip(to_spend, 0.0, (self.most - 1.0) * wait), dtype=np.float64)

    def end_confidence(self, confidence: Floats, ticks: Floats, to_spend: Floats) -> Floats:
        """How often deferrals of ``ticks`` ticks, set with ``to_spend`` in hand, should end within the bound."""
        added = np.clip(to_spend / ticks, 0.0, 1.0 - 1.0 / self.most)
        return np.asarray(confidence - added * (self.first + self.second * added), dtype=np.float64)


def to_spend(earned: Floats, mean_ticks: Floats) -> Floats:
    """Earned ticks beyond the reserve."""
    return np.asarray(earned - RESERVE * mean_ticks, dtype=np.float64)


def after(earned: Floats, ticks: Floats, wrong: Floats, confidence: Floats, mean_ticks: Floats, ratio: float) -> Floats:
    """Earned ticks after audited deferrals.

    :param ticks: the length of each deferral.
    :param wrong: 1 if the answer was outside its bound at a random tick of the deferral, else 0.
    :param ratio: the share of deferrals that are audited; each stands for 1/``ratio`` deferrals.
    """
    added = ticks * (1.0 - confidence - wrong) / ratio
    return np.asarray(np.minimum(earned + added, MOST_EARNED * mean_ticks), dtype=np.float64)
