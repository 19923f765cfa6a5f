"""The stream model of Kim 2007 and Kim 2012: the buffer size for normal delays and Poisson arrivals."""

from __future__ import annotations

import math

from scipy.special import ndtri

LEAST_ROWS = 30  # Kim 2012, Eq. (11); Kim 2007, §5.1: enough for the central limit theorem
BEST_EFFORT_RATIO = 1e-6
"""The drop ratio that stands for best effort, since z(0) is infinite."""


def critical_point(drop_ratio: float) -> float:
    """z(D), the critical point of the standard normal distribution (Kim 2012, below Eq. (10)).

    >>> round(critical_point(0.05), 2), round(critical_point(0.01), 2)
    (1.64, 2.33)
    """
    return max(-float(ndtri(max(drop_ratio, BEST_EFFORT_RATIO))), 0.0)


def rows_to_hold(z: float, sd: float, interval: float) -> float:
    """The buffer size n of Kim 2012, Eq. (11), and of Kim 2007, Eq. (7) (its positive root), before the minimum of 30.

    >>> round(rows_to_hold(2.33, 5.0, 0.1), 1)
    167.5
    """
    if interval <= 0.0:
        return math.inf if sd > 0.0 and z > 0.0 else z * z
    c = z * z  # Kim 2012, Eq. (11): C = z(D)²
    return (c + math.sqrt(c * c + 8.0 * c * (sd / interval) ** 2)) / 2.0


def span_to_hold(z: float, sd: float, interval: float) -> float:
    """n·θ with n ≥ 30. It is finite for every θ: as θ goes to 0, it approaches √2·z·σ."""
    c = z * z
    return max((c * interval + math.sqrt((c * interval) ** 2 + 8.0 * c * sd * sd)) / 2.0, LEAST_ROWS * interval)
