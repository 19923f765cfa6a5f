"""Zhu 2004 is registered with all its figures, and those that need no recorded data run."""

from __future__ import annotations

import numpy as np

from slackwater.cli.reproduce import load_paper, paper_keys
from slackwater.papers.zhu2004 import caution, data, scalability


def test_every_table_and_figure_is_registered() -> None:
    assert "zhu2004" in paper_keys()
    assert list(load_paper("zhu2004").experiments) == ["table-2", "5", "6", "7", "8", "covariance", "caution"]


def test_the_naive_scheme_breaks_where_the_paper_says() -> None:
    assert scalability.load_of(3_000, None, horizon=5.0).missed == 0
    assert scalability.load_of(4_000, None, horizon=5.0).missed > 0


def test_synthetic_streams_need_no_data() -> None:
    assert data.synthetic(10).values.shape == (10, 10)


def test_only_the_estimated_drift_makes_the_printed_model_too_cautious() -> None:
    known = caution.hit_rates(100, ticks=False, diffusion=False, drift=False)
    assert np.allclose(known, [0.95, 0.9, 0.85], atol=1e-6)
    without_drift = caution.hit_rates(100, ticks=True, diffusion=True, drift=False)
    printed = caution.hit_rates(100, ticks=True, diffusion=True, drift=True)
    assert max(np.subtract(without_drift, known)) < 0.01 < max(np.subtract(printed, known))
