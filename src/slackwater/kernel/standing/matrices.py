"""Sparse matrices with the same entries as another one, but other values."""

from __future__ import annotations

import numpy as np
from scipy import sparse


def squared(weights: sparse.csr_matrix) -> sparse.csr_matrix:
    """The same matrix with every weight squared."""
    return sparse.csr_matrix((np.square(weights.data), weights.indices, weights.indptr), shape=weights.shape)


def pattern(weights: sparse.csr_matrix) -> sparse.csr_matrix:
    """The same matrix with every weight set to one."""
    return sparse.csr_matrix((np.ones_like(weights.data), weights.indices, weights.indptr), shape=weights.shape)
