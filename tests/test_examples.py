"""The examples run, in their short form, and end with what they promise to show."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).resolve().parents[1] / "examples"


def error_summary(name: str) -> str:
    ran = subprocess.run([sys.executable, EXAMPLES / name, "--short"], capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    return ran.stdout


def test_every_example_is_tried() -> None:
    assert {path.stem for path in EXAMPLES.glob("*.py")} == {
        "a_million_portfolios",
        "bursty_web_log",
        "sensors_with_bad_clocks",
    }
    told = (EXAMPLES.parent / "docs" / "start.md").read_text()
    assert all(f"`{path.name}`" in told for path in EXAMPLES.glob("*.py"))


@pytest.mark.spark
@pytest.mark.full
def test_a_million_portfolios() -> None:
    said = error_summary("a_million_portfolios.py")
    assert "portfolios: CONFIDENCE 90%" in said and "of 2,000 portfolios are within their bounds" in said


@pytest.mark.spark
@pytest.mark.full
def test_sensors_with_bad_clocks() -> None:
    said = error_summary("sensors_with_bad_clocks.py")
    assert "(kept)" in said and "rows had a clock that cannot be meant" in said


@pytest.mark.spark
@pytest.mark.full
def test_a_bursty_web_log() -> None:
    said = error_summary("bursty_web_log.py")
    assert "fresh: DELAY 3 s" in said and "give_or_take" in said
