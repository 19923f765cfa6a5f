"""The examples run with ``--short`` and print what they promise to show."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).resolve().parents[1] / "examples"


def output_of(name: str) -> str:
    ended = subprocess.run([sys.executable, EXAMPLES / name, "--short"], capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


def test_every_example_is_tested_and_documented() -> None:
    assert {path.stem for path in EXAMPLES.glob("*.py")} == {
        "a_million_portfolios",
        "bursty_web_log",
        "sensors_with_bad_clocks",
    }
    page = (EXAMPLES.parent / "docs" / "start.md").read_text()
    assert all(f"`{path.name}`" in page for path in EXAMPLES.glob("*.py"))


@pytest.mark.spark
@pytest.mark.full
def test_a_million_portfolios() -> None:
    output = output_of("a_million_portfolios.py")
    assert "portfolios: CONFIDENCE 90%" in output and "of 2,000 portfolios are within their bounds" in output


@pytest.mark.spark
@pytest.mark.full
def test_sensors_with_bad_clocks() -> None:
    output = output_of("sensors_with_bad_clocks.py")
    assert "(kept)" in output and "rows had an impossible event time" in output


@pytest.mark.spark
@pytest.mark.full
def test_a_bursty_web_log() -> None:
    output = output_of("bursty_web_log.py")
    assert "fresh: DELAY 3 s" in output and "hits_error" in output
