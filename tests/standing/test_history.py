"""The history of stream values."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from slackwater.kernel.standing.history import History


def test_aggregates_at_past_ticks_equal_a_dense_product() -> None:
    draw = np.random.default_rng(2)
    history = History(6, least=4)
    for tick in range(11):
        history.append(float(tick), draw.standard_normal(6))
    weights = sparse.csr_matrix(draw.standard_normal((30, 6)) * (draw.random((30, 6)) < 0.5))
    at = draw.integers(0, len(history.times), 30)
    expected = [weights.toarray()[row] @ history.values[tick] for row, tick in enumerate(at)]
    assert history.aggregates(weights, at) == pytest.approx(expected)
