"""The paper is there, with every figure, and what needs no recorded data runs."""

from __future__ import annotations

from slackwater.cli.reproduce import load_paper, paper_keys
from slackwater.papers.zhu2004 import data, scalability


def test_every_table_and_figure_is_there() -> None:
    assert "zhu2004" in paper_keys()
    assert list(load_paper("zhu2004").experiments) == ["table-2", "5", "6", "7", "8", "covariance"]


def test_the_naive_scheme_breaks_where_the_paper_says() -> None:
    assert scalability.load_of(3_000, None, horizon=5.0).missed == 0
    assert scalability.load_of(4_000, None, horizon=5.0).missed > 0


def test_synthetic_streams_need_no_data() -> None:
    assert data.synthetic(10).values.shape == (10, 10)
