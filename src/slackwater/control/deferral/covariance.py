"""The correlation of streams, as a few common factors.

Zhu 2004, Eq. (6) adds variances, which is right for independent streams. Share prices move together: an average of nine
then moves twice as much as the sum of variances says, and the plain model defers four times too long. A full matrix for
thousands of streams cannot be estimated from a hundred increments, but the few directions that stand out from the noise
can. If none does, the result is Eq. (6).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

MAX_FACTORS = 3
LEAST_SPECIFIC = 0.01


@dataclass(frozen=True, slots=True, eq=False)
class Correlation:
    """C = B Bᵀ + diag(d): factor loadings B (streams × factors) and the variance d that is each stream's own."""

    loadings: Floats
    specific: Floats

    @property
    def factors(self) -> int:
        """The number of common factors."""
        return int(self.loadings.shape[1])

    def covariance(self, diffusion: Floats) -> tuple[Floats, Floats]:
        """Loadings and own variances, scaled by diffusion. A stream of unknown diffusion has no loadings."""
        more = len(diffusion) - len(self.specific)
        loadings, specific = self.loadings, self.specific
        if more > 0:
            loadings = np.concatenate([loadings, np.zeros((more, self.factors))])
            specific = np.concatenate([specific, np.ones(more)])
        known = np.where(np.isfinite(diffusion), diffusion, 0.0)
        return loadings * known[:, None], specific * np.square(diffusion)


def independent(streams: int) -> Correlation:
    """The paper's assumption: no common factors."""
    return Correlation(np.zeros((streams, 0)), np.ones(streams))


def common_factors(increments: Floats, most: int = MAX_FACTORS) -> Correlation:
    """The correlation of synchronous increments (ticks × streams), with at most ``most`` factors.

    A factor counts if its eigenvalue exceeds the largest one expected from independent streams over as many ticks (the
    Marchenko–Pastur edge). Costs an eigendecomposition of the size of the smaller of ticks and streams.
    """
    ticks, streams = increments.shape
    centred = increments - increments.mean(axis=0)
    scale = centred.std(axis=0)
    moving = scale > 0.0
    if np.count_nonzero(moving) < 2:
        return independent(streams)
    sample = np.zeros_like(centred)
    sample[:, moving] = centred[:, moving] / scale[moving]
    edge = np.square(1.0 + np.sqrt(np.count_nonzero(moving) / ticks))
    if streams <= ticks:
        values, vectors = np.linalg.eigh(sample.T @ sample / ticks)
        strong = np.flatnonzero(values > edge)[::-1][:most]
        vectors = vectors[:, strong]
    else:
        values, left = np.linalg.eigh(sample @ sample.T / ticks)
        strong = np.flatnonzero(values > edge)[::-1][:most]
        vectors = (sample.T @ left[:, strong]) / np.sqrt(values[strong] * ticks)
    loadings = vectors * np.sqrt(values[strong])
    return Correlation(loadings, np.maximum(1.0 - np.square(loadings).sum(axis=1), LEAST_SPECIFIC))
