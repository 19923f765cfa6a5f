"""Drifting Brownian motion: how long an answer may stand until it has probably left its bound.

All functions are vectorised over queries and cost a few passes over arrays. The drift is per unit of time and the
diffusion per square root of it; any unit will do. A bound of zero gives a deferral of zero. No diffusion and no drift
give an infinite one. The caller limits both.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri

from slackwater.control.deferral.near_edge import near_edge

Floats = NDArray[np.float64]

_NEGLIGIBLE_SHIFT = 1e-2


def two_sided_quantile(confidence: Floats) -> Floats:
    """The z for which a normal variable stays within ±z with probability ``confidence``.

    >>> np.round(two_sided_quantile(np.array([0.95, 0.9])), 3).tolist()
    [1.96, 1.645]
    """
    return np.asarray(ndtri((1.0 + confidence) / 2.0), dtype=np.float64)


def within_probability(after: Floats, bound: Floats, drift: Floats, diffusion: Floats) -> Floats:
    """The probability that an aggregate is within ``bound`` of its old value after the time ``after``.

    >>> one = np.ones(1)
    >>> float(np.round(within_probability(one, 1.959964 * one, 0 * one, one), 6)[0])
    0.95
    """
    spread = diffusion * np.sqrt(after)
    shift = drift * after
    # Zhu 2004, Eq. (3), (6)
    return np.asarray(ndtr((bound - shift) / spread) - ndtr((-bound - shift) / spread), dtype=np.float64)


def deferral(bound: Floats, drift: Floats, diffusion: Floats, confidence: Floats, z: Floats | None = None) -> Floats:
    """The time until the probability that the aggregate is within ``bound`` has fallen to ``confidence``.

    Zhu 2004, Eq. (7), for all queries together: in closed form if the drift is negligible, otherwise by ``near_edge``.
    ``z`` is the two-sided quantile of the confidence; it is computed if not given.

    >>> one = np.ones(1)
    >>> float(np.round(deferral(5 * one, 0 * one, one, 0.9 * one), 3)[0])
    9.24
    """
    if z is None:
        z = two_sided_quantile(confidence)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        result = np.square(bound / (diffusion * z))
        # Without diffusion the aggregate leaves the bound on a straight line.
        certain = diffusion <= 0.0
        if np.any(certain):
            result = np.where(certain, np.where(drift != 0.0, bound / np.abs(drift), np.inf), result)
        if not np.all(bound > 0.0):
            result = np.where(bound > 0.0, result, 0.0)
        moving = np.flatnonzero(drift != 0.0)
        if len(moving) == 0:
            return result
        bound, diffusion, drift = bound[moving], diffusion[moving], np.abs(drift[moving])
        confidence, z = np.broadcast_to(confidence, result.shape)[moving], np.broadcast_to(z, result.shape)[moving]
        shift = drift * bound / (np.square(diffusion) * z)
        finite = (diffusion > 0.0) & (bound > 0.0) & np.isfinite(diffusion)
    solve = np.flatnonzero(finite & (shift > _NEGLIGIBLE_SHIFT))
    if len(solve):
        lean = shift[solve] * z[solve]
        near = near_edge(lean, confidence[solve])
        far = np.sqrt(np.square(near) + 4.0 * lean)
        # The edges are 2·bound apart, and near + far spreads.
        result[moving[solve]] = np.square(2.0 * bound[solve] / (diffusion[solve] * (near + far)))
    return result


def rise_time(room: Floats, drift: Floats, diffusion: Floats, confidence: Floats) -> Floats:
    """φ2: the time until the probability that the aggregate has risen by at most ``room`` falls to ``confidence``.

    Zhu 2004, Eq. (11), in closed form (a quadratic in the square root of the time). Infinite for a falling aggregate
    whose probability never gets that low.

    >>> one = np.ones(1)
    >>> float(np.round(rise_time(2 * one, 0 * one, one, 0.9 * one), 3)[0])
    2.435
    >>> float(rise_time(2 * one, -9 * one, one, 0.9 * one)[0])
    inf
    """
    reach = ndtri(confidence) * diffusion
    square = np.square(reach) + 4.0 * drift * room
    with np.errstate(divide="ignore", invalid="ignore"):
        below = reach + np.sqrt(np.maximum(square, 0.0))
        root = np.where((square < 0.0) | (below <= 0.0), np.inf, 2.0 * room / below)
    return np.asarray(np.where(room > 0.0, np.square(root), 0.0), dtype=np.float64)
