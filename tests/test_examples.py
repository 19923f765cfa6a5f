"""The examples run with ``--short`` and print what they promise to show."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.helpers.scripts import load_script

EXAMPLES = Path(__file__).resolve().parents[1] / "examples"


def output_of(name: str) -> str:
    ended = subprocess.run([sys.executable, EXAMPLES / name, "--short"], capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


def test_every_example_is_tested_and_documented() -> None:
    assert {path.stem for path in EXAMPLES.glob("*.py")} == {
        "a_million_portfolios",
        "bursty_web_log",
        "dead_letters",
        "kafka_dead_letters",
        "sensors_with_bad_clocks",
    }
    page = (EXAMPLES.parent / "docs" / "start.md").read_text()
    assert all(f"`{path.name}`" in page for path in (*EXAMPLES.glob("*.py"), *EXAMPLES.glob("*.ipynb")))


@pytest.mark.spark
@pytest.mark.full
def test_the_notebook_runs_from_top_to_bottom(tmp_path: Path) -> None:
    ran = load_script("notebook").run_notebook(EXAMPLES / "try_a_promise.ipynb", tmp_path)
    outputs = [output for cell in ran.cells for output in cell.get("outputs", [])]
    table = next(text for output in outputs if "clairvoyant" in (text := output.get("data", {}).get("text/plain", "")))
    assert re.search(r"budgeted-quantile +0\.00\d+ +True", table) and re.search(
        r"ring-quantile +0\.01\d+ +False", table
    )
    report = next(
        html for output in outputs if "peaks: readings" in (html := output.get("data", {}).get("text/html", ""))
    )
    assert "DRATIO 1% by budgeted-quantile" in report and "KEPT" in report


def test_the_notebook_stores_its_outputs_and_plots() -> None:
    cells = json.loads((EXAMPLES / "try_a_promise.ipynb").read_text())["cells"]
    code = [cell for cell in cells if cell["cell_type"] == "code"]
    outputs = [output for cell in code for output in cell["outputs"]]
    assert sum("image/png" in output.get("data", {}) for output in outputs) == 4
    assert all(cell["execution_count"] for cell in code)
    assert not any(output["output_type"] == "error" for output in outputs)


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
def test_dead_letters() -> None:
    output = output_of("dead_letters.py")
    count = r"([\d,]+)"
    ledger = re.search(rf"= {count} on time \+ {count} late \+ 0 shed \+ {count} invalid", output)
    assert ledger is not None, output
    on_time, late, invalid = (int(number.replace(",", "")) for number in ledger.groups())
    dead = {name: int(n) for name, n in re.findall(r"\|\s*(late|future|unset clock)\|\s*(\d+)\|", output)}
    assert late == dead.pop("late") > 0
    assert invalid == sum(dead.values()) > 0
    assert f"{on_time:,} rows on time" in output


@pytest.mark.spark
@pytest.mark.full
def test_a_bursty_web_log() -> None:
    output = output_of("bursty_web_log.py")
    assert "fresh: DELAY 3 s" in output and "hits_error" in output
