"""The reproductions of Kim 2007, 2010 and 2012, with fewer rows."""

from __future__ import annotations

from pathlib import Path

import pytest

from slackwater.cli.reproduce import load_paper
from slackwater.papers.kim2007.figures import figure_5 as kim2007_figure_5
from slackwater.papers.kim2010.figures import figure_3, figure_4
from slackwater.papers.kim2012.figures import figure_5, figure_6, figure_7
from slackwater.papers.kim2012.variants import appendix, in_seconds


def check_progress(done: float, stage: str) -> None:
    assert 0.0 <= done <= 1.0
    assert stage


def test_kim2012(tmp_path: Path) -> None:
    buffer, drops, *_ = figure_5(tmp_path, check_progress, rows=12_000)
    assert buffer.same_conclusion
    assert drops.same_conclusion
    constant, *_ = figure_6(tmp_path, check_progress, rows=12_000)
    assert constant.same_conclusion
    assert len(figure_7(tmp_path, check_progress, rows=5_000)) == 2
    assert {file.name for file in tmp_path.iterdir()} == {"figure_5.png", "figure_6.png", "figure_7.png"}


def test_kim2012_in_seconds_and_its_appendix(tmp_path: Path) -> None:
    assert [claim.figure for claim in in_seconds(tmp_path, check_progress, rows=5_000)] == [
        "6a, seconds",
        "6b, seconds",
        "7b, seconds",
    ]
    (arrivals,) = appendix(tmp_path, check_progress, rows=50_000)
    assert arrivals.same_conclusion


def test_kim2010(tmp_path: Path) -> None:
    converge, fewer = figure_3(tmp_path, check_progress, sizes=(1_000, 10_000, 100_000))
    assert converge.same_conclusion
    assert fewer.same_conclusion
    (kept,) = figure_4(tmp_path, check_progress, rows=50_000)
    assert kept.same_conclusion
    assert {file.name for file in tmp_path.iterdir()} == {"figure_3.png", "figure_4.png"}


def test_kim2007(tmp_path: Path) -> None:
    kept, divided, printed = kim2007_figure_5(tmp_path, check_progress, rows=3_000)
    assert kept.same_conclusion
    assert divided.same_conclusion
    assert not printed.same_conclusion
    assert len(list(tmp_path.iterdir())) == 3


@pytest.mark.parametrize("key", ["kim2007", "kim2010", "kim2012"])
def test_papers_are_found(key: str) -> None:
    paper = load_paper(key)
    assert paper.key == key
    assert paper.readings
