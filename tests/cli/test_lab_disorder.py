"""``slackwater lab disorder`` from the outside."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

from slackwater.cli.lab_disorder import command
from slackwater.errors import SlackwaterError

KEYS = [
    "method",
    "target_drop_ratio",
    "drop_ratio",
    "mean_wait_s",
    "median_wait_s",
    "p90_wait_s",
    "p99_wait_s",
    "mean_buffer_rows",
    "clairvoyant_wait_s",
    "best_constant_wait_s",
    "mean_publication_delay_s",
    "best_constant_publication_delay_s",
    "budget_used",
    "rows",
    "unit",
]


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    random = np.random.default_rng(0)
    stamps = pd.Timestamp("2026-01-01", tz="UTC") + pd.to_timedelta(np.arange(2_000), unit="s")
    seen = stamps + pd.to_timedelta(random.exponential(5.0, 2_000), unit="s")
    table = pd.DataFrame({"ts": stamps, "seen": seen, "id": np.arange(2_000)}).sort_values("seen")
    table.to_parquet(tmp_path / "t.parquet")
    return tmp_path / "t.parquet"


def run_json(*arguments: str) -> list[dict[str, object]]:
    result = CliRunner().invoke(command, [*arguments, "--json"], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    cells = json.loads(result.stdout)
    assert isinstance(cells, list)
    return cells


def test_json_has_the_documented_keys(trace: Path) -> None:
    methods = "fixed-slack,max-delay,ring-quantile"
    cells = run_json(str(trace), "--event-time", "ts", "--arrival", "seen", "--methods", methods)
    assert len(cells) == 9
    assert all(list(cell) == KEYS for cell in cells)
    assert {cell["unit"] for cell in cells} == {"s"}
    assert [cell["target_drop_ratio"] for cell in cells[::3]] == [0.05, 0.01, 0.001]
    assert all(cell["rows"] == 2_000 for cell in cells)
    assert {cell["best_constant_wait_s"] for cell in cells} == {None}, "known with --trigger only"
    # Exponential delays of 5 s: 5 % are later than 5·ln 20 s, within six standard errors of 2 000 rows.
    expected, error = 5 * np.log(20), 5 * np.sqrt(19 / 2_000)
    assert abs(float(str(cells[0]["clairvoyant_wait_s"])) - expected) < 6 * error


def test_numbers_without_arrivals(trace: Path) -> None:
    cells = run_json(str(trace), "--event-time", "id", "--methods", "mean-distance,max-delay", "--drop-ratio", "1%")
    assert {cell["unit"] for cell in cells} == {"attribute"}


def test_table_and_plot(trace: Path, tmp_path: Path) -> None:
    plot = tmp_path / "p.png"
    arguments = [
        str(trace),
        "--event-time",
        "ts",
        "--arrival",
        "seen",
        "--methods",
        "max-delay",
        "--plot",
        str(plot),
    ]
    result = CliRunner().invoke(command, [*arguments, "--period", "10 seconds"], catch_exceptions=False)
    assert result.exit_code == 0
    assert "max-delay" in result.output
    assert plot.read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    ("arguments", "condition"),
    [
        ([], "no-trace"),
        (["{trace}", "--generated", "step"], "no-trace"),
        (["{trace}"], "no-event-time"),
        (["--generated", "step:x"], "invalid-seed"),
        (["--generated", "nothing"], "unknown-stream"),
        (["{trace}", "--event-time", "ts", "--methods", "guess"], "unknown-method"),
        (["{trace}", "--event-time", "ts", "--methods", "source-heartbeat"], "no-punctuations"),
        (["{trace}", "--event-time", "ts", "--period", "1 second"], "no-clock"),
        (["{trace}", "--event-time", "ts", "--arrival", "seen", "--period", "1 s", "--every", "3"], "two-batch-sizes"),
        (["{trace}", "--event-time", "ts", "--drop-ratio", "lots"], "invalid-ratio"),
        (["{trace}", "--event-time", "ts", "--trigger", "1s"], "no-clock"),
        (["{trace}", "--event-time", "ts", "--arrival", "seen", "--trigger", "soon"], "invalid-duration"),
        (["{trace}", "--event-time", "ts", "--arrival", "seen", "--trigger", "1s", "--every", "5"], "two-batch-sizes"),
        (
            ["{trace}", "--event-time", "ts", "--arrival", "seen", "--trigger", "0", "--batch-cost", "1"],
            "invalid-duration",
        ),
        (
            ["{trace}", "--event-time", "ts", "--arrival", "seen", "--trigger", "0", "--batch-cost", "0s"],
            "invalid-cost",
        ),
        (
            ["{trace}", "--event-time", "ts", "--arrival", "seen", "--trigger", "0", "--batch-cost", "1s+2us"],
            "invalid-cost",
        ),
    ],
)
def test_bad_input_is_named(trace: Path, arguments: list[str], condition: str) -> None:
    with pytest.raises(SlackwaterError, match=condition):
        CliRunner().invoke(command, [a.format(trace=trace) for a in arguments], catch_exceptions=False)


def test_trigger_compares_with_the_best_constant_delay_of_spark(trace: Path) -> None:
    arguments = ["--event-time", "ts", "--arrival", "seen", "--methods", "budgeted-quantile", "--drop-ratio", "5%"]
    (cell,) = run_json(str(trace), *arguments, "--trigger", "5 seconds", "--batch-cost", "1s+1ms/row")
    best, delay, best_delay = (
        float(str(cell[key]))
        for key in ("best_constant_wait_s", "mean_publication_delay_s", "best_constant_publication_delay_s")
    )
    assert best > 5.0, "a row waits for the next micro-batch at least"
    assert delay >= float(str(cell["mean_wait_s"])) > 0.0
    assert best_delay > best
